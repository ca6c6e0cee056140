//! Dead letters.

use orchestrator_core::TaskId;
use orchestrator_store::DeadLetter;
use serde::{Deserialize, Serialize};

/// A page of dead letters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetterPage {
    /// The letters, those of the oldest jobs first.
    pub dead_letters: Vec<DeadLetter>,
    /// Where the next page begins, if there may be one.
    pub next: Option<TaskId>,
}
