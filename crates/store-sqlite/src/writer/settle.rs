//! Ending attempts, prolonging them, and ending those that are overdue.

use super::Writer;
use super::bulk::{EndedIn, Text};
use super::lease::json;
use super::place::{Standing, Traveller};
use crate::error::Abort;
use orchestrator_core::flow::advance::soften;
use orchestrator_core::outcome::Leg;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{
    Counters, ErrorClass, Failure, JobState, Json, Millis, Next, Outcome, TaskState, Timestamp, decide,
};
use orchestrator_store::packed::{index_of, seq_of, state_code};
use orchestrator_store::{Beat, Held, Settled, Settlement, SweepAsk, Swept};
use rusqlite::OptionalExtension;

/// What a lease's row tells beside who holds it and how long.
#[derive(Clone)]
pub(super) struct Ended {
    pub counters: Counters,
    pub spec: i64,
    pub lane: i64,
    pub standing: Standing,
    pub checkpoint: Option<Json>,
    pub flow: Option<i64>,
    pub started: Timestamp,
}

impl Writer<'_> {
    pub(super) fn settle(&mut self, batch: &[Settlement]) -> Result<Vec<Settled>, Abort> {
        batch
            .iter()
            .map(|settlement| match self.ids.packed(settlement.held.task) {
                Some(task) => {
                    let mut attempt = settlement.held.attempt;
                    if planted(Bug::DropFence) {
                        attempt =
                            self.sql.lease_by_task.query_row([task], |row| row.get(0)).unwrap_or(attempt);
                    }
                    let done = self.end(task, attempt, &settlement.outcome, settlement.jitter)?;
                    if done == Settled::Stale {
                        self.record_stale(settlement.held)?;
                    }
                    Ok(done)
                }
                None => Ok(Settled::Stale),
            })
            .collect()
    }

    /// Ends one attempt if it holds its lease.
    fn end(&mut self, task: i64, attempt: u32, outcome: &Outcome, jitter: f64) -> Result<Settled, Abort> {
        let Some(ended) = self.end_lease(task, attempt)? else { return Ok(Settled::Stale) };
        let spec = self.cache.specs[&ended.spec].clone();
        let mut decision = decide(&spec, ended.counters, outcome, self.now, jitter);
        let head = match ended.flow {
            Some(_) => Some(self.take_head(seq_of(task))?),
            None => None,
        };
        let rules = head.as_ref().and_then(|head| head.run.place(index_of(task))).map(|place| place.task);
        if let (Some(head), Some(rules)) = (&head, rules) {
            decision = soften(decision, head.plan.tasks()[rules as usize].optional);
        }
        let (lane, checkpoint) = match outcome {
            Outcome::Continue(Leg { checkpoint, limits, .. }) => {
                (self.lane_id(&spec, limits)?, Some(checkpoint.clone()))
            }
            _ => (ended.lane, ended.checkpoint),
        };
        match outcome {
            Outcome::Failed(failure) => {
                self.record(task, attempt, &format!("failed:{}", failure.class), &failure.message)?;
            }
            Outcome::Lost => {
                self.record(task, attempt, "lost", "the worker vanished: its lease ran out")?;
            }
            _ => {}
        }
        let who = Traveller { task, counters: decision.counters, checkpoint: checkpoint.as_ref() };
        let state = decision.state();
        self.note(task, state, attempt);
        let (due, dead) = match decision.next {
            Next::Requeue => (None, None),
            Next::Wait(until) => (Some(until), None),
            Next::End(_, dead) => (None, dead),
        };
        if let Next::End(state, dead) = decision.next {
            let output = match outcome {
                Outcome::Completed(output) | Outcome::Skipped(output) => Some(output.clone()),
                _ => None,
            };
            self.finish(task, state, decision.counters, lane, output.clone())?;
            if let Some(reason) = dead {
                let line = self.cache.lane(lane).line;
                self.sql.insert_dead.execute((task, self.now.as_millis(), reason.as_str(), line))?;
            }
            if planted(Bug::SplitCommit) {
                self.hot.flush()?;
                self.conn.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
            }
            let job_ended = match head {
                Some(head) => {
                    if let (TaskState::Completed, Some(rules)) = (state, rules) {
                        self.time(head.flow, rules, self.now.since(ended.started));
                    }
                    self.task_over(head, index_of(task), state, output)?
                }
                None => {
                    self.queue_job_over(task, state)?;
                    true
                }
            };
            return Ok(Settled::Applied { state, due, dead, job_ended });
        }
        match head {
            Some(mut head) if head.run.is_paused() => {
                let standing = due.is_none().then_some(ended.standing);
                self.hold(lane, ended.standing.tier, standing, due, who)?;
                self.come_to_rest(&mut head)?;
                self.put_head(head);
            }
            head => {
                let row = self.cache.lane(lane);
                let place = match due {
                    Some(until) => {
                        self.wait(until, lane, ended.standing.tier, who)?;
                        until.as_millis()
                    }
                    None => {
                        self.stand(&row, ended.standing, who)?;
                        ended.standing.stamp
                    }
                };
                if let Some(head) = head {
                    // Where it stands now is not where it stood, unless it just goes back to its place.
                    if due.is_some() || lane != ended.lane {
                        self.sql.move_task.execute((task, place, lane))?;
                    }
                    self.keep_head(head);
                }
            }
        }
        Ok(Settled::Applied { state, due, dead, job_ended: false })
    }

    /// Counts a job of a queue that has ended with its task, and tells who waits for it.
    pub(super) fn queue_job_over(&mut self, task: i64, state: TaskState) -> Result<(), Abort> {
        let seq = seq_of(task);
        self.count_today(JobState::of_only_task(state, true));
        if self.cache.awaited.contains(&seq)
            && let Some(job) = self.job_row(seq)?
        {
            self.job_over(seq, job.created, JobState::of_only_task(state, true))?;
        }
        Ok(())
    }

    /// Takes the lease from an attempt, if it holds one, and its slots with it.
    pub(super) fn end_lease(&mut self, task: i64, attempt: u32) -> Result<Option<Ended>, Abort> {
        let known = self.leased.get(&task).filter(|known| known.counters.attempt == attempt).cloned();
        let found = match known {
            Some(known) => Some(known),
            None => self.lease_row(task, attempt)?,
        };
        let Some(ended) = found else { return Ok(None) };
        self.leased.remove(&task);
        // What is remembered tells what the row holds; whether it is there, only the table tells.
        if self.sql.delete_lease.execute((task, attempt))? == 0 {
            return Ok(None);
        }
        if !planted(Bug::LeakSlot) {
            self.cache.vacate(ended.lane);
        }
        self.changes.wake = true;
        Ok(Some(ended))
    }

    fn lease_row(&mut self, task: i64, attempt: u32) -> Result<Option<Ended>, Abort> {
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Ended {
                counters: Counters { attempt, failures: row.get(0)?, crashes: row.get(1)? },
                spec: row.get(2)?,
                lane: row.get(3)?,
                standing: Standing {
                    tier: row.get(4)?,
                    stamp: row.get(5)?,
                    since: Timestamp::from_millis(row.get(6)?),
                },
                checkpoint: json(row, 7)?,
                flow: row.get(8)?,
                started: Timestamp::from_millis(row.get(9)?),
            })
        };
        Ok(self.sql.lease_row.query_row((task, attempt), read).optional()?)
    }

    /// Writes the end of a task.
    pub(super) fn finish(
        &mut self,
        task: i64,
        state: TaskState,
        counters: Counters,
        lane: i64,
        output: Option<Json>,
    ) -> Result<(), Abort> {
        let Counters { attempt, failures, crashes } = counters;
        let code = state_code(state);
        let (at, output) = (self.now.as_millis(), output.map(Text));
        self.hot.ended.push(EndedIn { task, state: code, at, attempt, failures, crashes, lane, output })?;
        *self.changes.tallies.entry((self.cache.lane(lane).line, code)).or_default() += 1;
        Ok(())
    }

    pub(super) fn record(&mut self, task: i64, attempt: u32, how: &str, message: &str) -> Result<(), Abort> {
        self.sql.insert_attempt.execute((task, attempt, self.now.as_millis(), how, message))?;
        Ok(())
    }

    fn record_stale(&mut self, held: Held) -> Result<(), Abort> {
        let Some(task) = self.ids.packed(held.task) else { return Ok(()) };
        let Some(job) = self.job_row(seq_of(task))? else { return Ok(()) };
        if job.created != held.task.job.created() {
            return Ok(());
        }
        let exists = match job.flow {
            Some(_) => self.head_of(seq_of(task))?.run.place(held.task.index).is_some(),
            None => held.task.index == 0,
        };
        if !exists {
            return Ok(());
        }
        let message = format!("a write by attempt {} came after its lease was lost", held.attempt);
        self.record(task, held.attempt, "stale", &message)
    }

    pub(super) fn extend(&mut self, held: &[Held], ttl: Millis) -> Result<Vec<Beat>, Abort> {
        let until = self.now + ttl;
        held.iter()
            .map(|held| {
                let Some(task) = self.ids.packed(held.task) else { return Ok(Beat::Lost) };
                let mut attempt = held.attempt;
                if planted(Bug::BeatForAnother) {
                    attempt = self.sql.lease_by_task.query_row([task], |row| row.get(0)).unwrap_or(attempt);
                }
                let extended = self.sql.extend_lease.execute((task, attempt, until.as_millis()))?;
                Ok(if extended == 1 { Beat::Until(until) } else { Beat::Lost })
            })
            .collect()
    }

    pub(super) fn expired(&mut self, ask: &SweepAsk) -> Result<Swept, Abort> {
        // What is changed in this transaction is read back here.
        self.write_heads()?;
        self.hot.flush()?;
        let mut late: Vec<i64> = self
            .sql
            .overdue_runs
            .query_map((self.now.as_millis(), i64::from(ask.limit) + 1), |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let more_jobs = late.len() > ask.limit as usize;
        late.truncate(ask.limit as usize);
        let mut timed_out = Vec::with_capacity(late.len());
        for seq in late {
            let head = self.head_of(seq)?;
            // One that waits has no deadline, so none of these can have ended by the end of another.
            debug_assert!(!head.run.state.is_terminal());
            let limit = head.plan.timeout().unwrap_or_default();
            let created = head.created;
            self.stop(seq, JobState::TimedOut, Some(format!("it took longer than {limit}")))?;
            timed_out.push(self.ids.job(created, seq));
        }
        self.hot.flush()?;
        let left = ask.limit as usize - timed_out.len();
        type Overdue = (i64, u32, i64, Option<i64>, i64);
        // One more than asked for tells whether more are overdue.
        let mut overdue: Vec<Overdue> = self
            .sql
            .overdue
            .query_map((self.now.as_millis(), left as i64 + 1), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })?
            .collect::<Result<_, _>>()?;
        let more = more_jobs || overdue.len() > left;
        overdue.truncate(left);
        if planted(Bug::SkipSweepPage) && !overdue.is_empty() {
            overdue.remove(0);
        }
        let mut ended = Vec::with_capacity(overdue.len());
        for (n, (task, attempt, expires, times_out, started)) in overdue.into_iter().enumerate() {
            let outcome = match times_out {
                Some(times_out) if times_out <= expires => {
                    let timeout = Millis(u64::try_from(times_out - started).unwrap_or(0));
                    let message = format!("the attempt took longer than {timeout}");
                    Outcome::Failed(Failure::new(ErrorClass::Timeout, message))
                }
                _ => Outcome::Lost,
            };
            let settled = self.end(task, attempt, &outcome, ask.jitter_of(n))?;
            if let Some(job) = self.job_row(seq_of(task))? {
                ended.push((Held { task: self.ids.task(job.created, task), attempt }, settled));
            }
        }
        Ok(Swept { ended, timed_out, more })
    }
}
