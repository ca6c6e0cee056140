//! Ends attempts whose lease ran out or whose time is up, and jobs whose deadline has passed, page by page.

use crate::Inner;
use orchestrator_core::Millis;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_store::{StoreResult, SweepAsk};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The running sweeps; they end when this is dropped.
pub struct Sweeper {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Sweeper {
    pub(crate) fn start(engine: Arc<Inner>) -> Sweeper {
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(engine, stop.clone()));
        Sweeper { stop: stop.drop_guard(), task }
    }

    /// Stops, and waits for the sweep that is under way.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the sweeper had ended before");
        }
    }
}

async fn run(engine: Arc<Inner>, stop: CancellationToken) {
    let mut rng = engine.config.rng.clone();
    while !stop.is_cancelled() {
        if let Err(error) = sweep(&engine, &stop, &mut rng).await {
            tracing::warn!(%error, "cannot look for overdue attempts, trying again");
            if planted(Bug::SweeperEndsAtError) {
                return;
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = sleep(pause(engine.config.sweep_every, &mut rng)) => {}
        }
    }
}

/// Ends all that is overdue now.
async fn sweep(engine: &Inner, stop: &CancellationToken, rng: &mut fastrand::Rng) -> StoreResult<()> {
    loop {
        let ask = SweepAsk { limit: engine.config.sweep_page, jitter: rng.f64() };
        let swept = engine.store.expired(ask).await?;
        if !swept.ended.is_empty() {
            tracing::info!(attempts = swept.ended.len(), "ended overdue attempts");
        }
        if !swept.timed_out.is_empty() {
            tracing::info!(jobs = swept.timed_out.len(), "ended jobs whose deadline has passed");
        }
        let nothing = swept.ended.is_empty() && swept.timed_out.is_empty();
        if !nothing {
            engine.ring_revoked();
        }
        engine.wake_ended(swept.ended.iter().map(|(held, settled)| (held.task.job, settled)));
        engine.waiters.wake(swept.timed_out);
        // A page that ended nothing would come back the same.
        if !swept.more || nothing || stop.is_cancelled() || planted(Bug::SweepOnePage) {
            return Ok(());
        }
    }
}

/// A quarter less or more, so that processes that started together do not sweep together.
fn pause(every: Millis, rng: &mut fastrand::Rng) -> Duration {
    Duration::from(every.max(Millis(1))).mul_f64(0.75 + 0.5 * rng.f64())
}
