//! What the writer measures: one record per commit, never one per request.

use metrics::Histogram;
use orchestrator_store::meter::{COMMIT_REQUESTS, COMMIT_SECONDS};
use std::time::Duration;

/// The handles, looked up once. They do nothing where no recorder was installed before the store was opened.
pub struct Meters {
    seconds: Histogram,
    requests: Histogram,
}

impl Meters {
    /// Looks them up.
    pub fn new() -> Self {
        Meters {
            seconds: metrics::histogram!(COMMIT_SECONDS.name, "store" => "sqlite"),
            requests: metrics::histogram!(COMMIT_REQUESTS.name, "store" => "sqlite"),
        }
    }

    /// A commit took so long and carried so many requests.
    pub fn committed(&self, took: Duration, requests: usize) {
        self.seconds.record(took.as_secs_f64());
        self.requests.record(requests as f64);
    }
}
