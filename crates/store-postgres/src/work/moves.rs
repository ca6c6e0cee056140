//! How jobs of flows move on: `core::flow::advance` decides, and what comes of it is carried out here.

use super::{Head, Step, Stop, TaskRow, Work};
use crate::place::{At, End, Placed};
use orchestrator_core::flow::advance::{self, Change, Facts, Moves, Past, Release};
use orchestrator_core::flow::plan::LimitPlan;
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{DeadReason, Failure, JobId, JobState, Json, Limits, TaskState, Timestamp};
use orchestrator_store::packed::{JOB_EVENT, job_state_code, pack};

/// What earlier tasks left, for templates.
pub struct Left<'a> {
    work: &'a mut Work,
    seq: i64,
}

impl Past for Left<'_> {
    type Error = Stop;

    fn output(&mut self, index: u32) -> Step<Option<Json>> {
        let placed = self.work.past(pack(self.seq, index))?;
        Ok(placed.as_ref().and_then(Placed::end).and_then(|end| end.output.clone()))
    }

    fn error(&mut self, index: u32) -> Step<Option<String>> {
        let task = pack(self.seq, index);
        let staged = self.work.staged.records.iter().rev();
        if let Some(record) = staged.into_iter().find(|record| record.task == task && record.how != "stale") {
            return Ok(Some(record.message.clone()));
        }
        match self.work.base.errors.get(&task) {
            Some(error) => Ok(error.clone()),
            None if self.work.staged.jobs.contains_key(&self.seq) => Ok(None),
            None => self.work.missing(|needs| {
                needs.errors.insert(task);
            }),
        }
    }
}

impl Work {
    /// Notes for the journal that a job entered a state.
    pub fn note_job(&mut self, seq: i64, state: JobState) {
        self.staged.events.push((seq, JOB_EVENT, job_state_code(state), 0));
        if state.is_terminal() {
            self.count_today(state);
        }
    }

    /// Moves a job on by one step of its plan, and carries out what comes of it. What it lets in waits until `due`.
    pub fn step(
        &mut self,
        head: &mut Head,
        due: Option<Timestamp>,
        step: impl FnOnce(&Plan, &mut Run, Facts<'_>, &mut Left<'_>) -> Step<Moves>,
    ) -> Step<()> {
        let tenant = self.tenant(head.tenant)?;
        let id = self.ids.job(head.created, head.seq);
        let facts = Facts { id, tenant: &tenant, input: &head.payload, now: self.now };
        let before = head.run.state;
        let plan = head.plan.clone();
        let mut past = Left { work: self, seq: head.seq };
        let moves = step(&plan, &mut head.run, facts, &mut past)?;
        // All that is missing for what it lets in shows at once.
        let mut missing = None;
        for change in moves.changes {
            if let Err(stop) = self.carry_out(head, change, due) {
                missing = Some(stop);
            }
        }
        if let Some(stop) = missing {
            return Err(stop);
        }
        if moves.output.is_some() {
            head.output = moves.output;
        }
        if head.run.state != before {
            self.note_job(head.seq, head.run.state);
        }
        self.come_to_rest(head)
    }

    /// A job that is to pause has paused once nothing of it runs any more.
    pub fn come_to_rest(&mut self, head: &mut Head) -> Step<()> {
        if head.run.state == JobState::Pausing && !self.runs_now(head.seq)? {
            head.run.come_to_rest();
            self.note_job(head.seq, head.run.state);
        }
        Ok(())
    }

    /// Whether a worker holds a task of a job.
    pub fn runs_now(&mut self, seq: i64) -> Step<bool> {
        let mut runs = false;
        for task in self.live_tasks(seq)? {
            runs |= self.placed(task)?.is_some_and(|placed| placed.lease().is_some());
        }
        Ok(runs)
    }

    /// Keeps the head of a job that moved on; who waits for it is told if it has ended.
    pub fn put_moved(&mut self, head: Head) {
        if head.run.state.is_terminal() {
            self.staged.ending.push_back(head.seq);
        }
        self.put_head(head);
    }

    /// Lets the first tasks of a job in.
    pub fn begin(&mut self, head: &mut Head) -> Step<()> {
        let due = head.run_at.filter(|at| *at > self.now);
        let start = due.unwrap_or(self.now);
        self.step(head, due, |plan, run, facts, past| advance::begin(plan, run, facts, past, start))
    }

    fn carry_out(&mut self, head: &Head, change: Change, due: Option<Timestamp>) -> Step<()> {
        match change {
            Change::Release(release) => self.release(head, release, due),
            Change::Admit(index) => {
                let task = pack(head.seq, index);
                let Some(TaskRow { lane, tier, .. }) = self.row(task)? else {
                    return Err(Stop::Invalid(format!("item {index} of job number {} has no row", head.seq)));
                };
                self.let_in(head, task, lane, tier, head.run.attempts_before(index), None)
            }
            Change::Expanded(index) => {
                self.note(pack(head.seq, index), TaskState::Running, 0);
                Ok(())
            }
            Change::Close { index, state, failure } => self.close(head, index, state, failure),
        }
    }

    fn release(&mut self, head: &Head, release: Release, due: Option<Timestamp>) -> Step<()> {
        let Release { index, task: rules, payload, limits, attempt, admitted } = release;
        let rules = &head.plan.tasks()[rules as usize];
        let limits = match &rules.limits {
            LimitPlan::Fixed(fixed) => fixed,
            LimitPlan::Templates(_) => &limits,
        };
        // A lease of it will ask for the spec.
        let spec = self.spec_id(&rules.spec);
        let lane = self.lane_id(&rules.spec, limits)?;
        spec?;
        let tier = rules.priority.map_or(head.tier, |priority| priority.tier());
        let task = pack(head.seq, index);
        self.staged.rows.insert(task, Some(TaskRow { lane, tier, payload }));
        if admitted { self.let_in(head, task, lane, tier, attempt, due) } else { Ok(()) }
    }

    /// Puts a task that never ran in line, or where its job or its moment lets it wait.
    fn let_in(
        &mut self,
        head: &Head,
        task: i64,
        lane: i32,
        tier: u8,
        attempt: u32,
        due: Option<Timestamp>,
    ) -> Step<()> {
        let counters = Work::fresh(attempt);
        self.note(task, TaskState::Queued, attempt);
        if head.run.is_paused() {
            let at = At::Held(None, due);
            self.put(task, Some(Placed { lane, tier, counters, checkpoint: None, at }));
        } else if let Some(due) = due {
            self.wait(task, lane, tier, due, counters, None);
        } else {
            let line = self.lane(lane)?.line;
            let spot = self.enter(line, tier, head.tenant, head.run.continues());
            self.stand(task, lane, tier, spot, counters, None);
        }
        Ok(())
    }

    /// Ends a task without an attempt.
    pub fn close(&mut self, head: &Head, index: u32, state: TaskState, failure: Option<Failure>) -> Step<()> {
        let task = pack(head.seq, index);
        let rules = head.run.place(index).map_or(0, |place| place.task);
        let rules = &head.plan.tasks()[rules as usize];
        let lane = self.lane_id(&rules.spec, &Limits::none())?;
        let attempt = head.run.attempts_before(index);
        let mut end = self.plain_end(state);
        if let Some(failure) = failure {
            end.dead = (state == TaskState::Failed).then_some(DeadReason::Final);
            self.record(task, attempt, format!("failed:{}", failure.class), failure.message);
        }
        let tier = rules.priority.map_or(head.tier, |priority| priority.tier());
        self.finish(task, lane, tier, Work::fresh(attempt), End { ..end })?;
        self.note(task, state, attempt);
        Ok(())
    }

    /// Goes on after a task of a flow ended by an attempt. Says whether the job has ended with it.
    pub fn task_over(&mut self, mut head: Head, index: u32, state: TaskState) -> Step<bool> {
        self.step(&mut head, None, |plan, run, facts, past| {
            advance::ended(plan, run, facts, past, index, state)
        })?;
        let over = head.run.state.is_terminal();
        self.put_moved(head);
        Ok(over)
    }

    /// Tells the jobs that wait for those that have ended, then those that wait for them, and so on.
    pub fn tell_waiters(&mut self) -> Step<()> {
        while let Some(seq) = self.staged.ending.pop_front() {
            let mut waiters: Vec<i64> = match self.base.waiters.get(&seq) {
                Some(waiters) => waiters.clone(),
                None if self.staged.jobs.contains_key(&seq) => vec![],
                None => {
                    return self.missing(|needs| {
                        needs.waiters.insert(seq);
                    });
                }
            };
            if !self.staged.told.insert(seq) {
                waiters.clear();
            }
            waiters.retain(|waiter| !self.staged.wait_no_more.contains(waiter));
            let staged: Vec<i64> =
                self.staged.waits.iter().filter(|(job, _)| *job == seq).map(|w| w.1).collect();
            for waiter in &staged {
                self.staged.waits.remove(&(seq, *waiter));
            }
            waiters.extend(staged);
            if waiters.is_empty() {
                continue;
            }
            waiters.sort_unstable();
            let Some(job) = self.job(seq)? else { continue };
            let state = self.job_state(seq, &job)?;
            let id = self.ids.job(job.created, seq);
            for waiter in waiters {
                if state != JobState::Completed {
                    self.stop(waiter, JobState::Cancelled, Some(not_after(id, state)))?;
                    continue;
                }
                let mut head = self.head(waiter)?;
                head.run.waits = head.run.waits.saturating_sub(1);
                if head.run.waits == 0 {
                    self.begin(&mut head)?;
                }
                self.put_moved(head);
            }
        }
        Ok(())
    }
}

/// Why a job was cancelled that was to run after another.
pub fn not_after(job: JobId, state: JobState) -> String {
    format!("it was to run after job {job}, which is {state}")
}
