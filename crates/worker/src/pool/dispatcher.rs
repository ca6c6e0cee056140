//! Leases tasks as room is made, never more than that.

use super::Shared;
use super::backoff::Backoff;
use super::settler::{Done, give_back};
use super::slots::{LONGEST_IN_BUFFER, Room};
use orchestrator_core::Millis;
use orchestrator_store::LeaseAsk;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// How long one ask waits at the source. Room that is made meanwhile is used by the next ask.
const LEASE_WAIT: Duration = Duration::from_secs(5);

/// Runs until the pool stops.
pub(super) async fn run(shared: Arc<Shared>, done: mpsc::Sender<Done>, rng: fastrand::Rng) {
    let config = &shared.config;
    let mut backoff = Backoff::new(rng);
    let handlers: Vec<_> = shared.registry.names().cloned().collect();
    while let Some(room) = room(&shared, &done).await {
        // With tasks in the buffer it must be back in time to see whether they get stale.
        let wait = if room.behind_others { LONGEST_IN_BUFFER } else { LEASE_WAIT };
        let ask = LeaseAsk {
            worker: config.worker.clone(),
            queues: config.queues.clone(),
            handlers: handlers.clone(),
            slots: room.slots,
            ttl: config.lease_ttl,
            hold: Millis(0),
        };
        match shared.source.lease(ask, wait, &shared.stopping).await {
            Ok(tasks) => {
                backoff.reset();
                shared.counters.leased.fetch_add(tasks.len() as u64, Relaxed);
                give_back(shared.slots.admit(tasks, config.lease_ttl), &done).await;
            }
            Err(error) => {
                let pause = backoff.pause();
                tracing::warn!(%error, ?pause, "cannot lease tasks, trying again");
                tokio::select! {
                    biased;
                    () = shared.stopping.cancelled() => {}
                    () = sleep(pause) => {}
                }
            }
        }
    }
}

/// Waits until a lease is worth its commit. `None` when the pool stops.
async fn room(shared: &Shared, done: &mpsc::Sender<Done>) -> Option<Room> {
    while !shared.stopping.is_cancelled() {
        // Before the next ask, or that would fetch them right back.
        give_back(shared.slots.shed(), done).await;
        if let Some(room) = shared.slots.room() {
            return Some(room);
        }
        tokio::select! {
            biased;
            () = shared.stopping.cancelled() => {}
            () = shared.slots.room_made() => {}
            () = sleep(LONGEST_IN_BUFFER) => {}
        }
    }
    None
}
