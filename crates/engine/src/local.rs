//! The store of this process as a source of work: no hop between a worker and the store's verbs.

use crate::Inner;
use async_trait::async_trait;
use orchestrator_core::{JobId, Millis, Timestamp};
use orchestrator_store::{Beat, Held, LeaseAsk, Leased, Settled, Settlement, WorkerNote};
use orchestrator_worker::{SourceError, WorkSource};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) struct LocalSource(Arc<Inner>);

impl LocalSource {
    pub fn new(engine: Arc<Inner>) -> Self {
        LocalSource(engine)
    }

    /// When to ask again if nothing is heard before: when a task falls due, and to find what other
    /// processes did.
    fn next_ask(&self, next_at: Option<Timestamp>) -> Instant {
        let poll = self.0.config.poll_every;
        let due = next_at.map_or(poll, |at| at.since(self.0.store.now()));
        // At least a millisecond, or a due time that the store does not act upon would be asked
        // for without pause.
        Instant::now() + Duration::from(due.min(poll).max(Millis(1)))
    }
}

#[async_trait]
impl WorkSource for LocalSource {
    async fn lease(
        &self,
        ask: LeaseAsk,
        wait: Duration,
        stop: &CancellationToken,
    ) -> Result<Vec<Leased>, SourceError> {
        let end = Instant::now() + wait;
        let mut changes = self.0.store.changes();
        loop {
            // Marked as seen before the ask: what changes from here on wakes.
            changes.borrow_and_update();
            let hold = self.0.config.poll_every.min(end.saturating_duration_since(Instant::now()).into());
            let grant = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(vec![]),
                grant = self.0.store.lease(LeaseAsk { hold, ..ask.clone() }) => grant?,
            };
            if !grant.tasks.is_empty() || stop.is_cancelled() || Instant::now() >= end {
                return Ok(grant.tasks);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(vec![]),
                () = changed(&mut changes) => {}
                () = sleep_until(self.next_ask(grant.next_at).min(end)) => {}
            }
        }
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> Result<Vec<Beat>, SourceError> {
        Ok(self.0.store.extend(held, ttl).await?)
    }

    async fn lost(&self, held: Vec<Held>) -> Result<Vec<Held>, SourceError> {
        let holds = self.0.store.held(held.clone()).await?;
        Ok(held.into_iter().zip(holds).filter(|(_, holds)| !holds).map(|(held, _)| held).collect())
    }

    fn revoked(&self) -> watch::Receiver<u64> {
        self.0.revoked.subscribe()
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, SourceError> {
        let jobs: Vec<_> = batch.iter().map(|settlement| settlement.held.task.job).collect();
        let answers = self.0.store.settle(batch).await?;
        self.0.wake_ended(jobs.into_iter().zip(&answers));
        Ok(answers)
    }

    async fn register(&self, worker: WorkerNote) -> Result<(), SourceError> {
        Ok(self.0.store.register(vec![worker]).await?)
    }
}

impl Inner {
    /// Wakes who waits for jobs that ended. A stale settlement may be the repetition of one whose answer got
    /// lost, and then only this tells.
    pub(crate) fn wake_ended<'a>(&self, answers: impl Iterator<Item = (JobId, &'a Settled)>) {
        self.waiters.wake(answers.filter_map(|(job, settled)| match settled {
            Settled::Applied { job_ended: false, .. } => None,
            Settled::Applied { job_ended: true, .. } | Settled::Stale => Some(job),
        }));
    }
}

/// Waits for a change; for ever once the store has gone, as its verbs will tell.
async fn changed(changes: &mut watch::Receiver<u64>) {
    if changes.changed().await.is_err() {
        std::future::pending().await
    }
}
