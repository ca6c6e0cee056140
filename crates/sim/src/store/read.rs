//! Reads go the same way as verbs, and change nothing.

use super::SimStore;
use async_trait::async_trait;
use orchestrator_core::{Document, JobId, TaskId, Timestamp};
use orchestrator_store::*;
use std::sync::Arc;
use tokio::sync::watch;

/// Reads something from the model, on the way of a call.
macro_rules! read {
    ($self:ident.$read:ident($($argument:expr),*)) => {{
        let call = $self.enter(stringify!($read), false).await?;
        let answer = $self.world.store.$read($($argument),*).await?;
        call.leave().await?;
        Ok(answer)
    }};
}

#[async_trait]
impl Catalog for SimStore {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    async fn close(&self) {}

    async fn leads(&self) -> bool {
        self.world.store.leads().await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        read!(self.job(id))
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        read!(self.task(id))
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        read!(self.items(group, after, limit))
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        read!(self.held(attempts))
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        read!(self.ids(prefix, limit))
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        read!(self.list(filter, page))
    }

    async fn stats(&self) -> StoreResult<Stats> {
        read!(self.stats())
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        read!(self.daily(days))
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        read!(self.paused_queues())
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        read!(self.workers())
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        read!(self.document(id))
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        read!(self.dead_letters(filter, after, limit))
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        read!(self.flows(name))
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        read!(self.flow(name, version))
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        read!(self.limits())
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        read!(self.removable(ask))
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        read!(self.journal(after, limit))
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        read!(self.journal_range())
    }
}
