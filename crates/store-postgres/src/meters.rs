//! What the store measures: one record per commit.

use metrics::Histogram;
use orchestrator_store::meter::COMMIT_SECONDS;
use std::sync::LazyLock;

/// How long commits took, with the writes that are sent along with them. It does nothing where no recorder was installed
/// before the first commit.
pub static COMMIT: LazyLock<Histogram> =
    LazyLock::new(|| metrics::histogram!(COMMIT_SECONDS.name, "store" => "postgres"));
