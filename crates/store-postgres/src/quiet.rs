//! Asks for tasks that have just been answered with all that there was. Until something changes, or a moment comes that
//! somebody waits for, the same ask can only be answered with nothing: it waits, as long as it allows, instead of going to
//! the server for that.

use orchestrator_core::Timestamp;
use orchestrator_store::{Clock, LeaseAsk, LeaseGrant};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// So many different asks are remembered; a process has one or a few.
const MOST: usize = 64;

/// What was asked for: queues and handlers.
type Asked = (Vec<Arc<str>>, Vec<Arc<str>>);

/// The state of things when an ask was answered with less than it wanted.
#[derive(Clone, Copy)]
struct Seen {
    changes: u64,
    at: Instant,
    next_at: Option<Timestamp>,
}

/// Remembers asks that took all that there was.
#[derive(Default)]
pub struct Quiet(Mutex<FxHashMap<Asked, Seen>>);

impl Quiet {
    fn seen(&self) -> MutexGuard<'_, FxHashMap<Asked, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the ask can have nothing, at most until the time is over that it allows since the last one was made.
    pub async fn wait(&self, ask: &LeaseAsk, changes: &mut watch::Receiver<u64>, clock: &dyn Clock) {
        let Some(seen) = self.seen().get(&asked(ask)).copied() else { return };
        let hold = seen.at + Duration::from(ask.hold);
        let due = seen.next_at.map(|at| Instant::now() + Duration::from(at.since(clock.now())));
        let until = due.map_or(hold, |due| due.min(hold));
        // An error is the end of the wait, or of the store.
        let _ = timeout_at(until, changes.wait_for(|n| *n != seen.changes)).await;
    }

    /// Notes how an ask was answered that was made when so much had changed.
    pub fn note(&self, ask: &LeaseAsk, changes: u64, grant: &LeaseGrant) {
        let mut seen = self.seen();
        if grant.tasks.len() >= ask.slots as usize {
            seen.remove(&asked(ask));
            return;
        }
        if seen.len() >= MOST {
            seen.clear();
        }
        seen.insert(asked(ask), Seen { changes, at: Instant::now(), next_at: grant.next_at });
    }
}

fn asked(ask: &LeaseAsk) -> Asked {
    (ask.queues.to_vec(), ask.handlers.to_vec())
}
