//! Tasks of a job.

use orchestrator_store::TaskView;
use serde::{Deserialize, Serialize};

/// Tasks, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskList {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// Of items: the number behind which the next page begins, if there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}
