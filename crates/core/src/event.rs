//! What the journal tells: one entry per change of a task.

use crate::id::TaskId;
use crate::state::TaskState;
use serde::{Deserialize, Serialize};

/// A task entered a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The task.
    pub task: TaskId,
    /// The state it entered.
    pub state: TaskState,
    /// Its latest attempt at that moment; 0 before the first.
    pub attempt: u32,
}
