//! A store that is measured: the same verbs, with what they did and how long they took recorded on the way.
//!
//! All of it stands in this one wrapper, so that backends know nothing of it, and it is put around a store only where
//! somebody reads metrics. One record per batch, not per task; what is the same for every replica is read by [`Facts`].

mod facts;
mod meters;

pub use facts::Facts;

use async_trait::async_trait;
use meters::{Meters, VerbMeters, failed};
use orchestrator_core::{Document, JobId, Millis, NewJob, TaskId, TaskState, Timestamp};
use orchestrator_store::meter::Meter;
use orchestrator_store::*;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// What this crate records.
pub const METERS: &[&[Meter]] = &[meters::METERS, facts::METERS];

/// A store, measured.
pub struct Measured {
    store: Arc<dyn Store>,
    meters: Meters,
}

impl Measured {
    /// Measures a store. A recorder must have been installed before, or nothing is recorded.
    pub fn wrap(store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Measured { store, meters: Meters::new() })
    }

    fn settled<'a>(&self, answers: impl Iterator<Item = (JobId, &'a Settled)>) {
        let (mut stale, mut ended) = (0, [0_u64; 3]);
        const ENDS: [TaskState; 3] = [TaskState::Completed, TaskState::Skipped, TaskState::Failed];
        for (job, settled) in answers {
            let Settled::Applied { state, job_ended, .. } = settled else {
                stale += 1;
                continue;
            };
            if let Some(at) = ENDS.iter().position(|end| end == state) {
                ended[at] += 1;
            }
            if *job_ended {
                // The id carries the moment of the submit.
                let took = self.store.now().since(job.created());
                self.meters.run_seconds.record(took.0 as f64 / 1e3);
            }
        }
        self.meters.stale.increment(stale);
        for (state, count) in ENDS.into_iter().zip(ended) {
            self.meters.ended(state, count);
        }
    }
}

/// Records how much a call carries, how long it took and whether it failed.
async fn timed<T>(
    verb: &VerbMeters,
    size: usize,
    call: impl Future<Output = StoreResult<T>>,
) -> StoreResult<T> {
    let started = Instant::now();
    let answer = told(call).await;
    verb.seconds.record(started.elapsed().as_secs_f64());
    verb.size.record(size as f64);
    answer
}

/// Records whether a call failed.
async fn told<T>(call: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    let answer = call.await;
    if let Err(error) = &answer {
        failed(error);
    }
    answer
}

#[async_trait]
impl Store for Measured {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        let answers = timed(&self.meters.submit, jobs.len(), self.store.submit(jobs)).await?;
        let [mut created, mut existing, mut conflict] = [0; 3];
        for answer in &answers {
            match answer {
                Submitted::Created { .. } => created += 1,
                Submitted::Existing { .. } => existing += 1,
                Submitted::Conflict { .. } => conflict += 1,
            }
        }
        self.meters.created.increment(created);
        self.meters.existing.increment(existing);
        self.meters.conflict.increment(conflict);
        Ok(answers)
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        let grant = told(self.store.lease(ask)).await?;
        if !grant.tasks.is_empty() {
            self.meters.lease.record(grant.tasks.len() as f64);
            self.meters.scheduled.increment(grant.tasks.len() as u64);
            let again = |leased: &&Leased| leased.counters.failures + leased.counters.crashes > 0;
            grant.tasks.iter().filter(again).for_each(|leased| self.meters.retry(leased));
        }
        Ok(grant)
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        timed(&self.meters.extend, held.len(), self.store.extend(held, ttl)).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        let jobs: Vec<JobId> = batch.iter().map(|settlement| settlement.held.task.job).collect();
        let answers = timed(&self.meters.settle, batch.len(), self.store.settle(batch)).await?;
        self.settled(jobs.into_iter().zip(&answers));
        Ok(answers)
    }

    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept> {
        let started = Instant::now();
        let swept = told(self.store.expired(ask)).await?;
        let found = swept.ended.len() + swept.timed_out.len();
        if found > 0 {
            self.meters.expired.seconds.record(started.elapsed().as_secs_f64());
            self.meters.expired.size.record(found as f64);
            self.meters.expiries.increment(swept.ended.len() as u64);
            self.meters.overdue.increment(swept.timed_out.len() as u64);
            self.settled(swept.ended.iter().map(|(held, settled)| (held.task.job, settled)));
        }
        Ok(swept)
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        timed(&self.meters.control, wishes.len(), self.store.control(wishes)).await
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        timed(&self.meters.forget, jobs.len(), self.store.forget(jobs)).await
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        told(self.store.set_queues(changes)).await
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        told(self.store.register(workers)).await
    }

    async fn check(&self) -> StoreResult<()> {
        told(self.store.check()).await
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        told(self.store.change_flows(changes)).await
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        told(self.store.set_limits(changes)).await
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        told(self.store.forget_journal(before, limit)).await
    }
}

#[async_trait]
impl Catalog for Measured {
    fn now(&self) -> Timestamp {
        self.store.now()
    }

    async fn close(&self) {
        self.store.close().await;
    }

    async fn leads(&self) -> bool {
        self.store.leads().await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.store.changes()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        told(self.store.job(id)).await
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        told(self.store.task(id)).await
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        told(self.store.items(group, after, limit)).await
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        told(self.store.held(attempts)).await
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        told(self.store.ids(prefix, limit)).await
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        told(self.store.list(filter, page)).await
    }

    async fn stats(&self) -> StoreResult<Stats> {
        told(self.store.stats()).await
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        told(self.store.daily(days)).await
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        told(self.store.paused_queues()).await
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        told(self.store.workers()).await
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        told(self.store.document(id)).await
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        told(self.store.dead_letters(filter, after, limit)).await
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        told(self.store.flows(name)).await
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        told(self.store.flow(name, version)).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        told(self.store.limits()).await
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        told(self.store.removable(ask)).await
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        told(self.store.journal(after, limit)).await
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        told(self.store.journal_range()).await
    }
}
