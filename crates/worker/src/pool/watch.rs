//! Finds out soon when leases were taken away: a cancel, a deadline, or a sweep of another process.
//!
//! A heartbeat tells it too, but heartbeats are rare, and each is a write. This only asks.

use super::Shared;
use super::backoff::Backoff;
use orchestrator_store::Held;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Runs until it is aborted; it goes on while the pool stops, as what runs then can be cancelled too.
pub(super) async fn run(shared: Arc<Shared>, rng: fastrand::Rng) {
    let mut bell = shared.source.revoked();
    let every = Duration::from(shared.config.watch).max(Duration::from_millis(1));
    let mut backoff = Backoff::new(rng);
    let mut pause = every;
    loop {
        tokio::select! {
            biased;
            () = rung(&mut bell) => {}
            () = sleep(pause) => {}
        }
        pause = every;
        let held = shared.slots.held();
        if held.is_empty() {
            continue;
        }
        match shared.source.lost(held).await {
            Ok(lost) => {
                backoff.reset();
                shared.drop_lost(lost.into_iter().collect());
            }
            Err(error) => {
                pause = backoff.pause().max(every);
                tracing::warn!(%error, ?pause, "cannot ask which leases are lost, trying again");
            }
        }
    }
}

/// Waits for the bell; for ever where nobody can ring it any more.
async fn rung(bell: &mut watch::Receiver<u64>) {
    if bell.changed().await.is_err() {
        std::future::pending().await
    }
}

impl Shared {
    /// Stops what runs without a lease and forgets what waits without one.
    pub(super) fn drop_lost(&self, lost: HashSet<Held>) {
        if !lost.is_empty() {
            let unstarted = self.slots.lose(&lost);
            self.counters.lost.fetch_add(unstarted as u64, Relaxed);
        }
    }
}
