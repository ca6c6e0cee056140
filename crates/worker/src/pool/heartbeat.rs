//! Prolongs every lease that the pool holds, in one batch per beat.

use super::Shared;
use super::backoff::Backoff;
use orchestrator_core::Millis;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_store::Beat;
use std::sync::Arc;
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
        let mut held = shared.slots.held();
        if planted(Bug::BeatForgetsOne) {
            held.pop();
        }
        if held.is_empty() {
            continue;
        }
        match shared.source.extend(held.clone(), config.lease_ttl).await {
            Ok(beats) => {
                backoff.reset();
                let lost = held.iter().zip(&beats).filter(|(_, beat)| **beat == Beat::Lost);
                shared.drop_lost(lost.map(|(held, _)| *held).collect());
            }
            Err(_) if planted(Bug::BeatEndsAtError) => return,
            Err(error) => {
                pause = backoff.pause().min(every);
                tracing::warn!(%error, ?pause, leases = held.len(), "cannot prolong leases, trying again");
            }
        }
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
