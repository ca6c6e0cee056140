//! The model behind the store traits.

use super::Model;
use crate::clock::Clock;
use crate::contract::{Catalog, Store};
use crate::error::StoreResult;
use crate::journal::{EventId, JournalPage, JournalRange};
use crate::retention::*;
use crate::verbs::*;
use crate::views::*;
use async_trait::async_trait;
use orchestrator_core::{Document, JobId, Millis, NewJob, TaskId, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// A store in memory, for tests and simulations: it forgets everything when it is dropped.
pub struct ModelStore {
    model: Mutex<Model>,
    clock: Arc<dyn Clock>,
    changes: watch::Sender<u64>,
}

impl ModelStore {
    /// An empty store that goes by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        ModelStore { model: Mutex::default(), clock, changes: watch::channel(0).0 }
    }

    /// A copy of everything in it.
    pub fn model(&self) -> Model {
        self.with(|model, _| model.clone())
    }

    /// A look at everything in it, while nothing changes.
    pub fn inspect<T>(&self, look: impl FnOnce(&Model) -> T) -> T {
        self.with(|model, _| look(model))
    }

    /// One moment alone with the model. A panic inside a verb may leave a batch half done, but the
    /// test that panicked is over anyway.
    pub(crate) fn with<T>(&self, verb: impl FnOnce(&mut Model, Timestamp) -> T) -> T {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        verb(&mut model, now)
    }

    /// A verb after which more work may be ready.
    fn with_hint<T>(&self, verb: impl FnOnce(&mut Model, Timestamp) -> T) -> T {
        let answer = self.with(verb);
        self.changes.send_modify(|n| *n += 1);
        answer
    }
}

#[async_trait]
impl Store for ModelStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        Ok(self.with_hint(|model, now| model.submit(jobs, now)))
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        Ok(self.with(|model, now| model.lease(&ask, now)))
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        Ok(self.with(|model, now| model.extend(&held, ttl, now)))
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        Ok(self.with_hint(|model, now| model.settle(batch, now)))
    }

    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept> {
        Ok(self.with_hint(|model, now| model.expired(ask, now)))
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        Ok(self.with_hint(|model, now| model.control(&wishes, now)))
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        self.with_hint(|model, now| model.set_queues(changes, now));
        Ok(())
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        self.with(|model, now| model.register_workers(workers, now));
        Ok(())
    }

    async fn check(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        Ok(self.with(|model, now| model.change_flows(changes, now)))
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        self.with_hint(|model, _| model.set_limits(changes));
        Ok(())
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        Ok(self.with(|model, _| model.forget(&jobs)))
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        Ok(self.with(|model, _| model.forget_journal(before, limit)))
    }
}

#[async_trait]
impl Catalog for ModelStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn close(&self) {}

    async fn leads(&self) -> bool {
        true
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        Ok(self.with(|model, _| model.job(id)))
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        Ok(self.with(|model, _| model.task(id)))
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        Ok(self.with(|model, _| model.items(group, after, limit)))
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        Ok(self.with(|model, _| model.held(&attempts)))
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        Ok(self.with(|model, _| model.ids(&prefix, limit)))
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        Ok(self.with(|model, _| model.list(&filter, page)))
    }

    async fn stats(&self) -> StoreResult<Stats> {
        Ok(self.with(|model, _| model.stats()))
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        Ok(self.with(|model, _| model.daily(days)))
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        Ok(self.with(|model, _| model.paused_queues()))
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        Ok(self.with(|model, now| model.workers(now)))
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        Ok(self.with(|model, _| model.document(id)))
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        Ok(self.with(|model, _| model.dead_letters(&filter, after, limit)))
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        Ok(self.with(|model, _| model.flows(name.as_deref())))
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        Ok(self.with(|model, _| model.flow(&name, version)))
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        Ok(self.with(|model, _| model.limits()))
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        Ok(self.with(|model, _| model.removable(&ask)))
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        Ok(self.with(|model, _| model.journal(after, limit)))
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        Ok(self.with(|model, _| model.journal_range()))
    }
}
