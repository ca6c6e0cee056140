//! What happens to a job of a flow as a whole: stop, pause, resume, recover.

use super::Writer;
use super::heads::Head;
use super::lease::json;
use super::place::{Found, JobRow, Standing, Traveller};
use crate::error::Abort;
use orchestrator_core::flow::advance::{self, Change, From, NoRecovery, Reset, Undone};
use orchestrator_core::flow::run::{Group, Standing as Stands};
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{Counters, JobState, Json, TaskState, Timestamp};
use orchestrator_store::Controlled;
use orchestrator_store::packed::{index_of, pack, seq_of, state_of};
use rusqlite::OptionalExtension;
use std::sync::Arc;

/// A task of a flow that is alive, as its row tells.
#[derive(Clone, Copy, Debug)]
struct Live {
    task: i64,
    lane: i64,
    tier: u8,
    entry: Option<i64>,
}

/// A task that was taken out of wherever it waited.
struct Pulled {
    lane: i64,
    standing: Option<Standing>,
    due: Option<Timestamp>,
    counters: Counters,
    checkpoint: Option<Json>,
}

impl Writer<'_> {
    /// Ends a job as a whole.
    pub(super) fn stop(&mut self, seq: i64, state: JobState, reason: Option<String>) -> Result<(), Abort> {
        let mut head = self.take_head(seq)?;
        let end = if state == JobState::TimedOut { TaskState::TimedOut } else { TaskState::Cancelled };
        for live in self.live_tasks(seq)? {
            let (counters, lane) =
                match self.sql.lease_by_task.query_row([live.task], |row| row.get(0)).optional()? {
                    Some(attempt) => match self.end_lease(live.task, attempt)? {
                        Some(ended) => (ended.counters, ended.lane),
                        None => continue,
                    },
                    None => match self.pull(live)? {
                        Some(pulled) => (pulled.counters, pulled.lane),
                        None => {
                            let attempt = head.run.attempts_before(index_of(live.task));
                            (Counters { attempt, ..Counters::default() }, live.lane)
                        }
                    },
                };
            self.finish(live.task, end, counters, lane, None)?;
            self.note(live.task, end, counters.attempt);
        }
        for change in advance::stop(&mut head.run, state, reason, self.now) {
            if let Change::Close { index, state, failure } = change {
                self.close(&head, index, state, failure)?;
            }
        }
        if head.run.waits > 0 {
            head.run.waits = 0;
            self.sql.delete_waits_of.execute([seq])?;
        }
        self.changes.wake = true;
        self.note_job(seq, state);
        self.put_moved(head)?;
        Ok(())
    }

    fn live_tasks(&mut self, seq: i64) -> Result<Vec<Live>, Abort> {
        self.hot.flush()?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Live { task: row.get(0)?, lane: row.get(1)?, tier: row.get(2)?, entry: row.get(3)? })
        };
        let rows = self.sql.live_tasks.query_map((pack(seq, 0), pack(seq + 1, 0)), read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Takes a task that no worker holds out of the place where it stands; none for an item that stands nowhere yet.
    fn pull(&mut self, live: Live) -> Result<Option<Pulled>, Abort> {
        let Live { task, lane, tier, entry } = live;
        let held = self
            .sql
            .held_rows
            .query_row((task, task + 1), |row| held_row(row).map(|(_, pulled)| pulled))
            .optional()?;
        if held.is_some() {
            self.sql.delete_held.execute([task])?;
            return Ok(held);
        }
        let Some(at) = entry else { return Ok(None) };
        let line = self.cache.lane(lane).line;
        let in_line = |row: &rusqlite::Row<'_>| {
            let since = Timestamp::from_millis(row.get(0)?);
            let standing = Some(Standing { tier, stamp: at, since });
            Ok(Pulled { lane, standing, due: None, counters: counters(row, 1)?, checkpoint: json(row, 4)? })
        };
        if let Some(found) = self.sql.row_ready.query_row((line, tier, at, task), in_line).optional()? {
            self.sql.delete_ready.execute((line, tier, at, task))?;
            return Ok(Some(found));
        }
        if let Some(found) = self.sql.row_parked.query_row((lane, tier, at, task), in_line).optional()? {
            self.sql.delete_parked.execute((lane, tier, at, task))?;
            self.refresh_head(lane, tier)?;
            return Ok(Some(found));
        }
        let waits = |row: &rusqlite::Row<'_>| {
            let due = Some(Timestamp::from_millis(row.get(0)?));
            Ok(Pulled { lane, standing: None, due, counters: counters(row, 1)?, checkpoint: json(row, 4)? })
        };
        let found = self.sql.row_delayed.query_row((at, task), waits).optional()?;
        self.sql.delete_delayed.execute((at, task))?;
        match found {
            Some(found) => Ok(Some(found)),
            None => Err(Abort::Invalid(format!(
                "task {} of job row {} stands nowhere: the database was changed by another program",
                index_of(task),
                seq_of(task)
            ))),
        }
    }

    /// Starts nothing new of a job.
    pub(super) fn pause(&mut self, seq: i64, job: JobRow) -> Result<Controlled, Abort> {
        if job.flow.is_none() {
            let found = self.find(pack(seq, 0), &job)?;
            if found.job_state().is_terminal() {
                return Ok(Controlled::Refused(found.job_state()));
            }
            self.upgrade(seq, job, found)?;
        }
        let busy = self.runs_now(seq)?;
        let mut head = self.take_head(seq)?;
        if !head.run.pause(busy, self.now) {
            let state = head.run.state;
            self.keep_head(head);
            return Ok(Controlled::Refused(state));
        }
        for live in self.live_tasks(seq)? {
            let leased: Option<u32> =
                self.sql.lease_by_task.query_row([live.task], |row| row.get(0)).optional()?;
            if leased.is_some() {
                continue;
            }
            if let Some(pulled) = self.pull(live)? {
                let Pulled { lane, standing, due, counters, checkpoint } = pulled;
                let who = Traveller { task: live.task, counters, checkpoint: checkpoint.as_ref() };
                self.hold(lane, live.tier, standing, due, who)?;
            }
        }
        let state = head.run.state;
        self.note_job(seq, state);
        self.put_head(head);
        Ok(Controlled::Done(state))
    }

    /// Goes on after a pause.
    pub(super) fn resume(&mut self, seq: i64, job: &JobRow) -> Result<Controlled, Abort> {
        if job.flow.is_none() {
            let state = self.find(pack(seq, 0), job)?.job_state();
            return Ok(Controlled::Refused(state));
        }
        let mut head = self.take_head(seq)?;
        if !head.run.resume(self.now) {
            let state = head.run.state;
            self.keep_head(head);
            return Ok(Controlled::Refused(state));
        }
        self.note_job(seq, head.run.state);
        let held: Vec<((i64, u8), Pulled)> = self
            .sql
            .held_rows
            .query_map((pack(seq, 0), pack(seq + 1, 0)), held_row)?
            .collect::<Result<_, _>>()?;
        for ((task, tier), pulled) in held.into_iter().skip(usize::from(planted(Bug::ResumeForgetsHeld))) {
            self.sql.delete_held.execute([task])?;
            let Pulled { lane, standing, due, counters, checkpoint } = pulled;
            let who = Traveller { task, counters, checkpoint: checkpoint.as_ref() };
            let entry = match (due, standing) {
                (Some(due), _) if due > self.now => {
                    self.wait(due, lane, tier, who)?;
                    due.as_millis()
                }
                (due, standing) => {
                    let row = self.cache.lane(lane);
                    let standing = match standing {
                        Some(standing) => standing,
                        None => self.enter(row.line, tier, head.tenant, head.run.continues())?,
                    };
                    self.stand(&row, standing, who)?;
                    if due.is_some() && counters.failures > 0 {
                        self.note(task, TaskState::Queued, counters.attempt);
                    }
                    standing.stamp
                }
            };
            self.sql.move_task.execute((task, entry, lane))?;
        }
        let state = head.run.state;
        self.put_head(head);
        Ok(Controlled::Done(state))
    }

    /// Gives a job of a queue a head: from now on it is a job of the flow of its one task.
    fn upgrade(&mut self, seq: i64, job: JobRow, found: Found) -> Result<(), Abort> {
        let (Some(spec), Some(submitted)) = (job.spec, job.lane) else {
            return Err(Abort::Invalid(format!("job row {seq} has neither task nor flow")));
        };
        let spec = self.cache.specs[&spec].clone();
        let plan = Arc::new(Plan::of_task(&spec, &self.cache.lane(submitted).limits));
        let flow = self.flow_id(&plan)?;
        let task = pack(seq, 0);
        let mut run = Run::new(&plan);
        run.state = found.job_state();
        run.tasks[0] = Stands::Live;
        let (lane, entry) = match found {
            Found::Ready { place, .. } | Found::Parked { place, .. } | Found::Delayed(place) => {
                (place.lane, Some(place.at))
            }
            Found::Leased { attempt } => {
                self.sql.upgrade_lease.execute((task, flow))?;
                self.leased.remove(&task);
                let (lane, stamp, started): (i64, i64, i64) = self
                    .sql
                    .lease_row
                    .query_row((task, attempt), |row| Ok((row.get(3)?, row.get(5)?, row.get(9)?)))?;
                run.started = Some(Timestamp::from_millis(started));
                (lane, Some(stamp))
            }
            Found::Ended { .. } => (submitted, None),
        };
        self.sql.upgrade_job.execute((seq, flow))?;
        self.hot.tasks.push(super::bulk::TaskIn { task, lane, tier: job.tier, entry, payload: None })?;
        let meta = self.meta(job.meta.as_deref())?;
        self.put_head(Box::new(Head {
            seq,
            flow,
            plan,
            run,
            created: job.created,
            tenant: job.tenant,
            tier: job.tier,
            run_at: None,
            payload: Json::trusted(job.payload),
            meta,
            output: None,
            written: None,
            changed: false,
        }));
        Ok(())
    }

    /// Why a job with a head cannot be taken up again, whatever the task: it did not end badly, or its key has gone
    /// to a newer job.
    pub(super) fn cannot_run_again(&mut self, seq: i64, job: &JobRow) -> Result<Option<Controlled>, Abort> {
        let state = self.head_of(seq)?.run.state;
        if !matches!(state, JobState::Failed | JobState::TimedOut) {
            return Ok(Some(Controlled::Refused(state)));
        }
        Ok(self.superseded_by(seq, job)?.map(Controlled::Superseded))
    }

    /// Takes a job up again that ended badly.
    pub(super) fn recover(
        &mut self,
        seq: i64,
        job: &JobRow,
        from: From,
        counted: bool,
    ) -> Result<Controlled, Abort> {
        if let Some(no) = self.cannot_run_again(seq, job)? {
            return Ok(no);
        }
        let mut head = self.take_head(seq)?;
        let reset = match advance::recover(&head.plan, &mut head.run, from, counted) {
            Ok(reset) => reset,
            Err(refusal) => {
                self.keep_head(head);
                return Ok(match refusal {
                    NoRecovery::State(state) => Controlled::Refused(state),
                    other => Controlled::NoRecovery(other),
                });
            }
        };
        let undone = self.undo(&head, &reset)?;
        head.output = None;
        self.count_today(JobState::Recovering);
        self.note_job(seq, JobState::Recovering);
        self.note_job(seq, JobState::Running);
        self.step(&mut head, None, |plan, run, facts, past| {
            advance::restart(plan, run, facts, past, &undone)
        })?;
        self.put_moved(head).map(Controlled::Done)
    }

    /// Takes back the ends of tasks that are to run again.
    fn undo(&mut self, head: &Head, reset: &Reset) -> Result<Undone, Abort> {
        self.hot.flush()?;
        let mut undone = Undone::default();
        for task in &reset.tasks {
            let attempt = self.undo_end(head, *task)?;
            let task_row = pack(head.seq, *task);
            self.sql.delete_tasks.execute((task_row, task_row + 1))?;
            undone.tasks.push((*task, attempt));
        }
        for group in &reset.gone {
            let (first, last) = bounds(head.seq, group);
            let ends: Vec<(i64, u8, i64)> = self
                .sql
                .ends
                .query_map((first, last), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<Result<_, _>>()?;
            for (task, code, lane) in ends {
                self.tally(lane, state_of(code).unwrap_or(TaskState::Failed), -1);
                self.sql.delete_ended.execute([task])?;
                self.sql.delete_dead.execute([task])?;
            }
            self.sql.delete_tasks.execute((first, last))?;
            self.sql.delete_attempts.execute((first, last))?;
        }
        for group in &reset.reopened {
            self.undo_end(head, group.task)?;
            let (first, last) = match reset.item {
                Some(index) => (pack(head.seq, index), pack(head.seq, index) + 1),
                None => bounds(head.seq, group),
            };
            let bad: Vec<i64> =
                self.sql.bad_ends.query_map((first, last), |row| row.get(0))?.collect::<Result<_, _>>()?;
            for task in bad {
                let attempt = self.undo_end(head, index_of(task))?;
                self.sql.reset_task.execute([task])?;
                undone.items.push((index_of(task), attempt));
            }
        }
        Ok(undone)
    }

    /// Takes back the end of one task, if it has one. Answers with its last attempt.
    fn undo_end(&mut self, head: &Head, index: u32) -> Result<u32, Abort> {
        let task = pack(head.seq, index);
        let end: Option<(i64, u8, i64)> = self
            .sql
            .ends
            .query_row((task, task + 1), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((_, code, lane)) = end else { return Ok(head.run.attempts_before(index)) };
        let attempt: u32 = self.sql.ended_by_task.query_row([task], |row| row.get(1))?;
        self.tally(lane, state_of(code).unwrap_or(TaskState::Failed), -1);
        self.sql.delete_ended.execute([task])?;
        self.sql.delete_dead.execute([task])?;
        self.changes.outputs.remove(&task);
        self.note(task, TaskState::Pending, attempt);
        Ok(attempt)
    }
}

fn bounds(seq: i64, group: &Group) -> (i64, i64) {
    (pack(seq, group.first), pack(seq, group.first) + i64::from(group.count))
}

fn counters(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Counters> {
    Ok(Counters { attempt: row.get(at)?, failures: row.get(at + 1)?, crashes: row.get(at + 2)? })
}

/// A row of `held`: the task and its tier, and what travels with it.
fn held_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<((i64, u8), Pulled)> {
    let (stamp, since): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
    let tier = row.get(2)?;
    let standing =
        stamp.zip(since).map(|(stamp, since)| Standing { tier, stamp, since: Timestamp::from_millis(since) });
    let due = row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis);
    let pulled =
        Pulled { lane: row.get(1)?, standing, due, counters: counters(row, 6)?, checkpoint: json(row, 9)? };
    Ok(((row.get(0)?, tier), pulled))
}
