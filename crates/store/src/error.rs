//! What can go wrong below a verb. Expected outcomes (stale, duplicate, not found) are values, not
//! errors: an error means that nothing of the batch was acked.

use std::path::PathBuf;

/// The result of a verb.
pub type StoreResult<T> = Result<T, StoreError>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A verb that was not carried out. After an error nothing was acked; whether it took effect is
/// unknown only for [`StoreError::Unknown`].
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error("cannot open {path}: {source}; its directory must exist and be writable")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Source,
    },
    /// The file is something else.
    #[error(
        "{path} is not an orchestrator database: {detail}; choose another path with --db, or move the file away"
    )]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The schema is of a later release.
    #[error(
        "{path} has schema version {found}, this program knows up to {known}: use the newer orchestrator that wrote it"
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// No space, or the file is read-only: reads may work, writes do not.
    #[error(
        "cannot write to the database: {source}; free some space or fix the permissions, work goes on by itself then"
    )]
    NotWritable {
        /// Why.
        source: Source,
    },
    /// Others held the write lock for too long.
    #[error(
        "the database was busy for {waited_ms} ms: another process holds its write lock; try again, or stop the process that hangs"
    )]
    Busy {
        /// How long was waited.
        waited_ms: u64,
    },
    /// A request that this store cannot hold.
    #[error("the request cannot be stored: {0}")]
    Invalid(String),
    /// The store was closed, or its writer is gone.
    #[error("the store is closed")]
    Closed,
    /// The commit failed in a way that leaves open whether it took effect.
    #[error("it is not known whether the commit took effect: {source}")]
    Unknown {
        /// Why.
        source: Source,
    },
    /// Anything else that the database said.
    #[error("the database failed: {source}")]
    Database {
        /// What it said.
        source: Source,
    },
}

impl StoreError {
    /// A stable word for the error.
    pub const fn code(&self) -> &'static str {
        match self {
            StoreError::Open { .. } => "store_open",
            StoreError::NotADatabase { .. } => "not_a_database",
            StoreError::NewerSchema { .. } => "newer_schema",
            StoreError::NotWritable { .. } => "store_not_writable",
            StoreError::Busy { .. } => "store_busy",
            StoreError::Invalid(_) => "invalid",
            StoreError::Closed => "store_closed",
            StoreError::Unknown { .. } => "outcome_unknown",
            StoreError::Database { .. } => "database",
        }
    }

    /// Whether the same call may succeed later without anybody changing it.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::NotWritable { .. }
                | StoreError::Busy { .. }
                | StoreError::Unknown { .. }
                | StoreError::Database { .. }
        )
    }
}
