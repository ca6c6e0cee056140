//! What PostgreSQL's errors mean to a caller.
//!
//! An error of the driver cannot be copied, but all callers of a batch are told of it: so it is read by reference,
//! and what it says goes on as text. No text here ever holds a password: the driver and the server print none.

use crate::connect::{LOCK_TIMEOUT, WAIT_TIMEOUT};
use deadpool_postgres::{HookError, PoolError, TimeoutType};
use orchestrator_store::StoreError;
use std::error::Error as _;
use std::fmt::Write as _;
use std::io;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Whether the transaction lost against another one and may win when it is run again.
pub fn is_retryable(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    })
}

/// Whether the connection is gone, so that only another one can go on.
pub fn is_lost(error: &Error) -> bool {
    match error.as_db_error() {
        Some(said) => is_last_word(said),
        None => error.is_closed() || io_error(error).is_some(),
    }
}

/// Whether the answer to a commit means that nothing took effect. A server that ends the session may have committed
/// before; one that goes on has rolled back.
pub fn is_rolled_back(error: &Error) -> bool {
    let unknown = |code: &SqlState| *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN;
    error.as_db_error().is_some_and(|said| !is_last_word(said) && !unknown(said.code()))
}

/// An error before the commit: nothing took effect.
pub fn at_work(error: &Error) -> StoreError {
    let Some(code) = error.code() else { return StoreError::Database { source: text(error).into() } };
    if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        let source = format!("it is a standby or set to read-only: the primary takes writes, or this one once it is promoted ({})", text(error)).into();
        StoreError::NotWritable { source }
    } else if *code == SqlState::DISK_FULL || *code == SqlState::INSUFFICIENT_PRIVILEGE {
        StoreError::NotWritable { source: text(error).into() }
    } else if *code == SqlState::LOCK_NOT_AVAILABLE {
        StoreError::Busy { waited_ms: millis(LOCK_TIMEOUT) }
    } else {
        StoreError::Database { source: text(error).into() }
    }
}

/// An error after the commit was sent.
pub fn at_commit(error: &Error) -> StoreError {
    if is_rolled_back(error) { at_work(error) } else { StoreError::Unknown { source: text(error).into() } }
}

/// An error of connecting to the database at `place`, or of preparing it.
pub fn at_open(place: &str, error: &Error) -> StoreError {
    let open = |advice| StoreError::Open { place: place.to_owned(), advice, source: text(error).into() };
    let unreachable =
        |advice| StoreError::Unreachable { place: place.to_owned(), advice, source: text(error).into() };
    let Some(code) = error.code() else {
        return match io_error(error) {
            Some(io) if is_tls(io) => open("check sslmode and sslrootcert of the URL"),
            Some(_) => unreachable("check that the server runs and takes connections at this address"),
            None if error.is_closed() => unreachable("the server ended the connection: try again"),
            None => open("check the user, the password and sslmode of the URL"),
        };
    };
    match code.code() {
        "28P01" | "28000" => {
            open("check the user and the password of the URL, and what pg_hba.conf on the server lets in")
        }
        "3D000" => open("create the database, or name another one in the URL"),
        "42501" => open("let the role create things: GRANT CREATE ON DATABASE ... TO ..., or own the schema"),
        "53300" => unreachable("raise max_connections of the server, or use fewer connections"),
        "57P03" => unreachable("the server is starting or stopping: try again"),
        _ => at_work(error),
    }
}

/// The pool of the database at `place` has no connection to give.
pub fn at_pool(place: &str, error: &PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            at_open(place, error)
        }
        PoolError::Timeout(TimeoutType::Wait) => StoreError::Database {
            source: format!("no connection was free for {} ms", millis(WAIT_TIMEOUT)).into(),
        },
        PoolError::Timeout(_) => StoreError::Unreachable {
            place: place.to_owned(),
            advice: "check the network, and how busy the server is",
            source: "it did not answer in time".into(),
        },
        PoolError::Closed => StoreError::Closed,
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(HookError::Message(_)) => {
            StoreError::Database { source: error.to_string().into() }
        }
    }
}

/// The same error for another caller.
pub fn retold(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unreachable { place, advice, source } => {
            StoreError::Unreachable { place: place.clone(), advice, source: source.to_string().into() }
        }
        StoreError::Open { place, advice, source } => {
            StoreError::Open { place: place.clone(), advice, source: source.to_string().into() }
        }
        StoreError::NotWritable { source } => StoreError::NotWritable { source: source.to_string().into() },
        StoreError::Busy { waited_ms } => StoreError::Busy { waited_ms: *waited_ms },
        StoreError::Closed => StoreError::Closed,
        other => StoreError::Database { source: other.to_string().into() },
    }
}

/// All that an error says, on one line. The driver's own text leaves out what the server said.
pub fn text(error: &Error) -> String {
    let Some(said) = error.as_db_error() else {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        return text;
    };
    let mut text = format!("{} (SQLSTATE {})", said.message(), said.code().code());
    for more in [said.detail(), said.hint()].into_iter().flatten() {
        let _ = write!(text, "; {more}");
    }
    text
}

/// Whether the server closes the connection after this.
fn is_last_word(said: &DbError) -> bool {
    let fatal = match said.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        // Servers older than 9.6 say it only in their own language.
        None => said.severity() != "ERROR",
    };
    fatal || said.code().code().starts_with("08")
}

fn io_error(error: &Error) -> Option<&io::Error> {
    error.source()?.downcast_ref()
}

fn is_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>())
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
