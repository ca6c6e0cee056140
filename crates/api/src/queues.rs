//! Queues.

use orchestrator_core::Timestamp;
use orchestrator_store::LineStats;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Every queue that ever had work or is paused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueList {
    /// In order of their names.
    pub queues: Vec<QueueView>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// Its name.
    pub queue: Arc<str>,
    /// Since when it is paused.
    pub paused: Option<Timestamp>,
    /// Its tasks, by handler.
    pub handlers: Vec<LineStats>,
}
