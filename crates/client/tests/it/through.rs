//! A store of which everything that has a route is asked over HTTP, of a server in this process, and the rest of the file
//! below it: the clock, the sweeps, the journal, and the work itself, whose jitter the server throws by itself.

use async_trait::async_trait;
use orchestrator_client::{Client, RemoteStore};
use orchestrator_core::spec::is_name;
use orchestrator_core::{Document, JobId, Millis, NewJob, RetryPolicy, TaskId, Timestamp};
use orchestrator_engine::{Engine, EngineConfig, Intake, Rules};
use orchestrator_server::{App, router, serve};
use orchestrator_store::clock::Clock;
use orchestrator_store::*;
use orchestrator_store_sqlite::{Options, SqliteStore};
use orchestrator_worker::Registry;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The largest request that the server takes.
const LARGE: usize = 64 << 20;

/// A store behind a server of its own.
pub struct Through {
    local: Arc<SqliteStore>,
    remote: RemoteStore,
    /// How many submits the fields of a request could not hold, or the engine refused.
    pub not_sent: Arc<AtomicU32>,
    _server: DropGuard,
}

impl Through {
    /// A server on a file.
    pub async fn open(path: &Path, clock: Arc<dyn Clock>, not_sent: Arc<AtomicU32>) -> Through {
        let local = SqliteStore::open(path, Options { clock, ..Options::default() }).unwrap();
        let config = EngineConfig { max_payload: LARGE, ..EngineConfig::default() };
        let engine = Engine::new(local.clone(), config);
        let rules = Rules {
            retry: RetryPolicy::default(),
            timeout: Millis::mins(5),
            max_crashes: 3,
            max_payload: LARGE,
        };
        let stopping = CancellationToken::new();
        let app = App::new(engine, Intake::new(rules, Registry::new(), true), LARGE, stopping.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, router(app, LARGE), stopping.clone(), Duration::ZERO));
        let remote = RemoteStore::open(Client::new(&url).unwrap()).await.unwrap();
        Through { local, remote, not_sent, _server: stopping.drop_guard() }
    }
}

/// So often a look is repeated that shows something else than the store does, since work may go on between the two.
const LOOKS: u32 = 100;

/// Asks both, and says what the server shows: that is what the store shows.
macro_rules! both {
    ($through:expr, $verb:ident ($($argument:expr),*)) => {{
        let mut looks = 0;
        loop {
            let shown = $through.remote.$verb($($argument.clone()),*).await?;
            let stored = $through.local.$verb($($argument.clone()),*).await?;
            looks += 1;
            if shown == stored || looks == LOOKS {
                assert_eq!(shown, stored, "what the server shows, and what the store does");
                return Ok(shown);
            }
        }
    }};
}

#[async_trait]
impl Store for Through {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        match self.remote.submit(jobs.clone()).await {
            Err(StoreError::Invalid(_) | StoreError::Remote { status: 422, .. }) => {
                self.not_sent.fetch_add(1, Ordering::SeqCst);
                self.local.submit(jobs).await
            }
            answer => answer,
        }
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        self.local.lease(ask).await
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        self.local.extend(held, ttl).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        self.local.settle(batch).await
    }

    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept> {
        assert!(self.remote.expired(ask).await?.ended.is_empty(), "the server sweeps");
        self.local.expired(ask).await
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        self.remote.control(wishes).await
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        // A store takes any name, a path only names.
        if changes.iter().any(|change| !is_name(&change.queue)) {
            return self.local.set_queues(changes).await;
        }
        self.remote.set_queues(changes).await
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        self.remote.register(workers).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.remote.check().await
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        self.remote.change_flows(changes).await
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        if changes.iter().any(|change| change.origin == RuleOrigin::Config) {
            let refused = self.remote.set_limits(changes.clone()).await;
            assert!(matches!(refused, Err(StoreError::Invalid(_))), "those are the server's own");
            return self.local.set_limits(changes).await;
        }
        self.remote.set_limits(changes).await
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        self.remote.forget(jobs).await
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        self.local.forget_journal(before, limit).await
    }
}

#[async_trait]
impl Catalog for Through {
    fn now(&self) -> Timestamp {
        self.local.now()
    }

    async fn close(&self) {
        Catalog::close(&*self.local).await;
    }

    async fn leads(&self) -> bool {
        self.local.leads().await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.local.changes()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        both!(self, job(id))
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        both!(self, task(id))
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        both!(self, items(group, after, limit))
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        self.remote.held(attempts).await
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        both!(self, ids(prefix, limit))
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        both!(self, list(filter, page))
    }

    async fn stats(&self) -> StoreResult<Stats> {
        both!(self, stats())
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        both!(self, daily(days))
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        both!(self, paused_queues())
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        both!(self, workers())
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        self.remote.document(id).await
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        both!(self, dead_letters(filter, after, limit))
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        both!(self, flows(name))
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        both!(self, flow(name, version))
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        both!(self, limits())
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        both!(self, removable(ask))
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        assert!(matches!(self.remote.journal(after, limit).await, Err(StoreError::Invalid(_))));
        self.local.journal(after, limit).await
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        self.local.journal_range().await
    }
}
