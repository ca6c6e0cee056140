//! What a pool has done so far.

use orchestrator_core::{Outcome, TaskState};
use orchestrator_store::Settled;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A look at a pool. All but the first two count since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Handlers that run now.
    pub running: u64,
    /// Leased tasks that wait for a worker.
    pub buffered: u64,
    /// Tasks leased.
    pub leased: u64,
    /// Ended well.
    pub completed: u64,
    /// Ended with nothing to do.
    pub skipped: u64,
    /// Ended in the dead letters.
    pub failed: u64,
    /// Failed, and will be tried again.
    pub retried: u64,
    /// One leg done, with another to come.
    pub continued: u64,
    /// Given back unharmed.
    pub released: u64,
    /// Outcomes that came after their lease was gone, and changed nothing.
    pub stale: u64,
    /// Attempts dropped here because their lease was gone.
    pub lost: u64,
    /// Outcomes that the source refused for good.
    pub refused: u64,
}

impl Stats {
    /// Outcomes that the source has answered.
    pub fn settled(&self) -> u64 {
        self.completed
            + self.skipped
            + self.failed
            + self.retried
            + self.continued
            + self.released
            + self.stale
            + self.refused
    }
}

#[derive(Default)]
pub(super) struct Counters {
    pub leased: AtomicU64,
    pub lost: AtomicU64,
    pub refused: AtomicU64,
    completed: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
    retried: AtomicU64,
    continued: AtomicU64,
    released: AtomicU64,
    stale: AtomicU64,
}

impl Counters {
    /// Notes what the source made of an outcome.
    pub fn settled(&self, outcome: &Outcome, settled: &Settled) {
        let counter = match (settled, outcome) {
            (Settled::Stale, _) => &self.stale,
            (_, Outcome::Released) => &self.released,
            (_, Outcome::Continue(_)) => &self.continued,
            (Settled::Applied { state: TaskState::Completed, .. }, _) => &self.completed,
            (Settled::Applied { state: TaskState::Skipped, .. }, _) => &self.skipped,
            (Settled::Applied { state: TaskState::Failed, .. }, _) => &self.failed,
            (Settled::Applied { .. }, _) => &self.retried,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub fn snapshot(&self, running: usize, buffered: usize) -> Stats {
        Stats {
            running: running as u64,
            buffered: buffered as u64,
            leased: self.leased.load(Relaxed),
            completed: self.completed.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            failed: self.failed.load(Relaxed),
            retried: self.retried.load(Relaxed),
            continued: self.continued.load(Relaxed),
            released: self.released.load(Relaxed),
            stale: self.stale.load(Relaxed),
            lost: self.lost.load(Relaxed),
            refused: self.refused.load(Relaxed),
        }
    }
}
