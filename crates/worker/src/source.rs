//! Where a worker gets tasks from: the engine in this process, or a server far away.

use async_trait::async_trait;
use orchestrator_core::Millis;
use orchestrator_store::{Beat, Held, LeaseAsk, Leased, Settled, Settlement, StoreError, WorkerNote};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A source that did not answer. The worker tries again, with growing pauses.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The local store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A server elsewhere failed, or cannot be reached.
    #[error("{source}")]
    Remote {
        /// Whether it will never take this very request.
        refusal: bool,
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SourceError {
    /// Whether the source will never take this very request, however often it is repeated.
    pub fn is_refusal(&self) -> bool {
        matches!(self, SourceError::Store(StoreError::Invalid(_)) | SourceError::Remote { refusal: true, .. })
    }
}

/// Hands out tasks and takes their outcomes back.
#[async_trait]
pub trait WorkSource: Send + Sync + 'static {
    /// Up to `ask.slots` tasks. Answers as soon as there is one, with none after `wait`, and as soon
    /// as it can once `stop` fires. The caller never drops the call half-way: a lease that was
    /// granted to nobody would have to run out, and would count as a crash.
    async fn lease(
        &self,
        ask: LeaseAsk,
        wait: Duration,
        stop: &CancellationToken,
    ) -> Result<Vec<Leased>, SourceError>;

    /// Prolongs leases.
    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> Result<Vec<Beat>, SourceError>;

    /// Which of these leases are not held any more. It prolongs none.
    async fn lost(&self, held: Vec<Held>) -> Result<Vec<Held>, SourceError>;

    /// A number that rises when leases may have been taken away. A hint only: [`WorkSource::lost`] tells which,
    /// and is asked now and then anyway.
    fn revoked(&self) -> watch::Receiver<u64>;

    /// Hands in outcomes. Durable when it answers.
    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, SourceError>;

    /// Says that a worker is there, or that it is gone. A source that keeps no list of workers need not do anything.
    async fn register(&self, worker: WorkerNote) -> Result<(), SourceError> {
        let _ = worker;
        Ok(())
    }
}
