//! Running again what ended badly.

use super::Model;
use super::job::{At, Location, Task, fresh};
use crate::verbs::Controlled;
use orchestrator_core::flow::advance::{self, From, NoRecovery, Reset, Undone};
use orchestrator_core::flow::run::Standing;
use orchestrator_core::{JobState, TaskId, TaskState, Timestamp};

impl Model {
    /// Runs the task of a queue's job again.
    pub(super) fn retry(&mut self, seq: u64, now: Timestamp) -> Controlled {
        if let Some(no) = self.cannot_run_again(seq) {
            return no;
        }
        let job = self.at_mut(seq);
        job.run.state = JobState::Running;
        job.run.tasks[0] = Standing::Live;
        job.run.ended = None;
        let task = self.task_mut((seq, 0));
        task.counters = fresh(task.counters.attempt);
        task.limits = task.released.as_ref().map(|released| released.limits.clone()).unwrap_or_default();
        self.enter_line((seq, 0), now);
        self.tell_task((seq, 0));
        self.today(now).reopened += 1;
        Controlled::Done(JobState::Running)
    }

    /// Takes a job up again from a task, or from everything that went wrong.
    pub(super) fn recover_from(&mut self, seq: u64, name: Option<&str>, now: Timestamp) -> Controlled {
        let job = self.at(seq);
        if !job.header {
            return Controlled::Refused(job.state());
        }
        let task = name.map(|name| job.plan.task_named(name));
        match (self.cannot_run_again(seq), task) {
            (Some(no), _) => no,
            (None, None) => self.recover(seq, From::Failures, true, now),
            (None, Some(Some(task))) => self.recover(seq, From::Task(task), true, now),
            (None, Some(None)) => Controlled::NoSuchTask,
        }
    }

    /// Runs a dead letter again.
    pub(super) fn requeue(&mut self, task: TaskId, now: Timestamp) -> Controlled {
        let Some((seq, index)) = self.dead_at(task) else { return Controlled::NoSuchTask };
        let job = self.at(seq);
        if !job.header {
            return self.retry(seq, now);
        }
        let is_item = job.run.place(index).is_some_and(|place| place.item.is_some());
        let from = if is_item { From::Item(index) } else { From::Task(index) };
        self.recover(seq, from, false, now)
    }

    /// Where a task is found that is in the dead letters.
    pub(super) fn dead_at(&self, task: TaskId) -> Option<At> {
        self.find(task).filter(|at| self.task_at(*at).end().is_some_and(|end| end.dead.is_some()))
    }

    /// Why a job cannot run again, whatever of it is wanted.
    fn cannot_run_again(&self, seq: u64) -> Option<Controlled> {
        let job = self.at(seq);
        if !matches!(job.state(), JobState::Failed | JobState::TimedOut) {
            return Some(Controlled::Refused(job.state()));
        }
        let holder = job.key.as_ref().and_then(|key| self.keys.get(key)).copied();
        let newer = holder.filter(|holder| *holder != seq)?;
        Some(Controlled::Superseded(self.at(newer).id))
    }

    /// Takes a job up again.
    pub(super) fn recover(&mut self, seq: u64, from: From, counted: bool, now: Timestamp) -> Controlled {
        if let Some(no) = self.cannot_run_again(seq) {
            return no;
        }
        let job = self.at_mut(seq);
        let reset = match advance::recover(&job.plan, &mut job.run, from, counted) {
            Ok(reset) => reset,
            Err(NoRecovery::State(state)) => return Controlled::Refused(state),
            Err(no) => return Controlled::NoRecovery(no),
        };
        let undone = self.undo(seq, &reset);
        self.today(now).reopened += 1;
        self.tell_job(seq, JobState::Recovering);
        self.tell_job(seq, JobState::Running);
        self.advance(seq, now, None, |plan, run, facts, past| {
            advance::restart(plan, run, facts, past, &undone)
        });
        self.follow_up(seq, now);
        Controlled::Done(self.at(seq).state())
    }

    /// Takes back the ends of what runs again, and says at which attempts they were.
    fn undo(&mut self, seq: u64, reset: &Reset) -> Undone {
        let mut undone = Undone::default();
        for index in &reset.tasks {
            self.task_mut((seq, *index)).released = None;
            let attempt = self.undo_end((seq, *index));
            undone.tasks.push((*index, attempt));
        }
        for group in &reset.gone {
            self.at_mut(seq).tasks.retain(|index, _| !group.has(*index));
        }
        for group in &reset.reopened {
            self.undo_end((seq, group.task));
            for index in group.first..group.first + group.count {
                let wanted = reset.item.is_none_or(|item| item == index);
                if wanted && self.ended_badly((seq, index)) {
                    let attempt = self.undo_end((seq, index));
                    undone.items.push((index, attempt));
                }
            }
        }
        undone
    }

    fn ended_badly(&self, at: At) -> bool {
        use TaskState::{Cancelled, Failed, TimedOut};
        self.task_at(at).end().is_some_and(|end| matches!(end.state, Failed | TimedOut | Cancelled))
    }

    /// Makes an ended task one that has not been let in; its record stays. Says its last attempt.
    fn undo_end(&mut self, at: At) -> u32 {
        let task: &mut Task = self.task_mut(at);
        let attempt = task.counters.attempt;
        task.counters = fresh(attempt);
        task.limits = task.released.as_ref().map(|released| released.limits.clone()).unwrap_or_default();
        task.location = Location::Pending;
        self.tell_task(at);
        attempt
    }
}
