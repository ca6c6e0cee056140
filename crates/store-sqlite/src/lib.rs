//! The embedded store: one SQLite file.
//!
//! One thread writes (`writer`): it gathers the verbs of all callers into one transaction and
//! answers them after the commit, which is synced (`synchronous = FULL`, WAL). Readers have
//! connections of their own. Several processes may use the file at once; see `turn`.

pub mod copy;
mod error;
mod read;
mod schema;
mod turn;
mod writer;

use async_trait::async_trait;
use orchestrator_core::{Millis, NewJob, Timestamp};
use orchestrator_store::packed::{Ids, SALT_BITS};
use orchestrator_store::{
    Beat, Clock, Controlled, FlowChange, FlowChanged, Forget, Forgot, Held, LeaseAsk, LeaseGrant,
    LimitChange, QueueChange, Settled, Settlement, Store, StoreError, StoreResult, Submitted, SweepAsk,
    Swept, SystemClock, Wish, WorkerNote, untaken,
};
use read::Readers;
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use turn::Turn;
use writer::Request;

pub use schema::VERSION as SCHEMA_VERSION;

/// How many requests may wait in the writer's mailbox; more callers wait outside.
const MAILBOX: usize = 4096;

/// How a file is opened.
#[derive(Clone)]
pub struct Options {
    /// The store's clock.
    pub clock: Arc<dyn Clock>,
    /// How long a verb waits for other processes' commits before it answers busy.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { clock: Arc::new(SystemClock), busy_timeout: Duration::from_secs(10) }
    }
}

/// A store in one SQLite file.
pub struct SqliteStore {
    mailbox: Mutex<Option<mpsc::Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    changes: watch::Receiver<u64>,
    clock: Arc<dyn Clock>,
    readers: Arc<Readers>,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens a file, makes it where there is none, and brings its schema up to date.
    pub fn open(path: &Path, options: Options) -> StoreResult<Arc<SqliteStore>> {
        let waited_ms = u64::try_from(options.busy_timeout.as_millis()).unwrap_or(u64::MAX);
        SqliteStore::open_file(path, options).map_err(|error| match error {
            StoreError::Busy { .. } => StoreError::Busy { waited_ms },
            other => other,
        })
    }

    fn open_file(path: &Path, options: Options) -> StoreResult<Arc<SqliteStore>> {
        let at_open = |e| error::at_open(path, e);
        let mut conn = Connection::open(path).map_err(at_open)?;
        conn.busy_timeout(options.busy_timeout).map_err(at_open)?;
        schema::configure(&conn).map_err(at_open)?;
        schema::prepare(&mut conn, path, options.busy_timeout)?;
        if let Some(to) = copy::moved_to(&conn).map_err(at_open)? {
            return Err(StoreError::Moved { place: path.display().to_string(), to });
        }
        let ids = Ids::new(salt(&mut conn).map_err(at_open)?);
        // From here on the turn file does the waiting.
        conn.busy_timeout(Duration::ZERO).map_err(at_open)?;
        let turn = Turn::open(path, options.busy_timeout)
            .map_err(|source| error::cannot_open(path, Box::new(source)))?;
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let (changed, changes) = watch::channel(0);
        let setup = writer::Setup { conn, turn, ids, clock: options.clock.clone(), changed };
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || {
                if let Err(error) = writer::run(setup, inbox, || ready.send(()).unwrap_or_default()) {
                    tracing::error!(%error, "the writer could not start");
                }
            })
            .map_err(|source| error::cannot_open(path, Box::new(source)))?;
        if started.recv().is_err() {
            let detail = "its tables do not read back".to_owned();
            return Err(StoreError::NotADatabase { place: path.display().to_string(), detail });
        }
        Ok(Arc::new(SqliteStore {
            mailbox: Mutex::new(Some(mailbox)),
            thread: Mutex::new(Some(thread)),
            changes,
            clock: options.clock,
            readers: Arc::new(Readers::new(path, ids)),
            path: path.to_owned(),
        }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes no more verbs, carries out those that are waiting, and closes the file.
    pub fn close(&self) {
        lock(&self.mailbox).take();
        if let Some(thread) = lock(&self.thread).take() {
            // A writer that panicked has told so already.
            let _ = thread.join();
        }
        self.readers.close();
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<StoreResult<T>>) -> Request,
    ) -> StoreResult<T> {
        let (reply, answer) = oneshot::channel();
        self.send(request(reply)).await?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Hands a request to the writer. The writer ends when the last sender is gone: who only waits for an answer does not
    /// keep one.
    async fn send(&self, request: Request) -> StoreResult<()> {
        let mailbox = lock(&self.mailbox).clone().ok_or(StoreError::Closed)?;
        mailbox.send(request).await.map_err(|_| StoreError::Closed)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

/// Nothing in here can leave what a mutex guards half done, so a poisoned one is as good as new.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The database's own random number, which tells its ids from those of other databases.
fn salt(conn: &mut Connection) -> rusqlite::Result<u32> {
    const SQL: &str = "SELECT value FROM meta WHERE name = 'salt'";
    if let Some(salt) = conn.query_row(SQL, [], |row| row.get(0)).optional()? {
        return Ok(salt);
    }
    let fresh = fastrand::u32(0..1 << SALT_BITS);
    conn.execute("INSERT OR IGNORE INTO meta (name, value) VALUES ('salt', ?1)", [fresh])?;
    conn.query_row(SQL, [], |row| row.get(0))
}

#[async_trait]
impl Store for SqliteStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        self.ask(|reply| Request::Submit(jobs, reply)).await
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Lease(ask, reply)).await?;
        let give_back = |batch| {
            let (reply, _) = oneshot::channel();
            // Where there is no writer or no room, the leases run out.
            if let Some(mailbox) = &*lock(&self.mailbox) {
                let _ = mailbox.try_send(Request::Settle(batch, reply));
            }
        };
        untaken::take(answer, give_back).await
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        self.ask(|reply| Request::Extend((held, ttl), reply)).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        self.ask(|reply| Request::Settle(batch, reply)).await
    }

    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept> {
        self.ask(|reply| Request::Expired(ask, reply)).await
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        self.ask(|reply| Request::Control(wishes, reply)).await
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        self.ask(|reply| Request::SetQueues(changes, reply)).await
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        self.ask(|reply| Request::Register(workers, reply)).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.ask(|reply| Request::Check((), reply)).await
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        self.ask(|reply| Request::ChangeFlows(changes, reply)).await
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        self.ask(|reply| Request::SetLimits(changes, reply)).await
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        self.ask(|reply| Request::Forget(jobs, reply)).await
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        self.ask(|reply| Request::ForgetJournal((before, limit), reply)).await
    }
}
