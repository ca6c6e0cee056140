//! Live events: what the data of a server-sent event holds. Its `event` field says which of the two it is, its `id` where it
//! stands in the journal.

use orchestrator_core::{JobId, JobState, TaskState, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The `event` of a [`TaskChange`].
pub const TASK: &str = "task";
/// The `event` of a [`JobChange`].
pub const JOB: &str = "job";

/// A task entered a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskChange {
    /// Its job.
    pub job: JobId,
    /// Its place in the job.
    pub task: u32,
    /// Its name in the flow; of an item, with the item's number. The task of a queue's job is called `main`.
    pub name: Arc<str>,
    /// The state that it entered.
    pub state: TaskState,
    /// Its latest attempt at that moment; 0 before the first.
    pub attempt: u32,
    /// The flow that the job runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Arc<str>>,
    /// Whose job it is.
    pub tenant: Arc<str>,
    /// When.
    pub at: Timestamp,
}

/// A job of a flow entered a state. Of a job of a queue its one task tells that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobChange {
    /// The job.
    pub job: JobId,
    /// The state that it entered.
    pub state: JobState,
    /// The flow that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Arc<str>>,
    /// Whose job it is.
    pub tenant: Arc<str>,
    /// When.
    pub at: Timestamp,
}
