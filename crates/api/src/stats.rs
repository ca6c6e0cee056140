//! Counts.

use orchestrator_store::DayStats;
use serde::{Deserialize, Serialize};

/// Jobs by day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Daily {
    /// The newest first, by UTC. Days on which nothing happened are not there.
    pub days: Vec<DayStats>,
}
