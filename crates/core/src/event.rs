//! What the journal tells: one entry per change.

use crate::id::{JobId, TaskId};
use crate::state::{JobState, TaskState};
use serde::{Deserialize, Serialize};

/// Something entered a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A task did.
    Task(TaskEvent),
    /// A job of a flow did. The state of a job of a queue follows from its one task, so nothing is told of it.
    Job(JobEvent),
}

/// A task entered a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskEvent {
    /// The task.
    pub task: TaskId,
    /// The state it entered.
    pub state: TaskState,
    /// Its latest attempt at that moment; 0 before the first.
    pub attempt: u32,
}

/// A job entered a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobEvent {
    /// The job.
    pub job: JobId,
    /// The state it entered.
    pub state: JobState,
}

impl Event {
    /// The job that it is about.
    pub fn job(&self) -> JobId {
        match self {
            Event::Task(event) => event.task.job,
            Event::Job(event) => event.job,
        }
    }
}
