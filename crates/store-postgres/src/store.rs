//! The store: verbs and reads behind the traits.

use crate::batch::Batcher;
use crate::clock::DatabaseClock;
use crate::connect::{Connections, Options};
use crate::leader::Leader;
use crate::names::Names;
use crate::naming::Naming;
use crate::quiet::Quiet;
use crate::read::{ReadError, Reader};
use crate::schema;
use crate::verbs::Verbs;
use crate::wake::Wakes;
use async_trait::async_trait;
use orchestrator_core::{Document, JobId, Millis, NewJob, TaskId, Timestamp};
use orchestrator_store::packed::Ids;
use orchestrator_store::{
    Beat, Catalog, Clock, Controlled, DayStats, DeadLetter, EventId, FlowChange, FlowChanged, FlowView,
    Forget, Forgot, Held, JobFilter, JobView, JournalPage, JournalRange, LeaseAsk, LeaseGrant, LimitChange,
    LimitView, LineFilter, Page, PausedQueue, QueueChange, RemovableAsk, RemovablePage, Settled, Settlement,
    Stats, Store, StoreError, StoreResult, Submitted, SweepAsk, Swept, TaskView, Wish, WorkerNote,
    WorkerView, untaken,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// How long a close waits for what is under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A store in a PostgreSQL database. Any number of processes may use it at once.
pub struct PostgresStore {
    verbs: Arc<Verbs>,
    submits: Batcher<NewJob, Submitted>,
    settles: Batcher<Settlement, Settled>,
    clock: Arc<dyn Clock>,
    changes: watch::Receiver<u64>,
    quiet: Arc<Quiet>,
    leader: Leader,
    /// What goes on without its caller: a close waits for it.
    under_way: TaskTracker,
    /// Keeps the clock right.
    _ticking: Option<AbortOnDropHandle<()>>,
}

impl PostgresStore {
    /// Connects, and brings the schema up to date.
    pub async fn open(options: Options) -> StoreResult<Arc<PostgresStore>> {
        let given = options.clock.clone();
        let connections = Connections::new(&options)?;
        let naming = Connections::new(&Options { writers: 2, readers: 1, ..options })?;
        schema::prepare(&connections).await?;
        let salt = schema::salt(&connections).await?;
        let (clock, ticking): (Arc<dyn Clock>, _) = match given {
            Some(clock) => (clock, None),
            None => {
                let (clock, ticking) = DatabaseClock::start(connections.clone()).await?;
                (Arc::new(clock), Some(ticking))
            }
        };
        let (changed, changes) = watch::channel(0);
        let leader = Leader::start(connections.clone());
        let wakes = Wakes::start(connections.clone(), changed.clone());
        let verbs = Arc::new(Verbs {
            connections,
            naming: Naming(naming),
            names: Names::default(),
            ids: Ids::new(salt),
            clock: clock.clone(),
            changes: changed,
            wakes,
            marks: Default::default(),
            served: Default::default(),
            leasing: Default::default(),
        });
        let (submit, settle) = (verbs.clone(), verbs.clone());
        let submits = Batcher::start(move |jobs: Arc<Vec<NewJob>>| {
            let verbs = submit.clone();
            async move { verbs.submit(&jobs).await }
        });
        let settles = Batcher::start(move |batch: Arc<Vec<Settlement>>| {
            let verbs = settle.clone();
            async move { verbs.settle(&batch).await }
        });
        Ok(Arc::new(PostgresStore {
            verbs,
            submits,
            settles,
            clock,
            changes,
            quiet: Default::default(),
            leader,
            under_way: TaskTracker::new(),
            _ticking: ticking,
        }))
    }

    /// Its connections: those of the verbs, and those that make names known.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> [&Connections; 2] {
        [&self.verbs.connections, &self.verbs.naming.0]
    }

    /// Runs a verb to its end, also when the caller goes away.
    async fn run<T, F>(&self, verb: impl FnOnce(Arc<Verbs>) -> F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, crate::tx::Abort>> + Send + 'static,
    {
        let done = self.under_way.spawn(verb(self.verbs.clone())).await.map_err(|_| StoreError::Closed)?;
        done.map_err(|abort| abort.to_store_error())
    }
}

fn at_read(error: ReadError) -> StoreError {
    match error {
        ReadError::Sql(error) => crate::error::at_work(&error),
        other => StoreError::Database { source: other.to_string().into() },
    }
}

/// Nobody waits for these tasks any more: they go back to their places.
async fn give_back(verbs: &Verbs, batch: Vec<Settlement>) {
    if let Err(abort) = verbs.settle(&batch).await {
        tracing::warn!(?abort, "leases that nobody took could not be given back; they will run out");
    }
}

/// Reads with one snapshot.
macro_rules! read {
    ($self:ident, $reader:ident => $read:expr) => {{
        let client = $self.verbs.connections.reader().await?;
        let $reader = Reader::new(client, $self.verbs.ids, &$self.verbs.names);
        $read.await.map_err(at_read)
    }};
}

#[async_trait]
impl Store for PostgresStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        self.submits.ask(jobs).await
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        let (verbs, quiet) = (self.verbs.clone(), self.quiet.clone());
        let mut changes = self.changes.clone();
        quiet.wait(&ask, &mut changes, &*self.clock).await;
        // What changes from here on may have been missed.
        let seen = *changes.borrow();
        let (reply, answer) = oneshot::channel();
        self.under_way.spawn(async move {
            let grant = verbs.lease(&ask).await.map_err(|abort| abort.to_store_error());
            if let Ok(grant) = &grant {
                quiet.note(&ask, seen, grant);
            }
            if let Err(Ok(grant)) = reply.send(grant) {
                give_back(&verbs, untaken::given_back(&grant)).await;
            }
        });
        let verbs = self.verbs.clone();
        let back = |batch: Vec<Settlement>| {
            self.under_way.spawn(async move { give_back(&verbs, batch).await });
        };
        untaken::take(answer, back).await
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        self.run(|verbs| async move { verbs.extend(&held, ttl).await }).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        self.settles.ask(batch).await
    }

    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept> {
        // One process sweeps for all.
        if !self.leader.leads().await {
            return Ok(Swept::default());
        }
        let swept = self.run(|verbs| async move { verbs.expired(&ask).await }).await?;
        // Bit by bit, so that who listens for the first time in weeks need not wait for weeks of numbers.
        if let Err(error) = self.number_journal().await {
            tracing::warn!(%error, "new entries of the journal have no numbers yet; the next sweep tries again");
        }
        Ok(swept)
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        self.run(|verbs| async move { verbs.control(&wishes).await }).await
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        self.run(|verbs| async move { verbs.set_queues(&changes).await }).await
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        self.run(|verbs| async move { verbs.register(&workers).await }).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.run(|verbs| async move { verbs.check().await }).await
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        self.run(|verbs| async move { verbs.change_flows(&changes).await }).await
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        self.run(|verbs| async move { verbs.set_limits(&changes).await }).await
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        self.run(|verbs| async move { verbs.forget(&jobs).await }).await
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        self.run(move |verbs| async move { verbs.forget_journal(before, limit).await }).await
    }
}

#[async_trait]
impl Catalog for PostgresStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn close(&self) {
        self.leader.leave();
        // Leases that nobody took are given back first, or they would count as crashes.
        self.under_way.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.under_way.wait()).await.is_err() {
            tracing::warn!("the database did not answer in time; leases that nobody took will run out");
        }
        self.verbs.connections.close();
        self.verbs.naming.0.close();
    }

    async fn leads(&self) -> bool {
        self.leader.leads().await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        read!(self, reader => reader.job(id))
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        read!(self, reader => reader.task(id))
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        read!(self, reader => reader.items(group, after, limit))
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        read!(self, reader => reader.held(&attempts))
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        read!(self, reader => reader.ids(&prefix, limit))
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        read!(self, reader => reader.list(&filter, page))
    }

    async fn stats(&self) -> StoreResult<Stats> {
        read!(self, reader => reader.stats())
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        read!(self, reader => reader.daily(days))
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        read!(self, reader => reader.paused_queues())
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        let now = self.clock.now();
        read!(self, reader => reader.workers(now))
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        read!(self, reader => reader.document(id))
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        read!(self, reader => reader.dead_letters(&filter, after, limit))
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        read!(self, reader => reader.flows(name.as_deref()))
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        read!(self, reader => reader.flow(&name, version))
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        read!(self, reader => reader.limits())
    }

    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage> {
        read!(self, reader => reader.removable(&ask))
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        let (page, unnumbered) = read!(self, reader => reader.journal(after, limit))?;
        if !unnumbered {
            return Ok(page);
        }
        self.number_all_of_the_journal().await?;
        Ok(read!(self, reader => reader.journal(after, limit))?.0)
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        let (range, unnumbered) = read!(self, reader => reader.journal_range())?;
        if !unnumbered {
            return Ok(range);
        }
        self.number_all_of_the_journal().await?;
        Ok(read!(self, reader => reader.journal_range())?.0)
    }
}

impl PostgresStore {
    /// Gives numbers to the next entries of the journal, and tells whether there may be more without.
    async fn number_journal(&self) -> StoreResult<bool> {
        let mut client = self.verbs.connections.writer().await?;
        crate::read::number_journal(&mut client).await.map_err(at_read)
    }

    async fn number_all_of_the_journal(&self) -> StoreResult<()> {
        while self.number_journal().await? {}
        Ok(())
    }
}
