//! Reading beside the writer, each on a connection of its own that cannot write.

mod catalog;
mod flows;
mod jobs;
mod journal;
mod list;
mod overview;
mod removable;
mod stats;
mod tasks;

use crate::error::{at_open, at_read};
use crate::lock;
use flows::Versions;
use jobs::Reading;
use orchestrator_store::packed::Ids;
use orchestrator_store::{StoreError, StoreResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Idle connections that are kept.
const KEPT: usize = 4;

/// The readers of one file.
pub struct Readers {
    path: PathBuf,
    ids: Ids,
    idle: Mutex<Option<Vec<Connection>>>,
    versions: Versions,
}

impl Readers {
    /// Readers for a file; connections are opened when they are needed.
    pub fn new(path: &Path, ids: Ids) -> Self {
        Readers { path: path.to_owned(), ids, idle: Mutex::new(Some(vec![])), versions: Versions::default() }
    }

    /// Closes what is open and opens no more.
    pub fn close(&self) {
        lock(&self.idle).take();
    }

    /// Runs a read on a thread that may block.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(Reading<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreResult<T> {
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || readers.read_here(read));
        task.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs a read at once, in the caller's thread: for a few seeks, which are over sooner than
    /// another thread is awake.
    pub fn read_here<T>(&self, read: impl FnOnce(Reading<'_>) -> rusqlite::Result<T>) -> StoreResult<T> {
        let conn = self.take()?;
        // One snapshot for all that a read looks at.
        conn.prepare_cached("BEGIN").and_then(|mut begin| begin.execute([])).map_err(at_read)?;
        let reading = Reading { conn: &conn, ids: self.ids, versions: &self.versions };
        let found = read(reading).map_err(at_read);
        conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).map_err(at_read)?;
        self.give_back(conn);
        found
    }

    fn take(&self) -> StoreResult<Connection> {
        if let Some(conn) = lock(&self.idle).as_mut().ok_or(StoreError::Closed)?.pop() {
            return Ok(conn);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags).map_err(|e| at_open(&self.path, e))?;
        conn.busy_timeout(std::time::Duration::from_secs(10)).map_err(at_read)?;
        // Else statements are parsed and planned anew whenever other values are bound to them.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(at_read)?;
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    }

    fn give_back(&self, conn: Connection) {
        if let Some(idle) = lock(&self.idle).as_mut()
            && idle.len() < KEPT
        {
            idle.push(conn);
        }
    }
}
