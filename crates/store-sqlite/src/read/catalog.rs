//! The catalog of the contract, on the readers.

use super::{flows, jobs, journal, list, overview, removable, stats};
use crate::SqliteStore;
use async_trait::async_trait;
use orchestrator_core::{Document, JobId, TaskId, Timestamp};
use orchestrator_store::{
    Catalog, DayStats, DeadLetter, EventId, FlowView, Held, JobFilter, JobView, JournalPage, JournalRange,
    LimitView, LineFilter, Page, PausedQueue, RemovableAsk, RemovablePage, Stats, StoreResult, TaskView,
    WorkerView,
};
use std::sync::Arc;
use tokio::sync::watch;

#[async_trait]
impl Catalog for SqliteStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn close(&self) {
        SqliteStore::close(self);
    }

    async fn leads(&self) -> bool {
        true
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        match self.readers.read_here(|at| jobs::job_at_hand(at, id))? {
            Some(job) => Ok(Some(job)),
            None => self.readers.read(move |at| jobs::job(at, id)).await,
        }
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        self.readers.read(move |at| jobs::task(at, id)).await
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        self.readers.read(move |at| jobs::items(at, group, after, limit)).await
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        self.readers
            .read(move |at| {
                let sql = "SELECT EXISTS (SELECT 1 FROM leases WHERE task = ?1 AND attempt = ?2)";
                let mut statement = at.conn.prepare_cached(sql)?;
                let mut holds = |held: &Held| match at.ids.packed(held.task) {
                    Some(task) => statement.query_row((task, held.attempt), |row| row.get(0)),
                    None => Ok(false),
                };
                attempts.iter().map(&mut holds).collect()
            })
            .await
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        self.readers.read(move |at| list::ids(at, &prefix, limit)).await
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        self.readers.read(move |at| list::list(at, &filter, page)).await
    }

    async fn stats(&self) -> StoreResult<Stats> {
        self.readers.read(|at| stats::stats(at.conn)).await
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        self.readers.read(move |at| overview::daily(at.conn, days)).await
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        self.readers.read(|at| overview::paused_queues(at.conn)).await
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        let now = self.clock.now();
        self.readers.read(move |at| overview::workers(at.conn, now)).await
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        self.readers.read(move |at| jobs::document(at, id)).await
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        self.readers.read(move |at| jobs::dead_letters(at, &filter, after, limit)).await
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        self.readers.read(move |at| flows::flows(at.conn, name.as_deref())).await
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        self.readers.read(move |at| flows::flow(at.conn, &name, version)).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.readers.read(|at| stats::limits(at.conn)).await
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        self.readers.read(move |at| removable::removable(at, &ask)).await
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        self.readers.read(move |at| journal::journal(at, after, limit)).await
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        self.readers.read(|at| journal::range(at.conn)).await
    }
}
