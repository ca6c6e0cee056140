//! Moving out: reads everything there is, and marks the file as moved.
//!
//! The connection has the file to itself: SQLite's exclusive locking mode lets nobody else open it, and is refused as
//! long as anybody has it open. So nothing can change between the first row that is read and the mark.

use crate::error;
use crate::schema;
use orchestrator_store::copy::{Batch, Cell, Row, Standing, Table};
use orchestrator_store::{StoreError, StoreResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A batch is full at so many rows or bytes.
const BATCH_ROWS: usize = 5000;
const BATCH_BYTES: usize = 4 << 20;

/// Where the mark of a moved file stands in `meta`.
const MARK: &str = "moved_to";

/// A file that is moved, and that nobody else can open meanwhile.
pub struct Outgoing {
    conn: Connection,
    path: PathBuf,
}

impl Outgoing {
    /// Takes the file for itself, without changing it. Answers [`StoreError::Busy`] where others have it open.
    pub fn open(path: &Path, patience: Duration) -> StoreResult<Outgoing> {
        let at_open = |e| error::at_open(path, e);
        let conn = connect(path, patience)?;
        // Must come before the first look at the file.
        conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE").map_err(at_open)?;
        let it = Outgoing { conn, path: path.to_owned() };
        match it.look() {
            Err(StoreError::Busy { .. }) => {
                Err(StoreError::Busy { waited_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX) })
            }
            Err(other) => Err(other),
            Ok(()) => Ok(it),
        }
    }

    fn look(&self) -> StoreResult<()> {
        if schema::check(&self.conn, &self.path)?.is_none() {
            let detail = "it is empty".to_owned();
            return Err(StoreError::NotADatabase { place: self.path.display().to_string(), detail });
        }
        // The first look took the lock where there is a write-ahead log; a backup may have none.
        self.conn.execute_batch("BEGIN EXCLUSIVE; COMMIT").map_err(|e| error::at_open(&self.path, e))
    }

    /// Brings the schema to the current version, which is the one that can be read out.
    pub fn prepare(&mut self) -> StoreResult<()> {
        schema::prepare(&mut self.conn, &self.path, Duration::ZERO)
    }

    /// How far the database is.
    pub fn standing(&self) -> StoreResult<Standing> {
        standing_of(&self.conn, &self.path)
    }

    /// What the ids of its jobs have in common.
    pub fn salt(&mut self) -> StoreResult<u32> {
        crate::salt(&mut self.conn).map_err(error::at_read)
    }

    /// The highest number that a job had.
    pub fn last_seq(&self) -> StoreResult<i64> {
        let sql = "SELECT max((SELECT ifnull(max(seq), 0) FROM jobs),
                              ifnull((SELECT value FROM meta WHERE name = 'last_seq'), 0))";
        self.conn.query_row(sql, [], |row| row.get(0)).map_err(error::at_read)
    }

    /// How many rows a table has.
    pub fn count(&self, table: Table) -> StoreResult<u64> {
        let sql = format!("SELECT count(*) FROM {}", table.name());
        let count: i64 = self.conn.query_row(&sql, [], |row| row.get(0)).map_err(error::at_read)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Reads a table, batch by batch, until it ends or nobody takes the batches any more.
    pub fn read(&self, table: Table, mut take: impl FnMut(Batch) -> bool) -> StoreResult<()> {
        let mut statement = self.conn.prepare(select(table)).map_err(error::at_read)?;
        let mut rows = statement.query([]).map_err(error::at_read)?;
        let mut batch = Batch { table, rows: vec![] };
        let mut bytes = 0;
        while let Some(row) = rows.next().map_err(error::at_read)? {
            let row = cells(row, table.columns().len()).map_err(error::at_read)?;
            bytes += row.iter().map(size).sum::<usize>();
            batch.rows.push(row);
            if batch.rows.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
                bytes = 0;
                if !take(std::mem::replace(&mut batch, Batch { table, rows: vec![] })) {
                    return Ok(());
                }
            }
        }
        if !batch.rows.is_empty() {
            take(batch);
        }
        Ok(())
    }

    /// Marks the file as moved: from now on it is not opened as a store.
    pub fn mark(&self, to: &str) -> StoreResult<()> {
        let sql = "INSERT INTO meta (name, value) VALUES (?1, ?2)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.conn.execute(sql, (MARK, to)).map(drop).map_err(not_marked)
    }

    /// Takes the mark away. Says where it pointed, if there was one.
    pub fn unmark(&self) -> StoreResult<Option<String>> {
        let to = moved_to(&self.conn).map_err(error::at_read)?;
        self.conn.execute("DELETE FROM meta WHERE name = ?1", [MARK]).map_err(not_marked)?;
        Ok(to)
    }
}

/// How far the database in a file is. Changes nothing, and works on files that were moved or are newer.
pub fn standing(path: &Path, patience: Duration) -> StoreResult<Standing> {
    standing_of(&connect(path, patience)?, path)
}

/// Brings the schema of a file to the current version. Says which one it had, and which one it has.
pub fn migrate(path: &Path, patience: Duration) -> StoreResult<(i64, i64)> {
    let mut conn = connect(path, patience)?;
    let from = schema::check(&conn, path)?.unwrap_or(0);
    schema::prepare(&mut conn, path, patience)?;
    Ok((from, schema::VERSION))
}

/// Where a file was moved to.
pub fn moved_to(conn: &Connection) -> rusqlite::Result<Option<String>> {
    conn.query_row("SELECT value FROM meta WHERE name = ?1", [MARK], |row| row.get(0)).optional()
}

/// A connection to a file that must exist.
fn connect(path: &Path, patience: Duration) -> StoreResult<Connection> {
    let at_open = |e| error::at_open(path, e);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(at_open)?;
    conn.busy_timeout(patience).map_err(at_open)?;
    schema::configure(&conn).map_err(at_open)?;
    Ok(conn)
}

fn standing_of(conn: &Connection, path: &Path) -> StoreResult<Standing> {
    let (version, newer) = match schema::check(conn, path) {
        Err(StoreError::NewerSchema { found, .. }) => (Some(found), true),
        found => (found?, false),
    };
    let mut standing =
        Standing { version, known: schema::VERSION, jobs: None, moved_to: None, copied_from: None };
    if version.is_some() && !newer {
        let count: i64 =
            conn.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).map_err(error::at_read)?;
        standing.jobs = u64::try_from(count).ok();
        standing.moved_to = moved_to(conn).map_err(error::at_read)?;
    }
    Ok(standing)
}

fn cells(row: &rusqlite::Row<'_>, count: usize) -> rusqlite::Result<Row> {
    let cell = |at| {
        Ok(match row.get_ref(at)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(n) => Cell::Int(n),
            ValueRef::Text(_) => Cell::Text(row.get(at)?),
            ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
            // No column holds one.
            ValueRef::Real(_) => return Err(rusqlite::Error::InvalidQuery),
        })
    };
    (0..count).map(cell).collect()
}

fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Null | Cell::Int(_) => 8,
        Cell::Text(text) => text.len(),
        Cell::Bytes(bytes) => bytes.len(),
    }
}

fn not_marked(error: rusqlite::Error) -> StoreError {
    StoreError::NotWritable { source: Box::new(error) }
}

/// The rows of a table in the neutral shape.
fn select(table: Table) -> &'static str {
    match table {
        Table::Specs => "SELECT id, body FROM specs ORDER BY id",
        Table::Tenants => "SELECT id, name FROM tenants ORDER BY id",
        Table::Lanes => "SELECT id, nullif(line, id), queue, handler, keys FROM lanes ORDER BY id",
        Table::Flows => {
            "SELECT id, implicit, name, hash, version, created, applied, body FROM flows ORDER BY id"
        }
        Table::Rules => "SELECT key, rule, operator FROM rules ORDER BY key",
        Table::Buckets => "SELECT key, tat FROM buckets ORDER BY key",
        // A job of a queue that got a head later keeps its old entry, which says nothing of the head.
        Table::Jobs => {
            "SELECT seq, created, spec, lane, flow, tier, tenant,
                    CASE WHEN spec IS NULL OR flow IS NULL THEN entry END, key, bucket, previous, payload, meta
             FROM jobs ORDER BY seq"
        }
        Table::Documents => {
            "SELECT seq, name, media_type, size, sha256, content FROM documents ORDER BY seq"
        }
        Table::Paused => "SELECT queue, since FROM paused ORDER BY queue",
        Table::Workers => "SELECT name, note, first_seen, last_seen FROM workers ORDER BY name",
        Table::Runs => "SELECT seq, state, body, output FROM runs ORDER BY seq",
        Table::Alive => "SELECT deadline, seq FROM alive ORDER BY deadline, seq",
        Table::Bad => "SELECT seq FROM bad ORDER BY seq",
        Table::Tasks => "SELECT task, lane, tier, entry, payload FROM tasks ORDER BY task",
        Table::Leases => {
            "SELECT task, attempt, failures, crashes, spec, lane, tier, stamp, since, started, expires, times_out,
                    worker, checkpoint
             FROM leases ORDER BY task"
        }
        Table::Ready => {
            "SELECT line, tier, stamp, task, lane, since, attempt, failures, crashes, checkpoint
             FROM ready ORDER BY line, tier, stamp, task"
        }
        Table::Parked => {
            "SELECT l.line, p.tier, p.stamp, p.task, p.lane, p.since, p.attempt, p.failures, p.crashes, p.checkpoint
             FROM parked p JOIN lanes l ON l.id = p.lane ORDER BY p.lane, p.tier, p.stamp, p.task"
        }
        Table::Delayed => {
            "SELECT due, task, lane, tier, attempt, failures, crashes, checkpoint FROM delayed ORDER BY due, task"
        }
        Table::Held => {
            "SELECT task, lane, tier, stamp, since, due, attempt, failures, crashes, checkpoint
             FROM held ORDER BY task"
        }
        Table::Ended => {
            "SELECT e.task, e.state, e.at, e.attempt, e.failures, e.crashes, e.lane, coalesce(t.tier, j.tier), e.output
             FROM ended e LEFT JOIN tasks t ON t.task = e.task LEFT JOIN jobs j ON j.seq = e.task >> 20
             ORDER BY e.task"
        }
        Table::Dead => "SELECT task, at, reason, line FROM dead ORDER BY task",
        Table::Attempts => {
            "SELECT task, n, attempt, at, how, message FROM attempts ORDER BY task, n"
        }
        Table::Waits => "SELECT job, waiter FROM waits ORDER BY job, waiter",
        Table::Timings => "SELECT flow, task, n, total FROM timings ORDER BY flow, task",
        Table::Tally => "SELECT line, state, n FROM tally ORDER BY line, state",
        Table::Daily => "SELECT day, what, n FROM daily ORDER BY day, what",
        Table::Fair => "SELECT line, tier, tenant, next FROM fair ORDER BY line, tier, tenant",
        Table::Journal => "SELECT n, at, events FROM journal ORDER BY n",
    }
}
