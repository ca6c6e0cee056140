//! Several stores on one database that look like one.

use async_trait::async_trait;
use orchestrator_core::{Document, JobId, Millis, NewJob, TaskId, Timestamp};
use orchestrator_store::*;
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::Server;
use std::sync::Arc;
use tokio::sync::watch;

/// One store that leases and leads, for that depends on what a process remembers of its own doing: which line it served
/// last. Every other change comes from a process that has just started, as a command of the shell does, and knows none
/// of the names that others have made.
pub struct Replicas {
    url: String,
    clock: Arc<dyn Clock>,
    worker: Arc<PostgresStore>,
    reader: Arc<PostgresStore>,
}

impl Replicas {
    /// Opens those that stay.
    pub async fn open(url: &str, clock: Arc<dyn Clock>) -> Arc<Replicas> {
        let worker = open(url, &clock).await;
        wait_for_a_leader(url).await;
        let reader = open(url, &clock).await;
        Arc::new(Replicas { url: url.to_owned(), clock, worker, reader })
    }

    /// A process that has just started.
    async fn stranger(&self) -> Arc<PostgresStore> {
        open(&self.url, &self.clock).await
    }
}

async fn open(url: &str, clock: &Arc<dyn Clock>) -> Arc<PostgresStore> {
    let options = Options { clock: Some(clock.clone()), writers: 2, readers: 1, ..Options::new(url) };
    PostgresStore::open(options).await.unwrap()
}

async fn wait_for_a_leader(url: &str) {
    let database = url.rsplit('/').next().unwrap();
    let sql = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted";
    while Server::shared().sql(database, sql).trim() == "0" {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl Store for Replicas {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        self.stranger().await.submit(jobs).await
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        self.worker.lease(ask).await
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        self.stranger().await.extend(held, ttl).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        self.stranger().await.settle(batch).await
    }

    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept> {
        self.worker.expired(ask).await
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        self.stranger().await.control(wishes).await
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        self.stranger().await.set_queues(changes).await
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        self.stranger().await.register(workers).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.stranger().await.check().await
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        self.stranger().await.change_flows(changes).await
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        self.stranger().await.set_limits(changes).await
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        self.stranger().await.forget(jobs).await
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        self.stranger().await.forget_journal(before, limit).await
    }
}

#[async_trait]
impl Catalog for Replicas {
    fn now(&self) -> Timestamp {
        self.worker.now()
    }

    async fn close(&self) {
        self.worker.close().await;
        self.reader.close().await;
    }

    async fn leads(&self) -> bool {
        self.worker.leads().await
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        self.reader.removable(ask).await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.worker.changes()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        self.reader.job(id).await
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        self.reader.task(id).await
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        self.reader.items(group, after, limit).await
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        self.reader.held(attempts).await
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        self.reader.ids(prefix, limit).await
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        self.reader.list(filter, page).await
    }

    async fn stats(&self) -> StoreResult<Stats> {
        self.reader.stats().await
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        self.reader.daily(days).await
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        self.reader.paused_queues().await
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        self.reader.workers().await
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        self.reader.document(id).await
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        self.reader.dead_letters(filter, after, limit).await
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        self.reader.flows(name).await
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        self.reader.flow(name, version).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.reader.limits().await
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        self.reader.journal(after, limit).await
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        self.reader.journal_range().await
    }
}
