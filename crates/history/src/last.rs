//! How everything stands at the end, read once more after all faults have healed.

use orchestrator_core::{JobId, JobState, Json, TaskState};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Every job there is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastWord {
    /// The jobs, in any order.
    pub jobs: Vec<LastJob>,
}

/// A job at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastJob {
    /// Its id.
    pub id: JobId,
    /// The client's key.
    pub key: Option<Arc<str>>,
    /// What was submitted.
    pub payload: Json,
    /// Its state.
    pub state: JobState,
    /// Its tasks, items of a `for_each` among them, in any order.
    pub tasks: Vec<LastTask>,
}

/// A task at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastTask {
    /// Its place in the job.
    pub index: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Its state.
    pub state: TaskState,
    /// How often it was leased.
    pub attempt: u32,
    /// How many attempts failed.
    pub failures: u32,
    /// How many attempts lost their worker.
    pub crashes: u32,
    /// What its handler gave, if it completed. `None` where the end of other tasks made the output: a task that was expanded.
    pub output: Option<Json>,
    /// Whether a handler ran it: not so for a task that was expanded into items, which end it.
    pub runs: bool,
    /// The tasks of the job that must be over before it may start; of an item, those of the task that it belongs to.
    pub needs: Vec<u32>,
}
