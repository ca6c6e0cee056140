//! How jobs move on: what `orchestrator_core::flow::advance` decides, carried out.

use super::Model;
use super::job::{At, End, Job, Location, Released, Task, fresh};
use crate::views::{AttemptEnd, AttemptRecord};
use orchestrator_core::flow::Plan;
use orchestrator_core::flow::advance::{self, Change, Facts, Moves, Past, Release};
use orchestrator_core::flow::run::Run;
use orchestrator_core::{DeadReason, Failure, JobState, Json, TaskState, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

/// What the tasks of a job have left.
pub(super) struct Left<'a>(&'a BTreeMap<u32, Task>);

impl Past for Left<'_> {
    type Error = Infallible;

    fn output(&mut self, index: u32) -> Result<Option<Json>, Infallible> {
        Ok(self.0.get(&index).and_then(Task::end).and_then(|end| end.output.clone()))
    }

    fn error(&mut self, index: u32) -> Result<Option<String>, Infallible> {
        let mut history = self.0.get(&index).into_iter().flat_map(|task| &task.history);
        let last = history.rfind(|record| record.how != AttemptEnd::Stale);
        Ok(last.map(|record| record.message.clone()))
    }
}

impl Model {
    /// Lets a step decide with the job's run in hand, and does what it says. Tasks that it lets in wait until
    /// `due`, if that is given.
    pub(super) fn advance(
        &mut self,
        seq: u64,
        now: Timestamp,
        due: Option<Timestamp>,
        step: impl FnOnce(&Plan, &mut Run, Facts<'_>, &mut Left<'_>) -> Result<Moves, Infallible>,
    ) {
        let Job { id, tenant, payload, plan, mut run, tasks, .. } = self.at(seq).clone();
        let facts = Facts { id, tenant: &tenant, input: &payload, now };
        let Ok(moves) = step(&plan, &mut run, facts, &mut Left(&tasks));
        let job = self.at_mut(seq);
        job.run = run;
        job.output = moves.output;
        for change in moves.changes {
            self.apply(seq, change, due, now);
        }
    }

    /// Lets the first tasks of a job in.
    pub(super) fn begin(&mut self, seq: u64, now: Timestamp) {
        let due = self.at(seq).run_at.filter(|at| *at > now);
        let start = due.unwrap_or(now);
        self.advance(seq, now, due, |plan, run, facts, past| advance::begin(plan, run, facts, past, start));
    }

    fn apply(&mut self, seq: u64, change: Change, due: Option<Timestamp>, now: Timestamp) {
        match change {
            Change::Release(release) => self.release(seq, release, due, now),
            Change::Admit(index) => self.admit((seq, index), None, now),
            Change::Expanded(index) => {
                self.task_mut((seq, index)).location = Location::Expanded;
                self.tell_task((seq, index));
            }
            Change::Close { index, state, failure } => self.close((seq, index), state, failure, now),
        }
    }

    fn release(&mut self, seq: u64, release: Release, due: Option<Timestamp>, now: Timestamp) {
        let Release { index, payload, limits, attempt, admitted, task: _ } = release;
        let task = self.at_mut(seq).tasks.entry(index).or_default();
        task.limits = limits.clone();
        task.released = Some(Released { payload, limits });
        task.counters = fresh(attempt);
        if admitted {
            self.admit((seq, index), due, now);
        }
    }

    /// Puts a task into line, unless it waits for a moment or its job is paused.
    fn admit(&mut self, at: At, due: Option<Timestamp>, now: Timestamp) {
        if self.at(at.0).run.is_paused() {
            self.task_mut(at).location = Location::Held { spot: None, due };
        } else if let Some(due) = due {
            self.task_mut(at).location = Location::Waiting { due };
        } else {
            self.enter_line(at, now);
        }
        self.tell_task(at);
    }

    /// Ends a task without an attempt.
    fn close(&mut self, at: At, state: TaskState, failure: Option<Failure>, now: Timestamp) {
        let attempt = self.at(at.0).run.attempts_before(at.1);
        let task = self.task_mut(at);
        task.counters = fresh(attempt);
        let mut end = End::plain(state, now);
        if let Some(Failure { class, message, .. }) = failure {
            let how = AttemptEnd::Failed(class);
            task.history.push(AttemptRecord { attempt, at: now, how, message: message.clone() });
            end.dead = (state == TaskState::Failed).then_some((DeadReason::Final, message));
        }
        task.location = Location::Ended(end);
        self.tell_task(at);
    }

    /// Ends a job as a whole: what is alive first, then what never came to life.
    pub(super) fn stop(&mut self, seq: u64, state: JobState, reason: Option<String>, now: Timestamp) {
        let end = if state == JobState::TimedOut { TaskState::TimedOut } else { TaskState::Cancelled };
        let alive = |(index, task): (&u32, &Task)| task.is_alive().then_some(*index);
        let alive: Vec<u32> = self.at(seq).tasks.iter().filter_map(alive).collect();
        for index in alive {
            let task = self.task_mut((seq, index));
            task.checkpoint = None;
            task.location = Location::Ended(End::plain(end, now));
            self.tell_task((seq, index));
        }
        let job = self.at_mut(seq);
        job.waits_for.clear();
        job.run.waits = 0;
        for change in advance::stop(&mut job.run, state, reason, now) {
            self.apply(seq, change, None, now);
        }
    }

    /// Does what follows from the end of a job, if it has ended: it is told, and those that waited for it begin or
    /// are cancelled, which may end them too.
    pub(super) fn follow_up(&mut self, seq: u64, now: Timestamp) {
        let is_over = |model: &Model, seq: u64| model.at(seq).state().is_terminal();
        let mut ended: VecDeque<u64> = [seq].into_iter().filter(|seq| is_over(self, *seq)).collect();
        while let Some(seq) = ended.pop_front() {
            let (id, state) = (self.at(seq).id, self.at(seq).state());
            self.tell_job(seq, state);
            *self.today(now).ended(state).expect("a job that is over has ended in some state") += 1;
            let waits = |(waiter, job): (&u64, &Job)| job.waits_for.contains(&seq).then_some(*waiter);
            let waiters: Vec<u64> = self.jobs.iter().filter_map(waits).collect();
            for waiter in waiters {
                if state == JobState::Completed {
                    let job = self.at_mut(waiter);
                    job.waits_for.remove(&seq);
                    job.run.waits -= 1;
                    if job.run.waits == 0 {
                        self.begin(waiter, now);
                    }
                } else {
                    let reason = format!("it was to run after job {id}, which is {state}");
                    self.stop(waiter, JobState::Cancelled, Some(reason), now);
                }
                if is_over(self, waiter) {
                    ended.push_back(waiter);
                }
            }
        }
    }
}
