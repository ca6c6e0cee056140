//! How jobs of flows move on: `core::flow::advance` decides, and what comes of it is carried out here.

use super::Writer;
use super::bulk::{TaskIn, Text};
use super::heads::Head;
use super::place::{Standing, Traveller};
use crate::error::Abort;
use orchestrator_core::flow::advance::{self, Change, Facts, Moves, Past, Release};
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{Counters, DeadReason, Failure, JobId, JobState, Json, Limits, TaskState, Timestamp};
use orchestrator_store::packed::{JOB_EVENT, job_state_code, pack, state_code};
use rusqlite::OptionalExtension;

/// What earlier tasks left, for templates.
pub struct Tables<'a, 'c> {
    writer: &'a mut Writer<'c>,
    seq: i64,
}

impl Past for Tables<'_, '_> {
    type Error = Abort;

    fn output(&mut self, index: u32) -> Result<Option<Json>, Abort> {
        let task = pack(self.seq, index);
        if let Some(output) = self.writer.changes.outputs.get(&task) {
            return Ok(output.clone());
        }
        self.writer.hot.flush()?;
        let output =
            self.writer.sql.task_output.query_row([task], |row| super::lease::json(row, 0)).optional()?;
        Ok(output.flatten())
    }

    fn error(&mut self, index: u32) -> Result<Option<String>, Abort> {
        let task = pack(self.seq, index);
        Ok(self.writer.sql.task_error.query_row([task], |row| row.get(0)).optional()?)
    }
}

impl<'c> Writer<'c> {
    pub(super) fn job_id(&self, head: &Head) -> JobId {
        self.ids.job(head.created, head.seq)
    }

    /// Notes for the journal that a job entered a state.
    pub(super) fn note_job(&mut self, seq: i64, state: JobState) {
        self.changes.events.push((seq, JOB_EVENT, job_state_code(state), 0));
        if state.is_terminal() {
            self.count_today(state);
        }
    }

    /// Moves a job on by one step of its plan, and carries out what comes of it. What it lets in waits until `due`.
    pub(super) fn step(
        &mut self,
        head: &mut Head,
        due: Option<Timestamp>,
        step: impl FnOnce(&Plan, &mut Run, Facts<'_>, &mut Tables<'_, 'c>) -> Result<Moves, Abort>,
    ) -> Result<(), Abort> {
        let tenant = self.cache.tenants[&head.tenant].clone();
        let facts = Facts { id: self.job_id(head), tenant: &tenant, input: &head.payload, now: self.now };
        let before = head.run.state;
        let plan = head.plan.clone();
        let mut past = Tables { writer: self, seq: head.seq };
        let moves = step(&plan, &mut head.run, facts, &mut past)?;
        for change in moves.changes {
            self.carry_out(head, change, due)?;
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
    pub(super) fn come_to_rest(&mut self, head: &mut Head) -> Result<(), Abort> {
        if head.run.state == JobState::Pausing && !self.runs_now(head.seq)? {
            head.run.come_to_rest();
            self.note_job(head.seq, head.run.state);
        }
        Ok(())
    }

    /// Puts back the head of a job that moved on, and tells who waits for it if it has ended. Says where it stands.
    pub(super) fn put_moved(&mut self, head: Box<Head>) -> Result<JobState, Abort> {
        let (seq, created, state) = (head.seq, head.created, head.run.state);
        self.put_head(head);
        if state.is_terminal() {
            self.job_over(seq, created, state)?;
        }
        Ok(state)
    }

    /// Lets the first tasks of a job in.
    pub(super) fn begin(&mut self, head: &mut Head) -> Result<(), Abort> {
        let due = head.run_at.filter(|at| *at > self.now);
        let start = due.unwrap_or(self.now);
        self.step(head, due, |plan, run, facts, past| advance::begin(plan, run, facts, past, start))
    }

    fn carry_out(&mut self, head: &Head, change: Change, due: Option<Timestamp>) -> Result<(), Abort> {
        match change {
            Change::Release(release) => self.release(head, release, due),
            Change::Admit(index) => {
                let task = pack(head.seq, index);
                self.hot.flush()?;
                let (lane, tier) =
                    self.sql.task_row.query_row([task], |row| Ok((row.get(0)?, row.get(1)?)))?;
                let attempt = head.run.attempts_before(index);
                let entry = self.let_in(head, task, lane, tier, attempt, None)?;
                self.sql.move_task.execute((task, entry, lane))?;
                Ok(())
            }
            Change::Expanded(index) => {
                self.note(pack(head.seq, index), TaskState::Running, 0);
                Ok(())
            }
            Change::Close { index, state, failure } => self.close(head, index, state, failure),
        }
    }

    fn release(&mut self, head: &Head, release: Release, due: Option<Timestamp>) -> Result<(), Abort> {
        let Release { index, task: rules, payload, limits, attempt, admitted } = release;
        let lane = self.task_lane_id(head.flow, &head.plan, rules, &limits)?;
        let tier = head.plan.tasks()[rules as usize].priority.map_or(head.tier, |priority| priority.tier());
        let task = pack(head.seq, index);
        let entry = if admitted { Some(self.let_in(head, task, lane, tier, attempt, due)?) } else { None };
        if let (true, Some(payload)) = (admitted, &payload) {
            self.heads.keep_payload(task, payload);
        }
        self.hot.tasks.push(TaskIn { task, lane, tier, entry, payload: payload.map(Text) })?;
        Ok(())
    }

    /// Puts a task that never ran in line, or where its job or its moment lets it wait. Answers with its place.
    fn let_in(
        &mut self,
        head: &Head,
        task: i64,
        lane: i64,
        tier: u8,
        attempt: u32,
        due: Option<Timestamp>,
    ) -> Result<i64, Abort> {
        let counters = Counters { attempt, ..Counters::default() };
        let who = Traveller { task, counters, checkpoint: None };
        self.note(task, TaskState::Queued, attempt);
        if head.run.is_paused() {
            self.hold(lane, tier, None, due, who)?;
            return Ok(0);
        }
        if let Some(due) = due {
            self.wait(due, lane, tier, who)?;
            return Ok(due.as_millis());
        }
        let lane = self.cache.lane(lane);
        let standing = self.enter(lane.line, tier, head.tenant, head.run.continues())?;
        self.stand(&lane, standing, who)?;
        Ok(standing.stamp)
    }

    /// Keeps a task of a paused job where it costs nobody anything.
    pub(super) fn hold(
        &mut self,
        lane: i64,
        tier: u8,
        standing: Option<Standing>,
        due: Option<Timestamp>,
        who: Traveller<'_>,
    ) -> Result<(), Abort> {
        let Counters { attempt, failures, crashes } = who.counters;
        self.sql.insert_held.execute((
            who.task,
            lane,
            tier,
            standing.map(|standing| standing.stamp),
            standing.map(|standing| standing.since.as_millis()),
            due.map(Timestamp::as_millis),
            attempt,
            failures,
            crashes,
            who.checkpoint.map(Json::as_str),
        ))?;
        Ok(())
    }

    /// Ends a task without an attempt.
    pub(super) fn close(
        &mut self,
        head: &Head,
        index: u32,
        state: TaskState,
        failure: Option<Failure>,
    ) -> Result<(), Abort> {
        let task = pack(head.seq, index);
        let rules = head.run.place(index).map_or(0, |place| place.task);
        let spec = head.plan.tasks()[rules as usize].spec.clone();
        let lane = self.lane_id(&spec, &Limits::none())?;
        let attempt = head.run.attempts_before(index);
        if let Some(failure) = &failure {
            self.record(task, attempt, &format!("failed:{}", failure.class), &failure.message)?;
            if state == TaskState::Failed {
                let line = self.cache.lane(lane).line;
                let reason = DeadReason::Final.as_str();
                self.sql.insert_dead.execute((task, self.now.as_millis(), reason, line))?;
            }
        }
        self.finish(task, state, Counters { attempt, ..Counters::default() }, lane, None)?;
        self.changes.outputs.insert(task, None);
        self.note(task, state, attempt);
        Ok(())
    }

    /// Whether a worker holds a task of a job.
    pub(super) fn runs_now(&mut self, seq: i64) -> Result<bool, Abort> {
        self.hot.flush()?;
        Ok(self.sql.any_lease.exists((pack(seq, 0), pack(seq + 1, 0)))?)
    }

    /// Goes on after a task of a flow ended by an attempt. Says whether the job has ended with it.
    pub(super) fn task_over(
        &mut self,
        mut head: Box<Head>,
        index: u32,
        state: TaskState,
        output: Option<Json>,
    ) -> Result<bool, Abort> {
        self.changes.outputs.insert(pack(head.seq, index), output);
        self.step(&mut head, None, |plan, run, facts, past| {
            advance::ended(plan, run, facts, past, index, state)
        })?;
        Ok(self.put_moved(head)?.is_terminal())
    }

    /// Tells the jobs that wait for a job how it ended, then those that wait for them, and so on.
    pub(super) fn job_over(&mut self, seq: i64, created: Timestamp, state: JobState) -> Result<(), Abort> {
        if !self.cache.awaited.remove(&seq) {
            return Ok(());
        }
        self.over.push_back((seq, created, state));
        if self.over.len() > 1 {
            // One that ends as a consequence is told of by who tells of its cause.
            return Ok(());
        }
        while let Some((seq, created, state)) = self.over.front().copied() {
            self.tell_waiters(seq, created, state)?;
            self.over.pop_front();
        }
        Ok(())
    }

    fn tell_waiters(&mut self, seq: i64, created: Timestamp, state: JobState) -> Result<(), Abort> {
        let waiters: Vec<i64> =
            self.sql.waiters.query_map([seq], |row| row.get(0))?.collect::<Result<_, _>>()?;
        self.sql.delete_waits_on.execute([seq])?;
        let id = self.ids.job(created, seq);
        for waiter in waiters {
            if state != JobState::Completed {
                self.stop(waiter, JobState::Cancelled, Some(not_after(id, state)))?;
                continue;
            }
            let mut head = self.take_head(waiter)?;
            head.run.waits = head.run.waits.saturating_sub(1);
            if head.run.waits == 0 {
                self.begin(&mut head)?;
            }
            self.put_moved(head)?;
        }
        Ok(())
    }

    /// Counts how long a task took, for later guesses.
    pub(super) fn time(&mut self, flow: i64, task: u32, took: orchestrator_core::Millis) {
        let (n, total) = self.changes.timings.entry((flow, task)).or_default();
        *n += 1;
        *total += i64::try_from(took.0).unwrap_or(i64::MAX / 2);
    }

    /// Counts an ended task of a line, or takes it back.
    pub(super) fn tally(&mut self, lane: i64, state: TaskState, by: i64) {
        let line = self.cache.lane(lane).line;
        *self.changes.tallies.entry((line, state_code(state))).or_default() += by;
    }
}

/// Why a job was cancelled that was to run after another.
pub fn not_after(job: JobId, state: JobState) -> String {
    format!("it was to run after job {job}, which is {state}")
}
