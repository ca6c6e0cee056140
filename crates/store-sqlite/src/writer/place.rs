//! Where a task that is not running stands: in line (ready or parked) or out of it until a moment.

use super::Writer;
use super::bulk::{ReadyIn, Text};
use super::cache::{Lane, Room};
use crate::error::Abort;
use orchestrator_core::{Counters, JobState, Json, TaskState, Timestamp, decide, order};
use orchestrator_store::packed::seq_of;
use rusqlite::{OptionalExtension, Params, Statement};

/// The tenant id under which the front of a tier is kept.
const FRONT: i64 = 0;

/// What travels with a task from table to table.
#[derive(Clone, Copy, Debug)]
pub struct Traveller<'a> {
    /// The packed task.
    pub task: i64,
    /// What has happened to it.
    pub counters: Counters,
    /// What an earlier leg left.
    pub checkpoint: Option<&'a Json>,
}

/// A place in a tier.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The tier.
    pub tier: u8,
    /// The stamp.
    pub stamp: i64,
    /// Since when it is in line.
    pub since: Timestamp,
}

/// A task that waits, in whatever table.
#[derive(Clone, Copy, Debug)]
pub struct Standpoint {
    /// Its lane.
    pub lane: i64,
    /// Its stamp or its due time.
    pub at: i64,
    /// What has happened to it.
    pub counters: Counters,
}

/// Where a task was found.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    /// In line.
    Ready { line: i64, tier: u8, place: Standpoint },
    /// In line behind a limit.
    Parked { tier: u8, place: Standpoint },
    /// Out of line until a moment.
    Delayed(Standpoint),
    /// Held by a worker.
    Leased { attempt: u32 },
    /// Over.
    Ended { state: TaskState, attempt: u32 },
}

impl Found {
    /// The job's state, for a job of one task.
    pub fn job_state(self) -> JobState {
        match self {
            Found::Ready { place, .. } | Found::Parked { place, .. } => {
                JobState::of_only_task(TaskState::Queued, place.counters.attempt > 0)
            }
            Found::Delayed(place) => {
                JobState::of_only_task(decide::waiting_state(&place.counters), place.counters.attempt > 0)
            }
            Found::Leased { .. } => JobState::Running,
            Found::Ended { state, .. } => JobState::of_only_task(state, true),
        }
    }
}

/// The static part of a job's row.
#[derive(Clone, Debug)]
pub struct JobRow {
    /// When it was taken in.
    pub created: Timestamp,
    /// How its task is run, if it is a job of a queue.
    pub spec: Option<i64>,
    /// The lane it was submitted to, if it is a job of a queue.
    pub lane: Option<i64>,
    /// Its flow, if it has a head.
    pub flow: Option<i64>,
    /// Its tier.
    pub tier: u8,
    /// Its tenant.
    pub tenant: i64,
    /// The stamp or due time of its first entry.
    pub entry: Option<i64>,
    /// The caller's key.
    pub key: Option<String>,
    /// The key's window.
    pub bucket: Option<i64>,
    /// What its handler gets.
    pub payload: String,
    /// What it carries along.
    pub meta: Option<String>,
}

impl Writer<'_> {
    /// Gives the next place in a tier to a tenant, among its new jobs or among those that go on.
    pub fn enter(&mut self, line: i64, tier: u8, tenant: i64, goes_on: bool) -> Result<Standing, Abort> {
        let tenant = if goes_on { -tenant } else { tenant };
        let front = self.fair(line, tier, FRONT)?;
        let next = self.fair(line, tier, tenant)?;
        let place = order::enter(front, next);
        self.set_fair(line, tier, tenant, place.tenant_next);
        Ok(Standing { tier, stamp: place.stamp, since: self.now })
    }

    /// Moves the front of a tier to a stamp that was leased.
    pub fn advance_front(&mut self, line: i64, tier: u8, stamp: i64) -> Result<(), Abort> {
        if stamp > self.fair(line, tier, FRONT)? {
            self.set_fair(line, tier, FRONT, stamp);
        }
        Ok(())
    }

    fn fair(&mut self, line: i64, tier: u8, tenant: i64) -> Result<i64, Abort> {
        if let Some(next) = self.cache.fair.get(&(line, tier, tenant)) {
            return Ok(*next);
        }
        let next =
            self.sql.get_fair.query_row((line, tier, tenant), |row| row.get(0)).optional()?.unwrap_or(0);
        self.cache.fair.insert((line, tier, tenant), next);
        Ok(next)
    }

    fn set_fair(&mut self, line: i64, tier: u8, tenant: i64, next: i64) {
        self.cache.fair.insert((line, tier, tenant), next);
        // Neighbours are mostly the same tenant: this keeps the list short without a set.
        if self.changes.fair.last() != Some(&(line, tier, tenant)) {
            self.changes.fair.push((line, tier, tenant));
        }
    }

    /// Puts a task in line: ready if its lane has room, else parked.
    pub fn stand(&mut self, lane: &Lane, standing: Standing, who: Traveller<'_>) -> Result<(), Abort> {
        self.changes.wake = true;
        if self.cache.room(lane, self.now) == Room::Yes {
            let Counters { attempt, failures, crashes } = who.counters;
            self.hot.ready.push(ReadyIn {
                line: lane.line,
                tier: standing.tier,
                stamp: standing.stamp,
                task: who.task,
                lane: lane.id,
                since: standing.since.as_millis(),
                attempt,
                failures,
                crashes,
                checkpoint: who.checkpoint.cloned().map(Text),
            })?;
            Ok(())
        } else {
            self.park(lane.id, standing, who)
        }
    }

    /// Parks a task behind its lane.
    pub fn park(&mut self, lane: i64, standing: Standing, who: Traveller<'_>) -> Result<(), Abort> {
        let Counters { attempt, failures, crashes } = who.counters;
        let Standing { tier, stamp, since } = standing;
        self.sql.insert_parked.execute((
            lane,
            tier,
            stamp,
            who.task,
            since.as_millis(),
            attempt,
            failures,
            crashes,
            who.checkpoint.map(Json::as_str),
        ))?;
        let place = (stamp, who.task);
        if self.cache.lane_heads.get(&(lane, tier)).is_none_or(|head| place < *head) {
            self.cache.set_head(lane, tier, Some((place, since)));
        }
        Ok(())
    }

    /// Looks up which task is now the first of a parked lane.
    pub fn refresh_head(&mut self, lane: i64, tier: u8) -> Result<(), Abort> {
        let head = self
            .sql
            .parked_head
            .query_row((lane, tier), |row| {
                Ok(((row.get(0)?, row.get(1)?), Timestamp::from_millis(row.get(2)?)))
            })
            .optional()?;
        self.cache.set_head(lane, tier, head);
        Ok(())
    }

    /// Takes a task out of line until a moment.
    pub fn wait(&mut self, due: Timestamp, lane: i64, tier: u8, who: Traveller<'_>) -> Result<(), Abort> {
        let Counters { attempt, failures, crashes } = who.counters;
        self.changes.wake = true;
        self.sql.insert_delayed.execute((
            due.as_millis(),
            who.task,
            lane,
            tier,
            attempt,
            failures,
            crashes,
            who.checkpoint.map(Json::as_str),
        ))?;
        Ok(())
    }

    /// The row of a job. Whoever looks at one looks at its task next, so all that waits is written.
    pub fn job_row(&mut self, seq: i64) -> Result<Option<JobRow>, Abort> {
        self.hot.flush()?;
        let row = self
            .sql
            .job_by_seq
            .query_row([seq], |row| {
                Ok(JobRow {
                    created: Timestamp::from_millis(row.get(0)?),
                    spec: row.get(1)?,
                    lane: row.get(2)?,
                    tier: row.get(3)?,
                    tenant: row.get(4)?,
                    entry: row.get(5)?,
                    key: row.get(6)?,
                    bucket: row.get(7)?,
                    payload: row.get(8)?,
                    flow: row.get(9)?,
                    meta: row.get(10)?,
                })
            })
            .optional()?;
        Ok(row)
    }

    /// Finds the task of a job of a queue that has no head, wherever it stands.
    pub fn find(&mut self, task: i64, job: &JobRow) -> Result<Found, Abort> {
        let ended = self
            .sql
            .ended_by_task
            .query_row([task], |row| Ok((row.get::<_, u8>(0)?, row.get(1)?)))
            .optional()?;
        if let Some((code, attempt)) = ended {
            let state = orchestrator_store::packed::state_of(code).unwrap_or(TaskState::Failed);
            return Ok(Found::Ended { state, attempt });
        }
        if let Some(attempt) = self.sql.lease_by_task.query_row([task], |row| row.get(0)).optional()? {
            return Ok(Found::Leased { attempt });
        }
        let (Some(lane), Some(entry)) = (job.lane, job.entry) else {
            return Err(Abort::Invalid(format!("job row {} is not of a queue", seq_of(task))));
        };
        let (line, tier) = (self.cache.lane(lane).line, job.tier);
        let ready = |place: Standpoint| Found::Ready { line, tier, place };
        let parked = |place: Standpoint| Found::Parked { tier, place };
        // Most tasks still stand where they entered; one that has moved since is searched for.
        let found = standpoint(&mut self.sql.seek_ready, (line, tier, entry, task))?
            .map(ready)
            .or(standpoint(&mut self.sql.seek_parked, (lane, tier, entry, task))?.map(parked))
            .or(standpoint(&mut self.sql.seek_delayed, (entry, task))?.map(Found::Delayed));
        if let Some(found) = found {
            return Ok(found);
        }
        standpoint(&mut self.sql.scan_delayed, [task])?
            .map(Found::Delayed)
            .or(standpoint(&mut self.sql.scan_parked, [task])?.map(parked))
            .or(standpoint(&mut self.sql.scan_ready, (line, tier, task))?.map(ready))
            .ok_or_else(|| {
                let seq = seq_of(task);
                Abort::Invalid(format!(
                    "job row {seq} has no task: the database was changed by another program"
                ))
            })
    }
}

fn standpoint(statement: &mut Statement<'_>, params: impl Params) -> Result<Option<Standpoint>, Abort> {
    let found = statement.query_row(params, |row| {
        Ok(Standpoint {
            lane: row.get(0)?,
            at: row.get(1)?,
            counters: Counters { attempt: row.get(2)?, failures: row.get(3)?, crashes: row.get(4)? },
        })
    });
    Ok(found.optional()?)
}
