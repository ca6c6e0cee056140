//! The registry of flows.

use orchestrator_core::Json;
use orchestrator_store::{FlowChanged, FlowView};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What came of applying a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Applied {
    /// Its name.
    pub flow: Arc<str>,
    /// The version that is current now.
    pub version: u32,
    /// What had to be done for that.
    pub result: AppliedResult,
    /// The hash of its content.
    pub hash: Arc<str>,
}

/// What had to be done to make a flow the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppliedResult {
    /// It is a new version.
    Created,
    /// An earlier version has the same content and is current again.
    Restored,
    /// It was the current one already.
    Unchanged,
}

/// The flows of the registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FlowList {
    /// In order of their names, or of their versions.
    pub flows: Vec<FlowView>,
}

/// Changes of the registry that are made together, all of them or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FlowChanges {
    /// In this order.
    pub changes: Vec<FlowChangeFields>,
}

/// One change of the registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowChangeFields {
    /// Makes a definition the current one of its name.
    Apply(Json),
    /// Takes a name out of the registry.
    Retire(Arc<str>),
}

/// What came of the changes, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FlowsChanged {
    /// One for each.
    pub results: Vec<FlowChanged>,
}
