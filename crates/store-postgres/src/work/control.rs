//! What an operator asks.

use super::{JobRow, Step, Work};
use crate::place::{At, End, Placed};
use orchestrator_core::flow::advance::From;
use orchestrator_core::{JobState, TaskId, TaskState};
use orchestrator_store::packed::pack;
use orchestrator_store::{Command, Controlled, Wish};

impl Work {
    /// Carries out one command, if its job is in the state that it counts on.
    pub fn control(&mut self, Wish { command, expect }: &Wish) -> Step<Controlled> {
        let id = command.job();
        let Some(seq) = self.ids.seq(id) else { return Ok(Controlled::NotFound) };
        let Some(job) = self.job(seq)?.filter(|job| job.created == id.created()) else {
            return Ok(Controlled::NotFound);
        };
        if let Some(expected) = expect {
            let state = self.job_state(seq, &job)?;
            if state != *expected {
                return Ok(Controlled::Changed(state));
            }
        }
        match command {
            Command::Cancel(_) if job.flow.is_some() => self.cancel_flow(seq),
            Command::Cancel(_) => self.cancel(seq),
            Command::Pause(_) => self.pause(seq, &job),
            Command::Resume(_) => self.resume(seq, &job),
            Command::Retry(_) if job.flow.is_some() => self.recover(seq, &job, From::Failures, false),
            Command::Retry(_) => self.retry(seq, &job),
            Command::Recover { from, .. } => self.recover_by_hand(seq, &job, from.as_deref()),
            Command::Requeue(task) => self.requeue(seq, &job, *task),
            Command::Discard(task) => self.discard(seq, &job, *task),
        }
    }

    fn recover_by_hand(&mut self, seq: i64, job: &JobRow, from: Option<&str>) -> Step<Controlled> {
        if job.flow.is_none() {
            return self.job_state(seq, job).map(Controlled::Refused);
        }
        if let Some(no) = self.cannot_run_again(seq, job)? {
            return Ok(no);
        }
        let from = match from {
            None => From::Failures,
            Some(name) => match self.head(seq)?.plan.task_named(name) {
                Some(task) => From::Task(task),
                None => return Ok(Controlled::NoSuchTask),
            },
        };
        self.recover(seq, job, from, true)
    }

    /// A task in the dead letters.
    fn dead(&mut self, seq: i64, job: &JobRow, task: TaskId) -> Step<Option<Placed>> {
        let exists = match job.flow {
            Some(_) => self.head(seq)?.run.place(task.index).is_some(),
            None => task.index == 0,
        };
        if !exists {
            return Ok(None);
        }
        let placed = self.placed(pack(seq, task.index))?;
        Ok(placed.filter(|placed| placed.end().is_some_and(|end| end.dead.is_some())))
    }

    fn discard(&mut self, seq: i64, job: &JobRow, task: TaskId) -> Step<Controlled> {
        let Some(placed) = self.dead(seq, job, task)? else { return Ok(Controlled::NoSuchTask) };
        if let At::Ended(end) = &placed.at {
            let at = At::Ended(End { dead: None, ..end.clone() });
            self.put(pack(seq, task.index), Some(Placed { at, ..placed }));
        }
        self.job_state(seq, job).map(Controlled::Done)
    }

    fn requeue(&mut self, seq: i64, job: &JobRow, task: TaskId) -> Step<Controlled> {
        if self.dead(seq, job, task)?.is_none() {
            return Ok(Controlled::NoSuchTask);
        }
        if job.flow.is_none() {
            return self.retry(seq, job);
        }
        let tasks = self.head(seq)?.plan.tasks().len();
        let index = task.index;
        let from = if (index as usize) < tasks { From::Task(index) } else { From::Item(index) };
        self.recover(seq, job, from, false)
    }

    fn retry(&mut self, seq: i64, job: &JobRow) -> Step<Controlled> {
        let task = pack(seq, 0);
        let state = self.job_state(seq, job)?;
        let placed = self.placed(task)?;
        let bad = placed.filter(|placed| {
            placed.end().is_some_and(|end| matches!(end.state, TaskState::Failed | TaskState::TimedOut))
        });
        let (Some(placed), Some(lane)) = (bad, job.lane) else { return Ok(Controlled::Refused(state)) };
        if let Some(newer) = self.superseded_by(seq, job)? {
            return Ok(Controlled::Superseded(newer));
        }
        let lane = self.lane(lane)?;
        if let Some(end) = placed.end() {
            self.tally(lane.line, end.state, -1);
        }
        let attempt = placed.counters.attempt;
        let spot = self.enter(lane.line, job.tier, job.tenant, false);
        self.stand(task, lane.id, job.tier, spot, Work::fresh(attempt), None);
        self.note(task, TaskState::Queued, attempt);
        self.count_today(JobState::Recovering);
        Ok(Controlled::Done(JobState::of_only_task(TaskState::Queued, attempt > 0)))
    }

    fn cancel_flow(&mut self, seq: i64) -> Step<Controlled> {
        let state = self.head(seq)?.run.state;
        if state.is_terminal() {
            return Ok(Controlled::Refused(state));
        }
        self.stop(seq, JobState::Cancelled, None)?;
        Ok(Controlled::Done(JobState::Cancelled))
    }

    fn cancel(&mut self, seq: i64) -> Step<Controlled> {
        let task = pack(seq, 0);
        let Some(placed) = self.placed(task)? else { return Ok(Controlled::NotFound) };
        if let Some(end) = placed.end() {
            return Ok(Controlled::Refused(JobState::of_only_task(end.state, true)));
        }
        self.queue_job_over(seq, TaskState::Cancelled)?;
        self.pull(&placed)?;
        self.staged.wake = true;
        let end = self.plain_end(TaskState::Cancelled);
        self.finish(task, placed.lane, placed.tier, placed.counters, end)?;
        self.note(task, TaskState::Cancelled, placed.counters.attempt);
        Ok(Controlled::Done(JobState::Cancelled))
    }
}
