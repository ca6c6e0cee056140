//! The one thread that writes.
//!
//! It drains its mailbox into one transaction, commits, and only then answers: many callers share
//! one sync, and an answer means that the data is on disk. A request that SQLite refuses takes down
//! the whole transaction; then each request gets one of its own, so that only the culprit fails.

mod cache;
mod control;
mod keys;
mod lease;
mod mailbox;
mod place;
mod rules;
mod settle;
pub(crate) mod sql;
mod submit;

pub use mailbox::Request;

use crate::error::Abort;
use crate::ids::{Ids, index_of, seq_of, state_code};
use crate::turn::Turn;
use cache::Cache;
use keys::Keys;
use mailbox::Answer;
use orchestrator_core::{TaskState, Timestamp};
use orchestrator_store::Clock;
use rusqlite::Connection;
use sql::Sql;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A transaction takes requests until they weigh this much: it bounds how long one can last.
const MAX_WEIGHT: usize = 20_000;

/// What the writer needs to start.
pub struct Setup {
    /// The connection that only the writer uses.
    pub conn: Connection,
    /// The lock beside the file.
    pub turn: Turn,
    /// The ids of this database.
    pub ids: Ids,
    /// The store's clock.
    pub clock: Arc<dyn Clock>,
    /// Told after each commit that may have made work ready.
    pub changed: watch::Sender<u64>,
}

/// Calls `ready`, then runs until every sender of the mailbox is gone.
pub fn run(setup: Setup, mut mailbox: mpsc::Receiver<Request>, ready: impl FnOnce()) -> rusqlite::Result<()> {
    let Setup { conn, turn, ids, clock, changed } = setup;
    let mut writer = Writer {
        sql: Sql::prepare(&conn)?,
        conn: &conn,
        cache: Cache::default(),
        keys: Keys::default(),
        seen: None,
        ids,
        served: HashMap::new(),
        turns: 0,
        now: clock.now(),
        changes: Changes::default(),
    };
    conn.execute_batch("BEGIN")?;
    writer.load()?;
    writer.seen = Some(writer.sql.data_version.query_row([], |row| row.get(0))?);
    conn.execute_batch("COMMIT")?;
    ready();
    while let Some(first) = mailbox.blocking_recv() {
        let mut group = vec![first];
        let mut weight = group[0].weight();
        while weight < MAX_WEIGHT
            && let Ok(request) = mailbox.try_recv()
        {
            weight += request.weight();
            group.push(request);
        }
        group.sort_by_key(Request::is_lease);
        writer.commit_group(&turn, &*clock, &changed, group);
    }
    Ok(())
}

struct Writer<'c> {
    conn: &'c Connection,
    sql: Sql<'c>,
    cache: Cache,
    keys: Keys,
    /// The data version that cache and keys are of; `None` when they must be read anew.
    seen: Option<i64>,
    ids: Ids,
    /// When each line was served last, counted in leases, so that lines take turns. Only a matter of
    /// courtesy: it is forgotten with the process.
    served: HashMap<i64, u64>,
    turns: u64,
    /// The time of the transaction: one moment for all that happens in it.
    now: Timestamp,
    changes: Changes,
}

/// What a transaction gathers to write once, at its end.
#[derive(Default)]
struct Changes {
    events: Vec<(i64, u32, u8, u32)>,
    tallies: HashMap<(i64, u8), i64>,
    fair: Vec<(i64, u8, i64)>,
    buckets: bool,
    /// Whether work may have become ready, or room free.
    wake: bool,
}

impl Writer<'_> {
    fn commit_group(
        &mut self,
        turn: &Turn,
        clock: &dyn Clock,
        changed: &watch::Sender<u64>,
        mut group: Vec<Request>,
    ) {
        match self.transact(turn, clock, &group) {
            Ok(answers) => {
                if self.changes.wake {
                    changed.send_modify(|n| *n += 1);
                }
                for (request, answer) in group.into_iter().zip(answers) {
                    request.answer(answer);
                }
            }
            Err(abort) if group.len() == 1 || abort.is_environment() => {
                tracing::debug!(?abort, requests = group.len(), "transaction came to nothing");
                for request in group {
                    request.fail(abort.to_store_error());
                }
            }
            Err(_) => {
                for request in group.drain(..) {
                    self.commit_group(turn, clock, changed, vec![request]);
                }
            }
        }
    }

    fn transact(&mut self, turn: &Turn, clock: &dyn Clock, group: &[Request]) -> Result<Vec<Answer>, Abort> {
        turn.take(|| self.sql.begin.raw_execute().map(drop))?;
        let done = self.run_group(clock, group).and_then(|answers| {
            self.sql.commit.raw_execute().map_err(Abort::at_commit)?;
            Ok(answers)
        });
        if done.is_err() {
            // After some errors SQLite has rolled back by itself; then this one has nothing to do.
            let _ = self.sql.rollback.raw_execute();
            self.seen = None;
        }
        done
    }

    fn run_group(&mut self, clock: &dyn Clock, group: &[Request]) -> Result<Vec<Answer>, Abort> {
        let version: i64 = self.sql.data_version.query_row([], |row| row.get(0))?;
        if self.seen != Some(version) {
            if self.seen.is_none() {
                self.keys = Keys::default();
            }
            self.load()?;
            self.seen = Some(version);
        }
        self.now = clock.now();
        self.changes = Changes::default();
        let answers = group.iter().map(|request| self.answer(request)).collect::<Result<_, _>>()?;
        self.write_changes()?;
        Ok(answers)
    }

    fn load(&mut self) -> rusqlite::Result<()> {
        self.cache = Cache::load(self.conn)?;
        self.keys.catch_up(self.conn, &self.cache.specs, &self.cache.tenants)
    }

    fn answer(&mut self, request: &Request) -> Result<Answer, Abort> {
        Ok(match request {
            Request::Submit(jobs, _) => Answer::Submit(self.submit(jobs)?),
            Request::Lease(ask, _) => Answer::Lease(self.lease(ask)?),
            Request::Extend((held, ttl), _) => Answer::Extend(self.extend(held, *ttl)?),
            Request::Settle(batch, _) => Answer::Settle(self.settle(batch)?),
            Request::Expired(ask, _) => Answer::Expired(self.expired(ask)?),
            Request::Control(commands, _) => Answer::Control(self.control(commands)?),
            Request::SetLimits(changes, _) => Answer::SetLimits(self.set_limits(changes)?),
        })
    }

    /// Notes for the journal that a task entered a state.
    fn note(&mut self, task: i64, state: TaskState, attempt: u32) {
        self.changes.events.push((seq_of(task), index_of(task), state_code(state), attempt));
    }

    fn write_changes(&mut self) -> Result<(), Abort> {
        for ((line, state), n) in self.changes.tallies.drain() {
            self.sql.add_tally.execute((line, state, n))?;
        }
        self.changes.fair.sort_unstable();
        self.changes.fair.dedup();
        for (line, tier, tenant) in self.changes.fair.drain(..) {
            let next = self.cache.fair[&(line, tier, tenant)];
            self.sql.put_fair.execute((line, tier, tenant, next))?;
        }
        if self.changes.buckets {
            for key in self.cache.keys.iter_mut().filter(|key| key.bucket_moved) {
                self.sql.put_bucket.execute((key.key.as_str(), key.bucket.0))?;
                key.bucket_moved = false;
            }
        }
        if let Some(watermark) = self.keys.merge_slice(&mut self.sql.insert_idem)? {
            self.sql.put_watermark.execute([watermark])?;
        }
        if !self.changes.events.is_empty() {
            let events = postcard::to_stdvec(&self.changes.events).map_err(|e| Abort::Invalid(e.to_string()))?;
            self.sql.insert_journal.execute((self.now.as_millis(), events))?;
        }
        Ok(())
    }
}
