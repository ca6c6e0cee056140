//! What an operator asks.

use super::Writer;
use super::place::{Found, JobRow, Traveller};
use crate::error::Abort;
use orchestrator_core::flow::advance::From;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{Counters, JobState, TaskId, TaskState};
use orchestrator_store::packed::pack;
use orchestrator_store::{Command, Controlled, Wish};

impl Writer<'_> {
    pub(super) fn control(&mut self, wishes: &[Wish]) -> Result<Vec<Controlled>, Abort> {
        wishes.iter().map(|wish| self.fulfil(wish)).collect()
    }

    fn fulfil(&mut self, Wish { command, expect }: &Wish) -> Result<Controlled, Abort> {
        let id = command.job();
        let Some(seq) = self.ids.seq(id) else { return Ok(Controlled::NotFound) };
        let Some(job) = self.job_row(seq)?.filter(|job| job.created == id.created()) else {
            return Ok(Controlled::NotFound);
        };
        if let Some(expected) = expect {
            let state = self.job_state(seq, &job)?;
            if state != *expected {
                return Ok(Controlled::Changed(state));
            }
        }
        self.command(seq, job, command)
    }

    fn command(&mut self, seq: i64, job: JobRow, command: &Command) -> Result<Controlled, Abort> {
        match command {
            Command::Cancel(_) if job.flow.is_some() => self.cancel_flow(seq),
            Command::Cancel(_) => self.cancel(seq, job),
            Command::Pause(_) => self.pause(seq, job),
            Command::Resume(_) => self.resume(seq, &job),
            Command::Retry(_) if job.flow.is_some() => self.recover(seq, &job, From::Failures, false),
            Command::Retry(_) => self.retry(seq, job),
            Command::Recover { from, .. } => self.recover_by_hand(seq, &job, from.as_deref()),
            Command::Requeue(task) => self.requeue(seq, job, *task),
            Command::Discard(task) => {
                let discarded = self.sql.delete_dead.execute([pack(seq, task.index)])?;
                if discarded == 0 {
                    return Ok(Controlled::NoSuchTask);
                }
                self.job_state(seq, &job).map(Controlled::Done)
            }
        }
    }

    fn recover_by_hand(&mut self, seq: i64, job: &JobRow, from: Option<&str>) -> Result<Controlled, Abort> {
        if job.flow.is_none() {
            return self.job_state(seq, job).map(Controlled::Refused);
        }
        if let Some(no) = self.cannot_run_again(seq, job)? {
            return Ok(no);
        }
        let from = match from {
            None => From::Failures,
            Some(name) => match self.head_of(seq)?.plan.task_named(name) {
                Some(task) => From::Task(task),
                None => return Ok(Controlled::NoSuchTask),
            },
        };
        self.recover(seq, job, from, true)
    }

    fn requeue(&mut self, seq: i64, job: JobRow, task: TaskId) -> Result<Controlled, Abort> {
        if !self.sql.dead_by_task.exists([pack(seq, task.index)])? {
            return Ok(Controlled::NoSuchTask);
        }
        if job.flow.is_none() {
            return self.retry(seq, job);
        }
        let tasks = self.head_of(seq)?.plan.tasks().len();
        let index = task.index;
        let from = if (index as usize) < tasks { From::Task(index) } else { From::Item(index) };
        self.recover(seq, &job, from, false)
    }

    fn retry(&mut self, seq: i64, job: JobRow) -> Result<Controlled, Abort> {
        let task = pack(seq, 0);
        let found = self.find(task, &job)?;
        let (Found::Ended { state: ended @ (TaskState::Failed | TaskState::TimedOut), attempt }, Some(lane)) =
            (found, job.lane)
        else {
            return Ok(Controlled::Refused(found.job_state()));
        };
        if let Some(newer) = self.superseded_by(seq, &job)? {
            return Ok(Controlled::Superseded(newer));
        }
        self.sql.delete_ended.execute([task])?;
        self.sql.delete_dead.execute([task])?;
        self.tally(lane, ended, -1);
        let lane = self.cache.lane(lane);
        let standing = self.enter(lane.line, job.tier, job.tenant, false)?;
        let counters = Counters { attempt, ..Counters::default() };
        self.stand(&lane, standing, Traveller { task, counters, checkpoint: None })?;
        self.note(task, TaskState::Queued, attempt);
        self.count_today(JobState::Recovering);
        Ok(Controlled::Done(JobState::of_only_task(TaskState::Queued, attempt > 0)))
    }

    fn cancel_flow(&mut self, seq: i64) -> Result<Controlled, Abort> {
        let state = self.head_of(seq)?.run.state;
        if state.is_terminal() {
            return Ok(Controlled::Refused(state));
        }
        self.stop(seq, JobState::Cancelled, None)?;
        Ok(Controlled::Done(JobState::Cancelled))
    }

    fn cancel(&mut self, seq: i64, job: JobRow) -> Result<Controlled, Abort> {
        let task = pack(seq, 0);
        let (counters, lane) = match self.find(task, &job)? {
            found @ Found::Ended { .. } => return Ok(Controlled::Refused(found.job_state())),
            Found::Ready { line, tier, place } => {
                self.sql.delete_ready.execute((line, tier, place.at, task))?;
                (place.counters, place.lane)
            }
            Found::Parked { tier, place } => {
                self.sql.delete_parked.execute((place.lane, tier, place.at, task))?;
                self.refresh_head(place.lane, tier)?;
                (place.counters, place.lane)
            }
            Found::Delayed(place) => {
                if !planted(Bug::CancelLeavesRetry) {
                    self.sql.delete_delayed.execute((place.at, task))?;
                }
                (place.counters, place.lane)
            }
            Found::Leased { attempt } => {
                let Some(ended) = self.end_lease(task, attempt)? else { return Ok(Controlled::NotFound) };
                (ended.counters, ended.lane)
            }
        };
        self.changes.wake = true;
        self.finish(task, TaskState::Cancelled, counters, lane, None)?;
        self.note(task, TaskState::Cancelled, counters.attempt);
        self.queue_job_over(task, TaskState::Cancelled)?;
        Ok(Controlled::Done(JobState::Cancelled))
    }
}
