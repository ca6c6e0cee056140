//! Bare SQLite.

use super::super::queue::payload;
use super::super::{LoadArgs, SendArgs};
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, queue INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL, run_at INTEGER NOT NULL, lease_until INTEGER, attempt INTEGER NOT NULL DEFAULT 0,
    payload TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS jobs_ready ON jobs (queue, priority, run_at, id) WHERE state = 0;";
const INSERT: &str = "INSERT INTO jobs (queue, priority, run_at, payload) VALUES (1, ?1, ?2, ?3)";
const LEASE: &str = "UPDATE jobs SET state = 1, lease_until = ?1, attempt = attempt + 1 WHERE id IN
    (SELECT id FROM jobs WHERE state = 0 AND queue = 1 AND run_at <= ?2 ORDER BY priority, run_at LIMIT ?3)
    RETURNING id, payload";
const ACK: &str = "UPDATE jobs SET state = 2, lease_until = NULL WHERE id = ?1 AND state = 1";

/// A file that is not made yet.
pub struct Bare {
    path: PathBuf,
}

impl Bare {
    /// The file at a path.
    pub fn new(path: PathBuf) -> Bare {
        Bare { path }
    }

    /// One connection, one thread: enqueue all, then lease and acknowledge in batches, a commit each.
    pub fn cycle(&self, jobs: u64, send: &SendArgs) -> CliResult<(Duration, Duration)> {
        cycle_times(jobs, send, &self.path).map_err(failed)
    }

    /// Many callers, one insert per call, one writer thread with group commit.
    pub async fn inserts(&self, load: &LoadArgs) -> CliResult<Duration> {
        inserts(load, &self.path).await
    }
}

fn cycle_times(jobs: u64, send: &SendArgs, path: &Path) -> rusqlite::Result<(Duration, Duration)> {
    let mut conn = open(path)?;
    let text = payload(send.payload);
    let start = Instant::now();
    let mut sent = 0;
    while sent < jobs {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = tx.prepare_cached(INSERT)?;
            for _ in 0..send.batch.min(jobs - sent) {
                insert.execute(params![0, micros(), text.as_str()])?;
                sent += 1;
            }
        }
        tx.commit()?;
    }
    let enqueue = start.elapsed();
    let start = Instant::now();
    let mut done = 0;
    while done < jobs {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let ids: Vec<i64> = {
            let mut lease = tx.prepare_cached(LEASE)?;
            let now = micros();
            let rows = lease.query_map(params![now + 30_000_000, now, send.batch as i64], |row| {
                std::hint::black_box(row.get::<_, String>(1)?);
                row.get(0)
            })?;
            rows.collect::<Result<_, _>>()?
        };
        tx.commit()?;
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut ack = tx.prepare_cached(ACK)?;
            for id in &ids {
                done += ack.execute([id])? as u64;
            }
        }
        tx.commit()?;
    }
    Ok((enqueue, start.elapsed()))
}

async fn inserts(load: &LoadArgs, path: &Path) -> CliResult<Duration> {
    let (mailbox, writer) = writer(path)?;
    let start = Instant::now();
    let each = load.jobs / load.callers;
    let callers: Vec<_> = (0..load.callers)
        .map(|_| {
            let (mailbox, text) = (mailbox.clone(), payload(load.send.payload));
            tokio::spawn(async move {
                for _ in 0..each {
                    let (reply, answer) = oneshot::channel();
                    if mailbox.send((text.clone(), reply)).is_err() || answer.await.is_err() {
                        return false;
                    }
                }
                true
            })
        })
        .collect();
    drop(mailbox);
    let mut fine = true;
    for caller in callers {
        fine &= caller.await.unwrap_or(false);
    }
    let took = start.elapsed();
    match writer.join() {
        Ok(Ok(())) if fine => Ok(took),
        Ok(Err(error)) => Err(failed(error)),
        _ => Err(CliError::new(Exit::Error, "bench", "the raw writer ended early")),
    }
}

/// What the writer takes: a payload, and who hears its number once it is on disk.
pub type Insert = (String, oneshot::Sender<i64>);

/// A thread that writes what it is sent, all that waits in one commit. It ends when nobody can send any more.
pub fn writer(path: &Path) -> CliResult<(mpsc::UnboundedSender<Insert>, JoinHandle<rusqlite::Result<()>>)> {
    let conn = open(path).map_err(failed)?;
    let (mailbox, mut inbox) = mpsc::unbounded_channel::<Insert>();
    let writer = std::thread::spawn(move || -> rusqlite::Result<()> {
        while let Some(first) = inbox.blocking_recv() {
            let mut waiting = vec![];
            conn.execute_batch("BEGIN IMMEDIATE")?;
            let mut next = Some(first);
            while let Some((text, reply)) = next.take() {
                conn.prepare_cached(INSERT)?.execute(params![0, micros(), text])?;
                waiting.push((reply, conn.last_insert_rowid()));
                if waiting.len() < 4096 {
                    next = inbox.try_recv().ok();
                }
            }
            conn.execute_batch("COMMIT")?;
            for (reply, id) in waiting {
                // A caller that is gone needs no answer.
                let _ = reply.send(id);
            }
        }
        Ok(())
    });
    Ok((mailbox, writer))
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;")?;
    conn.execute_batch(SCHEMA)?;
    Ok(conn)
}

fn micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

fn failed(error: rusqlite::Error) -> CliError {
    CliError::new(Exit::Error, "bench", format!("the bare database failed: {error}"))
}
