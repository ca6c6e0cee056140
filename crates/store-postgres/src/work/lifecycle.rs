//! What happens to a job as a whole: stop, pause, resume, recover.

use super::{Head, JobRow, Step, Stop, TaskRow, Work};
use crate::place::{At, Placed};
use orchestrator_core::flow::advance::{self, Change, From, NoRecovery, Reset, Undone};
use orchestrator_core::flow::run::{Group, Standing};
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{JobState, TaskState};
use orchestrator_store::Controlled;
use orchestrator_store::packed::{index_of, pack};
use std::sync::Arc;

impl Work {
    /// Ends a job with a head as a whole.
    pub fn stop(&mut self, seq: i64, state: JobState, reason: Option<String>) -> Step<()> {
        let mut head = self.head(seq)?;
        let end = if state == JobState::TimedOut { TaskState::TimedOut } else { TaskState::Cancelled };
        for task in self.live_tasks(seq)? {
            let (counters, lane, tier) = match self.placed(task)? {
                Some(placed) => {
                    self.pull(&placed)?;
                    (placed.counters, placed.lane, placed.tier)
                }
                None => {
                    let Some(TaskRow { lane, tier, .. }) = self.row(task)? else { continue };
                    (Work::fresh(head.run.attempts_before(index_of(task))), lane, tier)
                }
            };
            let plain = self.plain_end(end);
            self.finish(task, lane, tier, counters, plain)?;
            self.note(task, end, counters.attempt);
        }
        for change in advance::stop(&mut head.run, state, reason, self.now) {
            if let Change::Close { index, state, failure } = change {
                self.close(&head, index, state, failure)?;
            }
        }
        if head.run.waits > 0 {
            head.run.waits = 0;
            self.staged.waits.retain(|(_, waiter)| *waiter != seq);
            self.staged.wait_no_more.insert(seq);
        }
        self.staged.wake = true;
        self.note_job(seq, state);
        self.put_moved(head);
        Ok(())
    }

    /// Starts nothing new of a job.
    pub fn pause(&mut self, seq: i64, job: &JobRow) -> Step<Controlled> {
        if job.flow.is_none() {
            let state = self.job_state(seq, job)?;
            if state.is_terminal() {
                return Ok(Controlled::Refused(state));
            }
            self.upgrade(seq, job, state)?;
        }
        let busy = self.runs_now(seq)?;
        let mut head = self.head(seq)?;
        if !head.run.pause(busy, self.now) {
            return Ok(Controlled::Refused(head.run.state));
        }
        for task in self.live_tasks(seq)? {
            let Some(placed) = self.placed(task)? else { continue };
            let at = match placed.at {
                At::Ready(spot) | At::Parked(_, spot) => At::Held(Some(spot), None),
                At::Delayed(due) => At::Held(None, Some(due)),
                _ => continue,
            };
            self.pull(&placed)?;
            self.put(task, Some(Placed { at, ..placed }));
        }
        let state = head.run.state;
        self.note_job(seq, state);
        self.put_head(head);
        Ok(Controlled::Done(state))
    }

    /// Goes on after a pause.
    pub fn resume(&mut self, seq: i64, job: &JobRow) -> Step<Controlled> {
        if job.flow.is_none() {
            return self.job_state(seq, job).map(Controlled::Refused);
        }
        let mut head = self.head(seq)?;
        if !head.run.resume(self.now) {
            return Ok(Controlled::Refused(head.run.state));
        }
        self.note_job(seq, head.run.state);
        for task in self.live_tasks(seq)? {
            let Some(placed) = self.placed(task)? else { continue };
            let At::Held(spot, due) = placed.at else { continue };
            let Placed { lane, tier, counters, checkpoint, .. } = placed;
            match (due, spot) {
                (Some(due), _) if due > self.now => self.wait(task, lane, tier, due, counters, checkpoint),
                (due, spot) => {
                    // Also where it has its place already: a process that does not know the lane would put it into a
                    // line that nobody serves.
                    let line = self.lane(lane)?.line;
                    let spot = match spot {
                        Some(spot) => spot,
                        None => self.enter(line, tier, head.tenant, head.run.continues()),
                    };
                    if due.is_some() && counters.failures > 0 {
                        self.note(task, TaskState::Queued, counters.attempt);
                    }
                    self.stand(task, lane, tier, spot, counters, checkpoint);
                }
            }
        }
        let state = head.run.state;
        self.put_head(head);
        Ok(Controlled::Done(state))
    }

    /// Gives a job of a queue a head: from now on it is a job of the flow of its one task.
    fn upgrade(&mut self, seq: i64, job: &JobRow, state: JobState) -> Step<()> {
        let (Some(spec), Some(submitted)) = (job.spec, job.lane) else {
            return Err(Stop::Invalid(format!("job number {seq} has neither task nor flow")));
        };
        let spec = self.spec(spec)?;
        let limits = self.lane(submitted)?.limits.clone();
        let plan = Arc::new(Plan::of_task(&spec, &limits));
        let flow = self.flow_id(&plan)?;
        let task = pack(seq, 0);
        let placed = self.placed(task)?;
        let mut run = Run::new(&plan);
        run.state = state;
        run.tasks[0] = Standing::Live;
        run.started = placed.as_ref().and_then(Placed::lease).map(|lease| lease.started);
        self.staged.upgraded.insert(seq, flow);
        self.base.live.insert(seq);
        self.staged.rows.insert(task, Some(TaskRow { lane: submitted, tier: job.tier, payload: None }));
        self.put_head(Head {
            seq,
            flow,
            plan,
            run,
            created: job.created,
            tenant: job.tenant,
            tier: job.tier,
            run_at: None,
            payload: job.payload.clone(),
            output: None,
        });
        Ok(())
    }

    /// Why a job with a head cannot be taken up again, whatever the task: it did not end badly, or its key has gone
    /// to a newer job.
    pub fn cannot_run_again(&mut self, seq: i64, job: &JobRow) -> Step<Option<Controlled>> {
        let state = self.head(seq)?.run.state;
        if !matches!(state, JobState::Failed | JobState::TimedOut) {
            return Ok(Some(Controlled::Refused(state)));
        }
        Ok(self.superseded_by(seq, job)?.map(Controlled::Superseded))
    }

    /// Takes a job up again that ended badly.
    pub fn recover(&mut self, seq: i64, job: &JobRow, from: From, counted: bool) -> Step<Controlled> {
        if let Some(no) = self.cannot_run_again(seq, job)? {
            return Ok(no);
        }
        let mut head = self.head(seq)?;
        let reset = match advance::recover(&head.plan, &mut head.run, from, counted) {
            Ok(reset) => reset,
            Err(NoRecovery::State(state)) => return Ok(Controlled::Refused(state)),
            Err(other) => return Ok(Controlled::NoRecovery(other)),
        };
        let undone = self.undo(&head, &reset)?;
        head.output = None;
        self.staged.told.remove(&seq);
        self.count_today(JobState::Recovering);
        self.note_job(seq, JobState::Recovering);
        self.note_job(seq, JobState::Running);
        self.step(&mut head, None, |plan, run, facts, past| {
            advance::restart(plan, run, facts, past, &undone)
        })?;
        let state = head.run.state;
        self.put_moved(head);
        Ok(Controlled::Done(state))
    }

    /// Takes back the ends of tasks that are to run again.
    fn undo(&mut self, head: &Head, reset: &Reset) -> Step<Undone> {
        let mut undone = Undone::default();
        for index in &reset.tasks {
            let task = pack(head.seq, *index);
            let attempt = self.undo_end(head, task)?;
            self.staged.rows.insert(task, None);
            undone.tasks.push((*index, attempt));
        }
        for group in &reset.gone {
            let (first, last) = bounds(head.seq, group);
            for task in self.ended_tasks(first, last)? {
                self.forget_end(task)?;
            }
            for task in first..last {
                if self.row(task)?.is_some() {
                    self.staged.rows.insert(task, None);
                }
            }
            self.staged.forgotten.push((first, last));
        }
        for group in &reset.reopened {
            self.undo_end(head, pack(head.seq, group.task))?;
            let (first, last) = match reset.item {
                Some(index) => (pack(head.seq, index), pack(head.seq, index) + 1),
                None => bounds(head.seq, group),
            };
            for task in self.ended_tasks(first, last)? {
                let bad = self.placed(task)?.and_then(|placed| placed.end().map(|end| end.state));
                use TaskState::{Cancelled, Failed, TimedOut};
                if !matches!(bad, Some(Failed | TimedOut | Cancelled)) {
                    continue;
                }
                let attempt = self.undo_end(head, task)?;
                undone.items.push((index_of(task), attempt));
            }
        }
        Ok(undone)
    }

    /// Takes back the end of one task, if it has one. Answers with its last attempt.
    fn undo_end(&mut self, head: &Head, task: i64) -> Step<u32> {
        let index = index_of(task);
        let Some(attempt) = self.forget_end(task)? else { return Ok(head.run.attempts_before(index)) };
        self.note(task, TaskState::Pending, attempt);
        Ok(attempt)
    }

    /// Takes a task away from among those that are over. Answers with its last attempt.
    fn forget_end(&mut self, task: i64) -> Step<Option<u32>> {
        let Some(placed) = self.placed(task)? else { return Ok(None) };
        let Some(state) = placed.end().map(|end| end.state) else { return Ok(None) };
        let line = self.lane(placed.lane)?.line;
        self.tally(line, state, -1);
        self.put(task, None);
        Ok(Some(placed.counters.attempt))
    }
}

fn bounds(seq: i64, group: &Group) -> (i64, i64) {
    (pack(seq, group.first), pack(seq, group.first) + i64::from(group.count))
}
