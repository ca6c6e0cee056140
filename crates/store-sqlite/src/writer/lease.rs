//! Handing out tasks.
//!
//! The candidates of a (line, tier) come from two places in the order of their stamps: the head of
//! `ready`, and the heads of parked lanes that have room again. A ready task whose lane has no room
//! is parked when it is met, so it is met once. What was taken or parked is a prefix of the tier
//! and leaves `ready` in one statement.

use super::Writer;
use super::bulk::{LeaseIn, Text};
use super::cache::{Place, Room};
use super::place::{Standing, Traveller};
use super::settle::Ended;
use crate::error::Abort;
use orchestrator_core::order::effective_tier;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{Counters, JobState, Json, Meta, Priority, TaskState, Timestamp};
use orchestrator_store::packed::{index_of, seq_of};
use orchestrator_store::{LeaseAsk, LeaseGrant, Leased};
use rusqlite::OptionalExtension;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many due tasks one lease puts in line at most per page.
const DUE_PAGE: u32 = 1000;
/// How many ready tasks one lease parks at most; the next lease goes on from there.
const MAX_PARKED: usize = 20_000;

/// A task in line, with what its lease needs.
struct Candidate {
    stamp: i64,
    task: i64,
    lane: i64,
    since: Timestamp,
    counters: Counters,
    checkpoint: Option<Json>,
    job: JobPart,
}

struct JobPart {
    created: Timestamp,
    spec: Option<i64>,
    tenant: i64,
    key: Option<Arc<str>>,
    flow: Option<i64>,
    /// Absent for a job of a flow, whose tasks have their own.
    payload: Option<Json>,
    /// Absent for a job of a flow, whose head has it.
    meta: Option<String>,
}

/// What runs a task, and what it gets.
struct Job {
    name: Arc<str>,
    flow: Option<Arc<str>>,
    spec: i64,
    payload: Json,
    meta: Arc<Meta>,
}

impl JobPart {
    /// Reads the columns from `at` on.
    fn read(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<JobPart> {
        Ok(JobPart {
            created: Timestamp::from_millis(row.get(at)?),
            spec: row.get(at + 1)?,
            tenant: row.get(at + 2)?,
            key: row.get_ref(at + 3)?.as_str_or_null()?.map(Arc::from),
            flow: row.get(at + 4)?,
            payload: json(row, at + 5)?,
            meta: row.get(at + 6)?,
        })
    }
}

/// The reading end of one (line, tier).
struct Cursor {
    line: i64,
    tier: u8,
    page: VecDeque<Candidate>,
    /// The last place that was read from `ready`.
    read: Place,
    /// Whether `ready` may have more behind it.
    more: bool,
    /// The last place that was taken or parked: all of `ready` up to here is to be deleted.
    used: Option<Place>,
    /// Whether it has nothing more to lease.
    dry: bool,
}

/// Where the best candidate of a cursor stands.
enum Best {
    Ready,
    Parked(Place, i64),
}

impl Writer<'_> {
    pub(super) fn lease(&mut self, ask: &LeaseAsk) -> Result<LeaseGrant, Abort> {
        self.hot.flush()?;
        self.promote_due()?;
        self.hot.flush()?;
        let mut cursors = self.cursors(ask);
        let mut grant = LeaseGrant::default();
        let mut parked = 0;
        while grant.tasks.len() < ask.slots as usize && parked < MAX_PARKED {
            let left = ask.slots as usize - grant.tasks.len();
            let mut best: Option<((u8, u64, Timestamp), usize, Best)> = None;
            for (n, cursor) in cursors.iter_mut().enumerate().filter(|(_, cursor)| !cursor.dry) {
                let (head, moved) = self.head(cursor, left)?;
                parked += moved;
                match head {
                    Some((since, found)) => {
                        // Lines take turns; between tiers of one line that are on a level the longest wait
                        // wins, else new urgent work could hold up old work for ever.
                        let tier = effective_tier(cursor.tier, self.now.since(since));
                        let turn = self.served.get(&cursor.line).copied().unwrap_or(0);
                        let rank = (tier, turn, since);
                        if best.as_ref().is_none_or(|(other, _, _)| rank < *other) {
                            best = Some((rank, n, found));
                        }
                    }
                    // A lease only takes room, so what is blocked now stays blocked to its end.
                    None => cursor.dry = true,
                }
            }
            let Some((_, n, found)) = best else { break };
            let cursor = &mut cursors[n];
            self.turns += 1;
            self.served.insert(cursor.line, self.turns);
            grant.tasks.push(self.take(cursor, found, ask)?);
        }
        for cursor in &cursors {
            if let Some((stamp, task)) = cursor.used {
                self.sql.delete_ready_prefix.execute((cursor.line, cursor.tier, stamp, task))?;
            }
        }
        grant.next_at = if grant.tasks.len() < ask.slots as usize {
            self.next_at(&cursors, parked >= MAX_PARKED)?
        } else {
            None
        };
        Ok(grant)
    }

    fn cursors(&self, ask: &LeaseAsk) -> Vec<Cursor> {
        let mut cursors = vec![];
        for queue in ask.queues.iter().filter(|queue| !self.cache.paused.contains(*queue)) {
            for handler in &ask.handlers {
                let name = (queue.clone(), handler.clone(), orchestrator_core::Limits::none());
                let Some(line) = self.cache.lane_ids.get(&name) else { continue };
                for tier in Priority::ALL.map(Priority::tier) {
                    let read = (i64::MIN, i64::MIN);
                    let page = VecDeque::new();
                    cursors.push(Cursor {
                        line: *line,
                        tier,
                        page,
                        read,
                        more: true,
                        used: None,
                        dry: false,
                    });
                }
            }
        }
        cursors
    }

    /// The best candidate of a cursor that can be leased now, and how many it parked on the way.
    fn head(
        &mut self,
        cursor: &mut Cursor,
        left: usize,
    ) -> Result<(Option<(Timestamp, Best)>, usize), Abort> {
        let mut moved = 0;
        let ready = loop {
            if cursor.page.is_empty() && cursor.more {
                self.read_page(cursor, left)?;
            }
            let Some(first) = cursor.page.front() else { break None };
            let lane = self.cache.lane(first.lane);
            if self.cache.room(&lane, self.now) == Room::Yes {
                break Some(((first.stamp, first.task), first.since));
            }
            if moved >= MAX_PARKED {
                break None;
            }
            let Some(blocked) = cursor.page.pop_front() else { break None };
            let standing = Standing { tier: cursor.tier, stamp: blocked.stamp, since: blocked.since };
            let checkpoint = blocked.checkpoint.as_ref();
            let who = Traveller { task: blocked.task, counters: blocked.counters, checkpoint };
            self.park(blocked.lane, standing, who)?;
            cursor.used = Some((blocked.stamp, blocked.task));
            moved += 1;
        };
        let parked = self.open_head(cursor.line, cursor.tier, ready.map(|(place, _)| place));
        Ok((
            match (parked, ready) {
                (Some((place, lane, since)), _) => Some((since, Best::Parked(place, lane))),
                (None, Some((_, since))) => Some((since, Best::Ready)),
                (None, None) => None,
            },
            moved,
        ))
    }

    /// The first parked lane of a (line, tier) that has room and stands before `limit`.
    fn open_head(&self, line: i64, tier: u8, limit: Option<Place>) -> Option<(Place, i64, Timestamp)> {
        let group = self.cache.heads.get(&(line, tier))?;
        for (place, head) in group {
            if limit.is_some_and(|limit| *place > limit) {
                return None;
            }
            if self.cache.room(&self.cache.lane(head.lane), self.now) == Room::Yes {
                return Some((*place, head.lane, head.since));
            }
        }
        None
    }

    fn read_page(&mut self, cursor: &mut Cursor, left: usize) -> Result<(), Abort> {
        let size = left.clamp(8, 2000);
        let mut rows = self.sql.ready_page.query((
            cursor.line,
            cursor.tier,
            cursor.read.0,
            cursor.read.1,
            size as i64,
        ))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            let candidate = Candidate {
                stamp: row.get(0)?,
                task: row.get(1)?,
                lane: row.get(2)?,
                since: Timestamp::from_millis(row.get(3)?),
                counters: Counters { attempt: row.get(4)?, failures: row.get(5)?, crashes: row.get(6)? },
                checkpoint: json(row, 7)?,
                job: JobPart::read(row, 8)?,
            };
            cursor.read = (candidate.stamp, candidate.task);
            cursor.page.push_back(candidate);
        }
        cursor.more = count == size;
        Ok(())
    }

    /// Leases the best candidate of a cursor.
    fn take(&mut self, cursor: &mut Cursor, best: Best, ask: &LeaseAsk) -> Result<Leased, Abort> {
        let candidate = match best {
            Best::Ready => {
                let Some(candidate) = cursor.page.pop_front() else {
                    return Err(Abort::Invalid("a candidate vanished".to_owned()));
                };
                cursor.used = Some((candidate.stamp, candidate.task));
                candidate
            }
            Best::Parked((stamp, task), lane) => self.unpark(lane, cursor.tier, stamp, task)?,
        };
        let now = self.now;
        let lane = self.cache.lane(candidate.lane);
        self.cache.occupy(lane.id);
        self.cache.start(&lane, now);
        self.changes.buckets |= !lane.keys.is_empty();
        self.advance_front(cursor.line, cursor.tier, candidate.stamp)?;
        let job = self.job_of(&candidate)?;
        let spec = self.cache.specs[&job.spec].clone();
        let mut counters = Counters { attempt: candidate.counters.attempt + 1, ..candidate.counters };
        if planted(Bug::ReuseAttempt) {
            counters.attempt = candidate.counters.attempt.max(1);
        }
        let expires = now + ask.ttl;
        let times_out = spec.timeout.map(|timeout| now + timeout);
        self.hot.leases.push(LeaseIn {
            task: candidate.task,
            attempt: counters.attempt,
            failures: counters.failures,
            crashes: counters.crashes,
            spec: job.spec,
            flow: candidate.job.flow,
            lane: candidate.lane,
            tier: cursor.tier,
            stamp: candidate.stamp,
            since: candidate.since.as_millis(),
            started: now.as_millis(),
            expires: expires.as_millis(),
            times_out: times_out.map(Timestamp::as_millis),
            worker: ask.worker.clone().into(),
            checkpoint: candidate.checkpoint.clone().map(Text),
        })?;
        let standing = Standing { tier: cursor.tier, stamp: candidate.stamp, since: candidate.since };
        self.leased.insert(
            candidate.task,
            Ended {
                counters,
                spec: job.spec,
                lane: candidate.lane,
                standing,
                checkpoint: candidate.checkpoint.clone(),
                flow: candidate.job.flow,
                started: now,
            },
        );
        self.note(candidate.task, TaskState::Running, counters.attempt);
        Ok(Leased {
            task: self.ids.task(candidate.job.created, candidate.task),
            name: job.name,
            flow: job.flow,
            counters,
            spec,
            tenant: self.cache.tenants[&candidate.job.tenant].clone(),
            key: candidate.job.key,
            payload: job.payload,
            checkpoint: candidate.checkpoint,
            limits: lane.limits.clone(),
            meta: job.meta,
            expires,
            times_out,
        })
    }

    /// What a task is to its job. The first one that is leased starts the job.
    fn job_of(&mut self, candidate: &Candidate) -> Result<Job, Abort> {
        let Some(flow) = candidate.job.flow else {
            let (Some(spec), Some(payload)) = (candidate.job.spec, candidate.job.payload.clone()) else {
                return Err(Abort::Invalid("a job row has neither task nor flow".to_owned()));
            };
            let meta = self.meta(candidate.job.meta.as_deref())?;
            return Ok(Job { name: self.main.clone(), flow: None, spec, payload, meta });
        };
        let plan = self.plan(flow)?;
        let (seq, index) = (seq_of(candidate.task), index_of(candidate.task));
        let head = self.head_of(seq)?;
        let (first, starts) = (head.run.started.is_none(), head.run.state == JobState::Pending);
        let Some(place) = head.run.place(index) else {
            return Err(Abort::Invalid(format!("job row {seq} has no task {index}")));
        };
        if first {
            let mut head = self.take_head(seq)?;
            head.run.start(self.now);
            self.put_head(head);
        }
        if starts {
            self.note_job(seq, JobState::Running);
        }
        let rules = &plan.tasks()[place.task as usize];
        let own = rules.each.is_some() || rules.with.as_ref().is_some_and(|with| !with.is_literal());
        let known = self.heads.take_payload(candidate.task);
        let stored = if known.is_some() {
            known
        } else if own {
            self.sql.task_row.query_row([candidate.task], |row| json(row, 3)).optional()?.flatten()
        } else {
            None
        };
        let payload = match stored.or_else(|| rules.literal.clone()) {
            Some(payload) => payload,
            None => self.head_of(seq)?.payload.clone(),
        };
        Ok(Job {
            name: match place.item {
                Some(item) => format!("{}[{item}]", rules.name).into(),
                None => rules.name.clone(),
            },
            flow: (!plan.is_implicit()).then(|| plan.name().clone()),
            spec: self.task_spec_id(flow, &plan, place.task)?,
            payload,
            meta: self.head_of(seq)?.meta.clone(),
        })
    }

    fn unpark(&mut self, lane: i64, tier: u8, stamp: i64, task: i64) -> Result<Candidate, Abort> {
        let candidate = self.sql.parked_row.query_row((lane, tier, stamp, task), |row| {
            Ok(Candidate {
                stamp,
                task,
                lane,
                since: Timestamp::from_millis(row.get(0)?),
                counters: Counters { attempt: row.get(1)?, failures: row.get(2)?, crashes: row.get(3)? },
                checkpoint: json(row, 4)?,
                job: JobPart::read(row, 5)?,
            })
        })?;
        self.sql.delete_parked.execute((lane, tier, stamp, task))?;
        self.refresh_head(lane, tier)?;
        Ok(candidate)
    }

    /// Puts the tasks in line that fell due.
    fn promote_due(&mut self) -> Result<(), Abort> {
        loop {
            type Due = (i64, i64, i64, Counters, Option<Json>, u8, i64, bool);
            let due: Vec<Due> = self
                .sql
                .due_page
                .query_map((self.now.as_millis(), DUE_PAGE), |row| {
                    let counters =
                        Counters { attempt: row.get(3)?, failures: row.get(4)?, crashes: row.get(5)? };
                    Ok((
                        row.get(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        counters,
                        json(row, 6)?,
                        row.get(7)?,
                        row.get(8)?,
                        row.get(9)?,
                    ))
                })?
                .collect::<Result<_, _>>()?;
            let Some((last_due, last_task, ..)) = due.last() else { return Ok(()) };
            self.sql.delete_due_prefix.execute((last_due, last_task))?;
            let full = due.len() == DUE_PAGE as usize;
            for (_, task, lane, counters, checkpoint, tier, tenant, of_flow) in due {
                let lane = self.cache.lane(lane);
                let goes_on = of_flow && self.head_of(seq_of(task))?.run.continues();
                let standing = self.enter(lane.line, tier, tenant, goes_on)?;
                let who = Traveller { task, counters, checkpoint: checkpoint.as_ref() };
                self.stand(&lane, standing, who)?;
                if of_flow {
                    self.sql.move_task.execute((task, standing.stamp, lane.id))?;
                }
                if counters.failures > 0 {
                    self.note(task, TaskState::Queued, counters.attempt);
                }
            }
            if !full {
                return Ok(());
            }
        }
    }

    /// When the passing of time alone may make another task ready for these lines.
    fn next_at(&mut self, cursors: &[Cursor], unfinished: bool) -> Result<Option<Timestamp>, Abort> {
        if unfinished {
            return Ok(Some(self.now));
        }
        let asked = |line: i64| cursors.iter().any(|cursor| cursor.line == line);
        let dues: Vec<(i64, i64)> =
            self.sql.dues.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        // Where none of the soonest is asked for, the last of them bounds the wait: ask again then.
        let due = dues
            .iter()
            .find(|(_, lane)| asked(self.cache.lane(*lane).line))
            .or(dues.get(63))
            .map(|(due, _)| Timestamp::from_millis(*due));
        let rates = cursors
            .iter()
            .filter_map(|cursor| self.cache.heads.get(&(cursor.line, cursor.tier)))
            .flat_map(|group| group.values())
            .filter_map(|head| match self.cache.room(&self.cache.lane(head.lane), self.now) {
                Room::At(at) => Some(at),
                Room::Yes | Room::Full => None,
            });
        Ok(due.into_iter().chain(rates).min())
    }
}

/// JSON that may be absent, from a column.
pub(super) fn json(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<Json>> {
    Ok(row.get_ref(at)?.as_str_or_null()?.map(Json::trusted))
}
