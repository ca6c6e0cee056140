//! Migrations: SQL files that are applied once, in order, under the write lock.

use crate::error;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_store::{StoreError, StoreResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

/// Marks the file as ours (`PRAGMA application_id`): "orch".
const APPLICATION_ID: i64 = 0x6F72_6368;

/// What makes version N out of version N-1.
const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_state_is_location.sql")];

/// The newest version that this program knows.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// The oldest SQLite without the WAL-reset corruption.
const OLDEST_SQLITE: i32 = 3_051_003;

/// Sets what must be set on every connection.
pub fn configure(conn: &Connection) -> rusqlite::Result<()> {
    // Else a statement with a bound LIMIT is parsed and planned anew whenever the limit changes.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536; PRAGMA foreign_keys = OFF;",
    )?;
    if planted(Bug::CommitWithoutSync) {
        conn.execute_batch("PRAGMA synchronous = OFF")?;
    }
    Ok(())
}

/// Brings the file to the current version; refuses what is not ours or is newer. Waits for other
/// processes that do the same for as long as `patience`.
pub fn prepare(conn: &mut Connection, path: &Path, patience: Duration) -> StoreResult<()> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::Invalid(format!(
            "SQLite {} is too old: it can corrupt a WAL",
            rusqlite::version()
        )));
    }
    let at_open = |e| error::at_open(path, e);
    check(conn, path)?;
    use_wal(conn, patience).map_err(at_open)?;
    if version(conn).map_err(at_open)? == VERSION {
        return Ok(());
    }
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(at_open)?;
    // Another process may have migrated while this one waited for the lock.
    let found = version(&tx).map_err(at_open)?;
    for (n, sql) in MIGRATIONS.iter().enumerate().skip(usize::try_from(found).unwrap_or(0)) {
        tx.execute_batch(sql).map_err(at_open)?;
        tx.pragma_update(None, "user_version", n as i64 + 1).map_err(at_open)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(at_open)?;
    tx.commit().map_err(at_open)
}

/// Gives the file a write-ahead log. For this lock SQLite does not wait by itself, so processes that
/// make a file together have to.
fn use_wal(conn: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        match conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < patience =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

/// The version of the file; nothing where it is empty. Refuses what is not ours or is newer.
pub fn check(conn: &Connection, path: &Path) -> StoreResult<Option<i64>> {
    let at_open = |e| error::at_open(path, e);
    // One snapshot: another process may be making the tables at this moment.
    let conn = conn.unchecked_transaction().map_err(at_open)?;
    let found = version(&conn).map_err(at_open)?;
    let id: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(at_open)?;
    let table: Option<String> = conn
        .query_row("SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1", [], |row| row.get(0))
        .optional()
        .map_err(at_open)?;
    match table {
        None => Ok(None),
        Some(table) if id != APPLICATION_ID => Err(StoreError::NotADatabase {
            place: path.display().to_string(),
            detail: format!("it is a SQLite database of another program (it has a table {table:?})"),
        }),
        Some(_) if found > VERSION => {
            Err(StoreError::NewerSchema { place: path.display().to_string(), found, known: VERSION })
        }
        Some(_) => Ok(Some(found)),
    }
}

fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}
