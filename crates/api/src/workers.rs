//! Workers.

use orchestrator_store::{WorkerNote, WorkerView};
use serde::{Deserialize, Serialize};

/// The workers that said something of themselves within the last day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerList {
    /// In order of their names.
    pub workers: Vec<WorkerView>,
}

/// What workers tell of themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// The workers: usually the one that asks.
    #[cfg_attr(feature = "schema", schema(max_items = 100))]
    pub workers: Vec<WorkerNote>,
}
