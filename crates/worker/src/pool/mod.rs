//! A pool of workers on a source of work.
//!
//! ```text
//!   source.lease ─▶ dispatcher ─▶ buffer ─▶ workers ─▶ settler ─▶ source.settle
//!                       ▲   (bounded by room)  │   (bounded channel)
//!                       └──── room is made ◀───┘        heartbeat ─▶ source.extend
//!                                                       watch     ─▶ source.lost
//! ```
//!
//! The dispatcher leases only what there is room for; a worker keeps its slot until its outcome is
//! handed over, so whatever lags behind slows the leasing down and nothing piles up. No lock is held
//! across an await and no task is spawned per attempt.

mod backoff;
mod config;
mod dispatcher;
mod heartbeat;
mod introduce;
mod pace;
mod runner;
mod settler;
mod shutdown;
mod slots;
mod span;
mod stats;
mod watch;

pub use config::{DEFAULT_MAX_OUTPUT, OnSettled, PoolConfig, Prefetch, Report};
pub use introduce::Introduction;
pub use shutdown::Summary;
pub use stats::Stats;

use crate::handler::Registry;
use crate::meters::Meters;
use crate::source::WorkSource;
use orchestrator_core::{LimitKey, Millis};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// What the parts of a pool share.
struct Shared {
    source: Arc<dyn WorkSource>,
    registry: Registry,
    config: PoolConfig,
    slots: slots::Slots,
    counters: stats::Counters,
    meters: Meters,
    /// Fires when nothing more is to be leased.
    stopping: CancellationToken,
}

impl Shared {
    fn stats(&self) -> Stats {
        let (running, buffered) = self.slots.counts();
        self.counters.snapshot(running, buffered)
    }
}

/// A running pool. Dropped without [`Pool::shutdown`] it stops in the background, without grace.
pub struct Pool {
    shared: Arc<Shared>,
    deadline: Sender<Option<Instant>>,
    summary: Receiver<Option<Summary>>,
}

impl Pool {
    /// Starts a pool; to be called inside a Tokio runtime.
    pub fn start(source: Arc<dyn WorkSource>, registry: Registry, mut config: PoolConfig) -> Pool {
        config.max_workers = config.max_workers.max(1);
        let workers = config.max_workers;
        let mut rng = config.rng.clone();
        let shared = Arc::new(Shared {
            slots: slots::Slots::new(workers, config.prefetch),
            counters: stats::Counters::default(),
            meters: Meters::new(&registry, workers),
            stopping: CancellationToken::new(),
            source,
            registry,
            config,
        });
        let (done, inbox) = mpsc::channel(settler::SETTLE_BATCH);
        let mut members = JoinSet::new();
        members.spawn(dispatcher::run(shared.clone(), done.clone(), rng.fork()));
        for worker in 0..workers {
            members.spawn(runner::run(shared.clone(), worker, done.clone()));
        }
        let spawn_settler = tokio::spawn(settler::run(shared.clone(), inbox, rng.fork()));
        let spawn_heartbeat = tokio::spawn(heartbeat::run(shared.clone(), rng.fork()));
        let spawn_watch = tokio::spawn(watch::run(shared.clone(), rng.fork()));
        let spawn_introduce = tokio::spawn(introduce::run(shared.clone()));
        let (deadline, deadline_seen) = channel(None);
        let crew = shutdown::Crew {
            shared: shared.clone(),
            members,
            settler: AbortOnDropHandle::new(spawn_settler),
            heartbeat: AbortOnDropHandle::new(spawn_heartbeat),
            watch: AbortOnDropHandle::new(spawn_watch),
            introduce: AbortOnDropHandle::new(spawn_introduce),
            done,
            deadline: deadline_seen,
        };
        let (tell, summary) = channel(None);
        tokio::spawn(async move {
            let summary = crew.supervise().await;
            tell.send_replace(Some(summary));
        });
        Pool { shared, deadline, summary }
    }

    /// A look at what runs and what has been done.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// How many attempts run under each limit key, in order of the keys.
    pub fn running_by_key(&self) -> Vec<(LimitKey, u32)> {
        self.shared.slots.by_key()
    }

    /// Stops with the grace of the configuration.
    pub async fn stop(&self) -> Summary {
        self.shutdown(self.shared.config.grace).await
    }

    /// Stops: nothing more is leased, waiting tasks go back at once, running ones may go on for
    /// `grace`; then their tokens fire and they go back, too. Called again while it stops, the
    /// earlier end counts, so that a grace of zero ends it at once.
    pub async fn shutdown(&self, grace: Millis) -> Summary {
        self.end_by(grace);
        let mut summary = self.summary.clone();
        // The teller only goes without a word when the whole runtime ends.
        summary.wait_for(Option::is_some).await.ok().and_then(|told| *told).unwrap_or_default()
    }

    fn end_by(&self, grace: Millis) {
        const LONGEST: Duration = Duration::from_secs(86_400 * 365);
        let end = Instant::now() + Duration::from(grace).min(LONGEST);
        self.deadline
            .send_modify(|deadline| *deadline = Some(deadline.map_or(end, |before| before.min(end))));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end_by(Millis(0));
    }
}
