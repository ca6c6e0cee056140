//! Prolongs every lease that the pool holds, in one batch per beat.

use super::Shared;
use super::backoff::Backoff;
use orchestrator_core::Millis;
use orchestrator_store::{Beat, Held};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::sleep;

/// Runs until it is aborted; it goes on while the pool stops, as running attempts need it.
pub(super) async fn run(shared: Arc<Shared>, rng: fastrand::Rng) {
    let config = &shared.config;
    let every = interval(config.heartbeat, config.lease_ttl);
    let mut backoff = Backoff::new(rng);
    let mut pause = every;
    loop {
        sleep(pause).await;
        pause = every;
        let held = shared.slots.held();
        if held.is_empty() {
            continue;
        }
        match shared.source.extend(held.clone(), config.lease_ttl).await {
            Ok(beats) => {
                backoff.reset();
                drop_lost(&shared, &held, &beats);
            }
            Err(error) => {
                pause = backoff.pause().min(every);
                tracing::warn!(%error, ?pause, leases = held.len(), "cannot prolong leases, trying again");
            }
        }
    }
}

fn drop_lost(shared: &Shared, held: &[Held], beats: &[Beat]) {
    let lost: HashSet<Held> =
        held.iter().zip(beats).filter(|(_, beat)| **beat == Beat::Lost).map(|(held, _)| *held).collect();
    if !lost.is_empty() {
        let unstarted = shared.slots.lose(&lost);
        shared.counters.lost.fetch_add(unstarted as u64, Relaxed);
    }
}

/// Two beats may fail before a lease runs out.
fn interval(heartbeat: Millis, ttl: Millis) -> Duration {
    Millis(heartbeat.0.min(ttl.0 / 3).max(1)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_prolonged_at_least_three_times_in_its_life() {
        assert_eq!(interval(Millis::secs(30), Millis::secs(600)), Duration::from_secs(30));
        assert_eq!(interval(Millis::secs(30), Millis::secs(30)), Duration::from_secs(10));
        assert_eq!(interval(Millis(0), Millis(0)), Duration::from_millis(1));
    }
}
