//! What can go wrong below a verb. Expected outcomes (stale, duplicate, not found) are values, not
//! errors: an error means that nothing of the batch was acked.

/// The result of a verb.
pub type StoreResult<T> = Result<T, StoreError>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A verb that was not carried out. After an error nothing was acked; whether it took effect is
/// unknown only for [`StoreError::Unknown`].
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be opened or made, and will not be until somebody changes something.
    #[error("cannot open {place}: {source}; {advice}")]
    Open {
        /// The file, or the URL without its password.
        place: String,
        /// What to do.
        advice: &'static str,
        /// Why.
        source: Source,
    },
    /// The server does not answer, or has no room for us now.
    #[error("cannot reach {place}: {source}; {advice}")]
    Unreachable {
        /// The URL without its password.
        place: String,
        /// What to do.
        advice: &'static str,
        /// Why.
        source: Source,
    },
    /// The place holds something else.
    #[error(
        "{place} is not an orchestrator database: {detail}; name another with --db, or move this one away"
    )]
    NotADatabase {
        /// The file, or the URL without its password.
        place: String,
        /// What was found.
        detail: String,
    },
    /// The schema is of a later release.
    #[error(
        "{place} has schema version {found}, this program knows up to {known}: use the newer orchestrator that wrote it"
    )]
    NewerSchema {
        /// The file, or the URL without its password.
        place: String,
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Its jobs are elsewhere now, and must not run in both places.
    #[error(
        "{place} was moved to {to}: use that with --db; `orchestrator migrate reopen` lets this one be used again"
    )]
    Moved {
        /// The file.
        place: String,
        /// The URL without its password.
        to: String,
    },
    /// No space, or the database is read-only: reads may work, writes do not.
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
    /// The server through which the store is reached says why not.
    #[error("{message}")]
    Remote {
        /// The server's word for it, where this program knows it.
        code: &'static str,
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
        /// Whether the same call may succeed later.
        retryable: bool,
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
            StoreError::Unreachable { .. } => "store_unreachable",
            StoreError::NotADatabase { .. } => "not_a_database",
            StoreError::NewerSchema { .. } => "newer_schema",
            StoreError::Moved { .. } => "moved",
            StoreError::NotWritable { .. } => "store_not_writable",
            StoreError::Busy { .. } => "store_busy",
            StoreError::Invalid(_) => "invalid",
            StoreError::Closed => "store_closed",
            StoreError::Unknown { .. } => "outcome_unknown",
            StoreError::Remote { code, .. } => code,
            StoreError::Database { .. } => "database",
        }
    }

    /// Whether the same call may succeed later without anybody changing it.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            StoreError::Unreachable { .. }
                | StoreError::NotWritable { .. }
                | StoreError::Busy { .. }
                | StoreError::Unknown { .. }
                | StoreError::Database { .. }
                | StoreError::Remote { retryable: true, .. }
        )
    }
}
