//! The one thread that writes.
//!
//! It drains its mailbox into one transaction, commits, and only then answers: many callers share
//! one sync, and an answer means that the data is on disk. A request that SQLite refuses takes down
//! the whole transaction; then each request gets one of its own, so that only the culprit fails.

mod bulk;
mod cache;
mod control;
mod flows;
mod forget;
mod heads;
mod inbox;
mod keys;
mod lease;
mod lifecycle;
mod mailbox;
mod meters;
mod operate;
mod place;
mod rules;
mod runs;
mod settle;
pub(crate) mod sql;
mod submit;

pub use flows::read_plan;
pub use mailbox::Request;

use crate::error::Abort;
use crate::turn::Turn;
use bulk::Hot;
use cache::Cache;
use flows::Flows;
use heads::Heads;
use inbox::{Inbox, Received};
use keys::Keys;
use mailbox::{Answer, Reply};
use meters::Meters;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{JobState, Json, Meta, Millis, TaskState, Timestamp};
use orchestrator_store::packed::{Ids, index_of, seq_of, state_code};
use orchestrator_store::untaken::given_back;
use orchestrator_store::{Clock, LeaseAsk, LeaseGrant, Settlement, StoreResult};
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use settle::Ended;
use sql::Sql;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

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
pub fn run(setup: Setup, mailbox: mpsc::Receiver<Request>, ready: impl FnOnce()) -> rusqlite::Result<()> {
    let Setup { conn, turn, ids, clock, changed } = setup;
    let mut writer = Writer {
        sql: Sql::prepare(&conn)?,
        hot: Hot::prepare(&conn)?,
        conn: &conn,
        cache: Cache::default(),
        keys: Keys::default(),
        flows: Flows::default(),
        heads: Heads::default(),
        leased: FxHashMap::default(),
        over: VecDeque::new(),
        main: "main".into(),
        no_meta: Arc::default(),
        seen: None,
        ids,
        served: FxHashMap::default(),
        turns: 0,
        held: vec![],
        now: clock.now(),
        changes: Changes::default(),
        meters: Meters::new(),
    };
    conn.execute_batch("BEGIN")?;
    if planted(Bug::LoseDelayedOnOpen) {
        conn.execute_batch("DELETE FROM delayed")?;
    }
    writer.load()?;
    writer.seen = Some(writer.sql.data_version.query_row([], |row| row.get(0))?);
    conn.execute_batch("COMMIT")?;
    ready();
    let mut inbox = Inbox::new(mailbox);
    loop {
        match inbox.next(writer.held.iter().map(|held| held.until).min()) {
            Received::Closed => return Ok(()),
            Received::Nothing => {}
            Received::Request(first) => {
                let mut group = inbox.group(first, MAX_WEIGHT);
                group.sort_by_key(Request::is_lease);
                writer.commit_group(&turn, &*clock, &changed, group);
            }
        }
        writer.let_go();
    }
}

struct Writer<'c> {
    conn: &'c Connection,
    sql: Sql<'c>,
    hot: Hot<'c>,
    cache: Cache,
    keys: Keys,
    flows: Flows,
    /// Heads of jobs of flows that were met of late.
    heads: Heads,
    /// What the rows of leases hold that were granted here.
    leased: FxHashMap<i64, Ended>,
    /// Jobs that have ended, and whose waiters are still to be told.
    over: VecDeque<(i64, Timestamp, JobState)>,
    /// The name of the task of a queue's job.
    main: Arc<str>,
    /// What a job carries along that carries nothing.
    no_meta: Arc<Meta>,
    /// The data version that cache and keys are of; `None` when they must be read anew.
    seen: Option<i64>,
    ids: Ids,
    /// When each line was served last, counted in leases, so that lines take turns. Only a matter of
    /// courtesy: it is forgotten with the process.
    served: FxHashMap<i64, u64>,
    turns: u64,
    /// Asks that found nothing and wait for the commit that brings work.
    held: Vec<HeldAsk>,
    /// The time of the transaction: one moment for all that happens in it.
    now: Timestamp,
    changes: Changes,
    meters: Meters,
}

/// An ask that is kept until there is work, or until its time is over.
struct HeldAsk {
    ask: LeaseAsk,
    reply: Reply<LeaseGrant>,
    until: Instant,
}

/// The answers of a transaction that was committed.
struct Answers {
    /// To the requests of the group, in order.
    requests: Vec<Answer>,
    /// To the asks that were held, in order.
    held: Vec<LeaseGrant>,
}

/// What a transaction gathers to write once, at its end.
#[derive(Default)]
struct Changes {
    events: Vec<(i64, u32, u8, u32)>,
    tallies: FxHashMap<(i64, u8), i64>,
    /// How many jobs came or ended on a day.
    daily: FxHashMap<(i64, u8), i64>,
    fair: Vec<(i64, u8, i64)>,
    /// Jobs whose head changed.
    heads: Vec<i64>,
    /// What tasks of flows ended with in this transaction: mostly those that need it come next.
    outputs: FxHashMap<i64, Option<Json>>,
    /// How many tasks of a flow completed, and how long they took together.
    timings: FxHashMap<(i64, u32), (i64, i64)>,
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
                let orphans = self.deliver(group, answers);
                if planted(Bug::AckBeforeCommit) {
                    let _ = self.sql.commit.raw_execute();
                }
                if !orphans.is_empty() && !planted(Bug::LoseOrphanedLease) {
                    let (reply, _) = oneshot::channel();
                    self.commit_group(turn, clock, changed, vec![Request::Settle(orphans, reply)]);
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

    /// Answers everybody. Comes back with what to give back: leases whose asker has gone.
    fn deliver(&mut self, group: Vec<Request>, answers: Answers) -> Vec<Settlement> {
        let mut orphans = vec![];
        let grants = answers.held.into_iter().chain(std::iter::repeat_with(LeaseGrant::default));
        for (held, grant) in std::mem::take(&mut self.held).into_iter().zip(grants) {
            if grant.tasks.is_empty() && grant.next_at.is_none() {
                self.held.push(held);
            } else {
                orphans.extend(undelivered(held.reply.send(Ok(grant))));
            }
        }
        for (request, answer) in group.into_iter().zip(answers.requests) {
            match (request, answer) {
                (Request::Lease(ask, reply), Answer::Lease(grant)) => {
                    if grant.tasks.is_empty() && grant.next_at.is_none() && ask.hold > Millis(0) {
                        let until = Instant::now() + Duration::from(ask.hold);
                        self.held.push(HeldAsk { ask, reply, until });
                    } else {
                        orphans.extend(undelivered(reply.send(Ok(grant))));
                    }
                }
                (request, answer) => request.answer(answer),
            }
        }
        orphans
    }

    /// Answers the held asks whose time is over.
    fn let_go(&mut self) {
        let now = Instant::now();
        for held in self.held.extract_if(.., |held| held.until <= now || held.reply.is_closed()) {
            // One who has gone does not miss an empty answer.
            let _ = held.reply.send(Ok(LeaseGrant::default()));
        }
    }

    fn transact(&mut self, turn: &Turn, clock: &dyn Clock, group: &[Request]) -> Result<Answers, Abort> {
        turn.take(|| self.sql.begin.raw_execute().map(drop))?;
        let done = self.run_group(clock, group).and_then(|answers| {
            if planted(Bug::AckBeforeCommit) {
                return Ok(answers);
            }
            let committing = Instant::now();
            let committed = self.sql.commit.raw_execute().map_err(Abort::at_commit);
            self.meters.committed(committing.elapsed(), group.len());
            if !planted(Bug::AckFailedCommit) {
                committed?;
            }
            Ok(answers)
        });
        if done.is_err() {
            // After some errors SQLite has rolled back by itself; then this one has nothing to do.
            let _ = self.sql.rollback.raw_execute();
            self.hot.forget();
            self.heads.clear();
            self.leased.clear();
            self.over.clear();
            self.flows = Flows::default();
            if !planted(Bug::KeepCacheAfterRollback) {
                self.seen = None;
            }
        }
        done
    }

    fn run_group(&mut self, clock: &dyn Clock, group: &[Request]) -> Result<Answers, Abort> {
        let mut version: i64 = self.sql.data_version.query_row([], |row| row.get(0))?;
        if planted(Bug::IgnoreOtherProcesses) {
            version = self.seen.unwrap_or(version);
        }
        if self.seen != Some(version) {
            if self.seen.is_none() {
                self.keys = Keys::default();
            }
            self.heads.clear();
            self.leased.clear();
            self.load()?;
            self.seen = Some(version);
        }
        self.heads.trim();
        self.now = clock.now();
        self.changes = Changes::default();
        let leases = group.iter().position(Request::is_lease).unwrap_or(group.len());
        let (others, leases) = group.split_at(leases);
        let mut requests =
            others.iter().map(|request| self.answer(request)).collect::<Result<Vec<_>, _>>()?;
        // Who has waited longest goes first.
        let held = if self.changes.wake { self.serve_held()? } else { vec![] };
        for request in leases {
            requests.push(self.answer(request)?);
        }
        self.write_changes()?;
        Ok(Answers { requests, held })
    }

    /// Tries the held asks again, now that something has changed. Each gets a grant, in order: one whose
    /// asker has gone an empty one.
    fn serve_held(&mut self) -> Result<Vec<LeaseGrant>, Abort> {
        let asks = std::mem::take(&mut self.held);
        let serve = |held: &HeldAsk| {
            if held.reply.is_closed() { Ok(LeaseGrant::default()) } else { self.lease(&held.ask) }
        };
        let grants = asks.iter().map(serve).collect();
        self.held = asks;
        grants
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
            Request::Control(wishes, _) => Answer::Control(self.control(wishes)?),
            Request::SetQueues(changes, _) => Answer::SetQueues(self.set_queues(changes)?),
            Request::Register(workers, _) => Answer::Register(self.register(workers)?),
            Request::Check((), _) => Answer::Check(self.check()?),
            Request::ChangeFlows(changes, _) => Answer::ChangeFlows(self.change_flows(changes)?),
            Request::SetLimits(changes, _) => Answer::SetLimits(self.set_limits(changes)?),
            Request::Forget(jobs, _) => Answer::Forget(self.forget(jobs)?),
            Request::ForgetJournal((before, limit), _) => {
                Answer::ForgetJournal(self.forget_journal(*before, *limit)?)
            }
        })
    }

    /// Notes for the journal that a task entered a state.
    fn note(&mut self, task: i64, state: TaskState, attempt: u32) {
        self.changes.events.push((seq_of(task), index_of(task), state_code(state), attempt));
    }

    fn write_changes(&mut self) -> Result<(), Abort> {
        self.write_heads()?;
        self.hot.flush()?;
        for ((flow, task), (n, total)) in self.changes.timings.drain() {
            self.sql.add_timing.execute((flow, task, n, total))?;
        }
        for ((line, state), n) in self.changes.tallies.drain() {
            self.sql.add_tally.execute((line, state, n))?;
        }
        for ((day, what), n) in self.changes.daily.drain() {
            self.sql.add_daily.execute((day, what, n))?;
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
        if let Some(watermark) = self.keys.merge_slice(&mut self.hot.idem)? {
            self.sql.put_watermark.execute([watermark])?;
        }
        if !self.changes.events.is_empty() {
            let events =
                postcard::to_stdvec(&self.changes.events).map_err(|e| Abort::Invalid(e.to_string()))?;
            self.sql.insert_journal.execute((self.now.as_millis(), events))?;
        }
        Ok(())
    }
}

/// The leases of a grant that nobody took.
fn undelivered(sent: Result<(), StoreResult<LeaseGrant>>) -> Vec<Settlement> {
    let Err(Ok(grant)) = sent else { return vec![] };
    given_back(&grant)
}
