//! Removes finished work that is older than a setting, archived first where that is asked for.
//!
//! One process does it ([`Catalog::leads`](orchestrator_store::Catalog::leads)), in small transactions with a rest
//! after each, so that most of the store's time is left to the others. Nothing is removed that was not written to the
//! archive and synced before; a crash in between archives a job twice and never loses one.

mod archive;
mod prune;

use archive::Archive;
pub use prune::{Pruned, RetentionError};

use crate::{Engine, Inner};
use orchestrator_core::{Millis, Timestamp};
use orchestrator_store::Bygone;
use prune::Walk;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What is kept how long, and where it goes.
#[derive(Clone, Debug)]
pub struct Retention {
    /// How long jobs stay that completed; none: for ever.
    pub completed: Option<Millis>,
    /// How long jobs stay that failed, timed out or were cancelled.
    pub failed: Option<Millis>,
    /// How long jobs stay that have a dead letter on which nobody has decided.
    pub dead_letters: Option<Millis>,
    /// How long entries of the journal stay.
    pub journal: Option<Millis>,
    /// The directory to which jobs are written before they go.
    pub archive: Option<PathBuf>,
    /// How often to look.
    pub every: Millis,
    /// How much one transaction removes.
    pub page: PageSize,
    /// How long to rest after a transaction, in multiples of what it took.
    pub rest: u32,
}

/// How much is done at once.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    /// So many jobs are removed at most by one transaction.
    pub jobs: u32,
    /// So many tasks, unless one job alone has more.
    pub tasks: u32,
    /// So many jobs are looked at by one read.
    pub look: u32,
    /// So many entries of the journal are removed by one transaction.
    pub journal: u32,
}

impl Default for PageSize {
    fn default() -> Self {
        PageSize { jobs: 500, tasks: 5_000, look: 2_000, journal: 1_000 }
    }
}

impl Default for Retention {
    /// Everything stays.
    fn default() -> Self {
        Retention {
            completed: None,
            failed: None,
            dead_letters: None,
            journal: None,
            archive: None,
            every: Millis::mins(1),
            page: PageSize::default(),
            rest: 4,
        }
    }
}

impl Retention {
    /// Whether everything stays.
    pub fn is_off(&self) -> bool {
        [self.completed, self.failed, self.dead_letters, self.journal].iter().all(Option::is_none)
    }

    fn bygone(&self, now: Timestamp) -> Bygone {
        let before = |span: Option<Millis>| span.map(|span| now - span);
        Bygone {
            completed: before(self.completed),
            failed: before(self.failed),
            dead: before(self.dead_letters),
        }
    }
}

/// The running retention; it ends when this is dropped.
pub struct Retainer {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Retainer {
    /// Stops, and waits for the transaction that is under way.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the retention had ended before");
        }
    }
}

impl Engine {
    /// Starts to remove what is old enough; to be called inside a Tokio runtime. Nothing starts where everything stays.
    pub fn start_retention(&self, retention: Retention) -> Option<Retainer> {
        if retention.is_off() {
            return None;
        }
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(self.0.clone(), retention, stop.clone()));
        Some(Retainer { stop: stop.drop_guard(), task })
    }

    /// Removes all that is old enough now, and tells how far it is after each transaction.
    pub async fn prune(
        &self,
        retention: &Retention,
        told: impl FnMut(&Pruned) + Send,
    ) -> Result<Pruned, RetentionError> {
        let mut walk = Walk::new(&*self.0.store, retention);
        walk.on(&CancellationToken::new(), told).await
    }

    /// How much would be removed now. The journal is not counted.
    pub async fn prunable(&self, retention: &Retention) -> Result<Pruned, RetentionError> {
        Walk::new(&*self.0.store, retention).count().await
    }
}

/// After so long a walk begins at the oldest job again, instead of where the last one ended: what it stepped over, because
/// it was alive or too young then, may be old enough by now.
const WHOLE: Millis = Millis::hours(1);

async fn run(engine: Arc<Inner>, retention: Retention, stop: CancellationToken) {
    let store = &*engine.store;
    let mut walk = Walk::new(store, &retention);
    let mut begun = store.now();
    while !stop.is_cancelled() {
        if store.leads().await {
            if store.now().since(begun) >= WHOLE {
                walk = Walk::new(store, &retention);
                begun = store.now();
            }
            match walk.on(&stop, |_| {}).await {
                Ok(pruned) if pruned == Pruned::default() => {}
                Ok(Pruned { jobs, archived, journal, .. }) => {
                    tracing::info!(jobs, archived, journal, "removed what is older than is kept");
                }
                Err(error @ RetentionError::Elsewhere { .. }) => {
                    tracing::debug!(%error, "somebody else is at it")
                }
                Err(error) => tracing::warn!(%error, "cannot remove old jobs, trying again later"),
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = tokio::time::sleep(Duration::from(retention.every.max(Millis(1)))) => {}
        }
    }
}
