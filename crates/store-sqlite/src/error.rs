//! What SQLite's errors mean to a caller.

use orchestrator_store::StoreError;
use rusqlite::ErrorCode;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// One error, handed to every caller whose verb shared the transaction.
#[derive(Clone, Debug)]
pub struct Shared(Arc<rusqlite::Error>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Shared {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// Why a transaction came to nothing.
#[derive(Clone, Debug)]
pub enum Abort {
    /// SQLite said no before the commit: nothing took effect.
    Sql(Shared),
    /// The commit itself failed.
    Commit(Shared),
    /// The write lock was not to be had.
    Busy { waited_ms: u64 },
    /// The lock file beside the database cannot be used.
    TurnFile(Arc<std::io::Error>),
    /// A request that cannot be stored.
    Invalid(String),
}

impl From<rusqlite::Error> for Abort {
    fn from(error: rusqlite::Error) -> Self {
        Abort::Sql(Shared(Arc::new(error)))
    }
}

impl Abort {
    /// The failure of a commit.
    pub fn at_commit(error: rusqlite::Error) -> Self {
        Abort::Commit(Shared(Arc::new(error)))
    }

    /// Whether the surroundings are to blame (disk, lock) and not one of the requests.
    pub fn is_environment(&self) -> bool {
        match self {
            Abort::Sql(error) | Abort::Commit(error) => is_environment(&error.0),
            Abort::Busy { .. } | Abort::TurnFile(_) => true,
            Abort::Invalid(_) => false,
        }
    }

    /// The error for one caller.
    pub fn to_store_error(&self) -> StoreError {
        match self {
            Abort::Sql(error) if is_environment(&error.0) => {
                StoreError::NotWritable { source: Box::new(error.clone()) }
            }
            Abort::Sql(error) => StoreError::Database { source: Box::new(error.clone()) },
            // A full disk stops the commit before its record is written. Any other failure (of the
            // sync above all) leaves open what a recovery will find.
            Abort::Commit(error) if error.0.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                StoreError::NotWritable { source: Box::new(error.clone()) }
            }
            Abort::Commit(error) => StoreError::Unknown { source: Box::new(error.clone()) },
            Abort::Busy { waited_ms } => StoreError::Busy { waited_ms: *waited_ms },
            Abort::TurnFile(error) => StoreError::NotWritable { source: error.to_string().into() },
            Abort::Invalid(why) => StoreError::Invalid(why.clone()),
        }
    }
}

fn is_environment(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
        )
    )
}

/// An error of opening or migrating the file at `path`.
pub fn at_open(path: &Path, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreError::NotADatabase { place: path.display().to_string(), detail: error.to_string() }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { waited_ms: 0 },
        _ => cannot_open(path, Box::new(error)),
    }
}

/// The file at `path` cannot be opened or made.
pub fn cannot_open(path: &Path, source: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    let advice = "check that the directory exists and that you may write to it; --db PATH names another file";
    StoreError::Open { place: path.display().to_string(), advice, source }
}

/// An error of a read.
pub fn at_read(error: rusqlite::Error) -> StoreError {
    StoreError::Database { source: Box::new(error) }
}
