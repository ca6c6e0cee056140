//! Ending attempts.

use super::{Step, Work};
use crate::place::{At, End, Lease, Placed};
use orchestrator_core::flow::advance::soften;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{Counters, ErrorClass, Failure, JobState, Millis, Next, Outcome, TaskState, decide};
use orchestrator_store::packed::{index_of, seq_of};
use orchestrator_store::{Held, Settled, Settlement};

impl Work {
    /// Ends one attempt, if it holds its lease.
    pub fn settle(&mut self, settlement: &Settlement) -> Step<Settled> {
        let held = settlement.held;
        let Some(task) = self.ids.packed(held.task) else { return Ok(Settled::Stale) };
        let placed = self.placed(task)?;
        let leased =
            placed.filter(|placed| placed.lease().is_some() && placed.counters.attempt == held.attempt);
        match leased {
            Some(placed) => self.end(task, placed, &settlement.outcome, settlement.jitter),
            None => {
                self.record_stale(held, task)?;
                Ok(Settled::Stale)
            }
        }
    }

    /// Ends an attempt that is overdue.
    pub fn end_overdue(&mut self, task: i64, jitter: f64) -> Step<Option<(Held, Settled)>> {
        let placed = self.placed(task)?;
        let Some(placed) =
            placed.filter(|placed| placed.lease().is_some_and(|lease| lease.overdue() <= self.now))
        else {
            return Ok(None);
        };
        let attempt = placed.counters.attempt;
        let outcome = match placed.lease() {
            Some(Lease { times_out: Some(at), expires, started, .. }) if at <= expires => {
                let message = format!("the attempt took longer than {}", at.since(*started));
                Outcome::Failed(Failure::new(ErrorClass::Timeout, message))
            }
            _ => Outcome::Lost,
        };
        let created = self.job(seq_of(task))?.map(|job| job.created).unwrap_or(self.now);
        let settled = self.end(task, placed, &outcome, jitter)?;
        Ok(Some((Held { task: self.ids.task(created, task), attempt }, settled)))
    }

    fn end(&mut self, task: i64, placed: Placed, outcome: &Outcome, jitter: f64) -> Step<Settled> {
        let At::Leased(lease) = placed.at.clone() else { return Ok(Settled::Stale) };
        let attempt = placed.counters.attempt;
        let seq = seq_of(task);
        let spec = self.spec(lease.spec)?;
        let mut decision = decide(&spec, placed.counters, outcome, self.now, jitter);
        let head = match self.base.heads.get(&seq) {
            Some(None) if !self.staged.heads.contains_key(&seq) => None,
            _ => Some(self.head(seq)?),
        };
        let rules = head.as_ref().and_then(|head| head.run.place(index_of(task))).map(|place| place.task);
        if let (Some(head), Some(rules)) = (&head, rules) {
            decision = soften(decision, head.plan.tasks()[rules as usize].optional);
        }
        let (lane, checkpoint) = match outcome {
            Outcome::Continue(Leg { checkpoint, limits, .. }) => {
                (self.lane_id(&spec, limits)?, Some(checkpoint.clone()))
            }
            _ => (placed.lane, placed.checkpoint.clone()),
        };
        self.pull(&placed)?;
        match outcome {
            Outcome::Failed(failure) => {
                self.record(task, attempt, format!("failed:{}", failure.class), failure.message.clone());
            }
            Outcome::Lost => {
                let message = "the worker vanished: its lease ran out".to_owned();
                self.record(task, attempt, "lost".to_owned(), message);
            }
            _ => {}
        }
        let counters = decision.counters;
        self.note(task, decision.state(), attempt);
        if let Next::End(state, dead) = decision.next {
            let output = match outcome {
                Outcome::Completed(output) | Outcome::Skipped(output) => Some(output.clone()),
                _ => None,
            };
            let end = End { state, at: self.now, output, dead };
            self.finish(task, lane, placed.tier, counters, end)?;
            let job_ended = match head {
                Some(head) => {
                    if let (TaskState::Completed, Some(rules)) = (state, rules) {
                        self.time(head.flow, rules, self.now.since(lease.started));
                    }
                    self.task_over(head, index_of(task), state)?
                }
                None => {
                    self.queue_job_over(seq, state)?;
                    true
                }
            };
            return Ok(Settled::Applied { state, due: None, dead, job_ended });
        }
        let due = match decision.next {
            Next::Wait(until) => Some(until),
            _ => None,
        };
        match head {
            Some(mut head) if head.run.is_paused() => {
                let spot = due.is_none().then_some(lease.spot);
                let at = At::Held(spot, due);
                self.put(task, Some(Placed { lane, tier: placed.tier, counters, checkpoint, at }));
                self.come_to_rest(&mut head)?;
                self.put_head(head);
            }
            _ => match due {
                Some(until) => self.wait(task, lane, placed.tier, until, counters, checkpoint),
                None => self.stand(task, lane, placed.tier, lease.spot, counters, checkpoint),
            },
        }
        Ok(Settled::Applied { state: decision.state(), due, dead: None, job_ended: false })
    }

    /// Counts a job of a queue that has ended with its task, and tells who waits for it.
    pub fn queue_job_over(&mut self, seq: i64, state: TaskState) -> Step<()> {
        self.count_today(JobState::of_only_task(state, true));
        match self.base.awaited.get(&seq) {
            Some(false) => {}
            Some(true) => self.staged.ending.push_back(seq),
            None => {
                return self.missing(|needs| {
                    needs.awaited.insert(seq);
                });
            }
        }
        Ok(())
    }

    /// Keeps evidence of a write that came too late.
    fn record_stale(&mut self, held: Held, task: i64) -> Step<()> {
        let seq = seq_of(task);
        let Some(job) = self.job(seq)? else { return Ok(()) };
        if job.created != held.task.job.created() {
            return Ok(());
        }
        let exists = match job.flow {
            Some(_) => self.head(seq)?.run.place(held.task.index).is_some(),
            None => held.task.index == 0,
        };
        if exists {
            let message = format!("a write by attempt {} came after its lease was lost", held.attempt);
            self.record(task, held.attempt, "stale".to_owned(), message);
        }
        Ok(())
    }

    /// Ends a job whose deadline has passed. False if it has none any more.
    pub fn end_late(&mut self, seq: i64) -> Step<bool> {
        let head = self.head(seq)?;
        if head.run.times_out().is_none_or(|at| at > self.now) {
            return Ok(false);
        }
        let limit = head.plan.timeout().unwrap_or_default();
        self.stop(seq, JobState::TimedOut, Some(format!("it took longer than {limit}")))?;
        Ok(true)
    }

    /// Counts how long a task took, for later guesses.
    fn time(&mut self, flow: i32, task: u32, took: Millis) {
        let (n, total) = self.staged.timings.entry((flow, task)).or_default();
        *n += 1;
        *total += i64::try_from(took.0).unwrap_or(i64::MAX / 2);
    }

    /// Counters of a task that begins anew after an attempt.
    pub fn fresh(attempt: u32) -> Counters {
        Counters { attempt, ..Counters::default() }
    }
}
