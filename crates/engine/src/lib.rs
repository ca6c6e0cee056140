//! The engine: takes jobs in, serves the workers of this process, tells who waits that a job has
//! ended, sweeps what is overdue, and removes what is old. [`JobHandle`] is what a program that embeds it works with.
//!
//! It knows the store contract and never a backend. It keeps no state of its own that matters:
//! whatever it holds in memory is a hint, the store is the truth, and any number of engines may
//! work on one store.

mod document;
mod error;
mod flows;
mod handle;
mod intake;
mod local;
mod measured;
mod progress;
mod retention;
mod stuck;
mod submit;
mod sweeper;
mod waiters;

pub use document::DocumentFields;
pub use error::{FlowError, JobError, Verb};
pub use handle::JobHandle;
pub use intake::{Intake, JobFields, Rules, unknown_handler};
pub use measured::{Facts, METERS, Measured};
pub use progress::{Progress, TaskProgress};
pub use retention::{PageSize, Pruned, Retainer, Retention, RetentionError};
pub use stuck::{StuckJob, Why};
pub use submit::SubmitError;
pub use sweeper::Sweeper;
pub use waiters::{WaitError, Waited};

use orchestrator_core::Millis;
use orchestrator_core::job::DEFAULT_MAX_PAYLOAD;
use orchestrator_store::Store;
use orchestrator_worker::WorkSource;
use std::sync::Arc;
use tokio::sync::watch;

/// How an engine works.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The largest payload that is taken in, in bytes.
    pub max_payload: usize,
    /// How often overdue attempts are looked for.
    pub sweep_every: Millis,
    /// The most overdue attempts that one commit ends.
    pub sweep_page: u32,
    /// How often the store is asked for what other processes did.
    pub poll_every: Millis,
    /// Spreads sweeps, and the retries of what they end.
    pub rng: fastrand::Rng,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            max_payload: DEFAULT_MAX_PAYLOAD,
            sweep_every: Millis::secs(1),
            sweep_page: 1000,
            poll_every: Millis(200),
            rng: fastrand::Rng::new(),
        }
    }
}

struct Inner {
    store: Arc<dyn Store>,
    config: EngineConfig,
    waiters: waiters::Waiters,
    /// Rises when this process took leases away.
    revoked: watch::Sender<u64>,
    plans: flows::PlanCache,
}

impl Inner {
    /// Tells the pools of this process to look whether they still hold what they run.
    fn ring_revoked(&self) {
        self.revoked.send_modify(|rung| *rung += 1);
    }
}

/// A handle on the engine; clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

impl Engine {
    /// An engine on a store.
    pub fn new(store: Arc<dyn Store>, config: EngineConfig) -> Self {
        Engine(Arc::new(Inner {
            store,
            config,
            waiters: waiters::Waiters::default(),
            revoked: watch::Sender::new(0),
            plans: flows::PlanCache::default(),
        }))
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// The source of work for a pool in this process.
    pub fn source(&self) -> Arc<dyn WorkSource> {
        Arc::new(local::LocalSource::new(self.0.clone()))
    }

    /// Starts to look for overdue attempts; to be called inside a Tokio runtime.
    pub fn start_sweeper(&self) -> Sweeper {
        Sweeper::start(self.0.clone())
    }
}
