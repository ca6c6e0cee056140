//! Whose turn it is to write, when several processes share the file.
//!
//! SQLite's own lock has no queue: a process that commits without pause takes it again before one
//! that sleeps between two tries wakes up, and can shut the other out for seconds. So a writer first
//! takes the lock on a small file beside the database and holds it only while it waits for SQLite's
//! write lock. Who has just committed must queue behind whoever waits there. Locks vanish with
//! their process, so nothing is left to clean up.

use crate::error::Abort;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The lock file of one database.
pub struct Turn {
    file: File,
    timeout: Duration,
}

impl Turn {
    /// Opens or makes the lock file beside `database`.
    pub fn open(database: &Path, timeout: Duration) -> std::io::Result<Turn> {
        let mut name = database.as_os_str().to_owned();
        name.push("-turn");
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(name)?;
        Ok(Turn { file, timeout })
    }

    /// Queues, then calls `begin` until it does not say busy.
    pub fn take(&self, mut begin: impl FnMut() -> rusqlite::Result<()>) -> Result<(), Abort> {
        let waiting =
            Waiting { since: Instant::now(), timeout: self.timeout, pause: Duration::from_micros(50) };
        let mut queueing = waiting.clone();
        loop {
            match self.file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => queueing.again()?,
                Err(TryLockError::Error(error)) => return Err(Abort::TurnFile(Arc::new(error))),
            }
        }
        let mut beginning = waiting;
        let begun = loop {
            match begin() {
                Ok(()) => break Ok(()),
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                    if let Err(busy) = beginning.again() {
                        break Err(busy);
                    }
                }
                Err(error) => break Err(error.into()),
            }
        };
        self.file.unlock().map_err(|error| Abort::TurnFile(Arc::new(error)))?;
        begun
    }
}

#[derive(Clone)]
struct Waiting {
    since: Instant,
    timeout: Duration,
    pause: Duration,
}

impl Waiting {
    /// Pauses a little longer each time; says busy when the timeout is over.
    fn again(&mut self) -> Result<(), Abort> {
        let waited = self.since.elapsed();
        if waited >= self.timeout {
            return Err(Abort::Busy { waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX) });
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(Duration::from_millis(2));
        Ok(())
    }
}
