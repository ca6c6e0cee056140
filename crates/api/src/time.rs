//! The server's clock.

use orchestrator_core::Timestamp;
use serde::{Deserialize, Serialize};

/// What time it is where jobs are kept: what moments and ages in answers are reckoned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerTime {
    /// Now.
    pub now: Timestamp,
}
