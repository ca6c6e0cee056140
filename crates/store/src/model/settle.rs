//! Ending attempts and jobs: by workers, and by the clock.

use super::Model;
use super::job::{At, End, Location};
use crate::verbs::{Held, Settled, Settlement, SweepAsk, Swept};
use crate::views::{AttemptEnd, AttemptRecord};
use orchestrator_core::flow::advance::{self, soften};
use orchestrator_core::{
    ErrorClass, Failure, JobState, Next, Outcome, TaskSpec, TaskState, Timestamp, decide,
};

/// What the record says of an attempt whose worker vanished.
const LOST: &str = "the worker vanished: its lease ran out";

impl Model {
    /// Ends attempts, one after the other.
    pub fn settle(&mut self, batch: Vec<Settlement>, now: Timestamp) -> Vec<Settled> {
        let answers = batch.into_iter().map(|s| self.settle_one(s.held, s.outcome, s.jitter, now)).collect();
        self.commit(now);
        answers
    }

    /// Ends the jobs whose time is up, then the attempts that are overdue, the longest overdue first.
    pub fn expired(&mut self, ask: SweepAsk, now: Timestamp) -> Swept {
        let mut swept = Swept::default();
        for _ in 0..ask.limit {
            if let Some(seq) = self.late_job(now) {
                let timeout = self.at(seq).plan.timeout().unwrap_or_default();
                let reason = format!("it took longer than {timeout}");
                self.stop(seq, JobState::TimedOut, Some(reason), now);
                self.follow_up(seq, now);
                swept.timed_out.push(self.at(seq).id);
            } else if let Some(at) = self.late_attempt(now) {
                let jitter = ask.jitter_of(swept.ended.len());
                swept.ended.push(self.end_late_attempt(at, jitter, now));
            } else {
                break;
            }
        }
        self.commit(now);
        swept.more = self.late_job(now).is_some() || self.late_attempt(now).is_some();
        swept
    }

    /// The job whose deadline has passed the longest ago.
    fn late_job(&self, now: Timestamp) -> Option<u64> {
        let late = self.jobs.iter().filter_map(|(seq, job)| job.run.times_out().map(|at| (at, *seq)));
        late.filter(|(at, _)| *at <= now).min().map(|(_, seq)| seq)
    }

    /// The attempt that is overdue for the longest.
    fn late_attempt(&self, now: Timestamp) -> Option<At> {
        let late = self.tasks().filter_map(|(at, _, task)| task.lease().map(|lease| (lease.overdue(), at)));
        late.filter(|(moment, _)| *moment <= now).min().map(|(_, at)| at)
    }

    fn end_late_attempt(&mut self, at: At, jitter: f64, now: Timestamp) -> (Held, Settled) {
        let (job, task) = (self.at(at.0), self.task_at(at));
        let held = Held { task: job.task_id(at.1), attempt: task.counters.attempt };
        let timed_out =
            task.lease().is_some_and(|lease| lease.times_out.is_some_and(|at| at <= lease.expires));
        let outcome = if timed_out { timeout(&job.rules(at.1).spec) } else { Outcome::Lost };
        (held, self.settle_one(held, outcome, jitter, now))
    }

    fn settle_one(&mut self, held: Held, outcome: Outcome, jitter: f64, now: Timestamp) -> Settled {
        let Some(at) = self.fence(held) else {
            self.record_stale(held, now);
            return Settled::Stale;
        };
        let (seq, index) = at;
        let paused = self.at(seq).run.is_paused();
        let (spec, optional) = {
            let rules = self.at(seq).rules(index);
            (rules.spec.clone(), rules.optional)
        };
        let task = self.task_mut(at);
        let decision = soften(decide(&spec, task.counters, &outcome, now, jitter), optional);
        let lease = task.lease().expect("the fence held").clone();
        task.counters = decision.counters;

        let mut output = None;
        let mut error = None;
        match outcome {
            Outcome::Completed(json) | Outcome::Skipped(json) => output = Some(json),
            Outcome::Failed(failure) => error = Some((AttemptEnd::Failed(failure.class), failure.message)),
            Outcome::Lost => error = Some((AttemptEnd::Lost, LOST.to_owned())),
            Outcome::Continue(leg) => {
                task.checkpoint = Some(leg.checkpoint);
                task.limits = leg.limits;
            }
            Outcome::Released => {}
        }
        if let Some((how, message)) = error.clone() {
            task.history.push(AttemptRecord { attempt: held.attempt, at: now, how, message });
        }

        let (mut due, mut dead) = (None, None);
        match decision.next {
            Next::End(state, reason) => {
                dead = reason;
                let dead =
                    reason.map(|reason| (reason, error.map(|(_, message)| message).unwrap_or_default()));
                task.checkpoint = None;
                task.location = Location::Ended(End { state, at: now, output, dead });
            }
            Next::Wait(moment) => {
                due = Some(moment);
                task.location = if paused {
                    Location::Held { spot: None, due }
                } else {
                    Location::Waiting { due: moment }
                };
            }
            Next::Requeue if paused => {
                task.location = Location::Held { spot: Some(lease.spot), due: None };
            }
            Next::Requeue => task.location = Location::InLine(lease.spot),
        }
        self.tell_task(at);
        if let Next::End(state, _) = decision.next {
            if state == TaskState::Completed {
                self.note_time(seq, index, now.since(lease.started));
            }
            self.advance(seq, now, None, |plan, run, facts, past| {
                advance::ended(plan, run, facts, past, index, state)
            });
        }
        self.come_to_rest(seq);
        self.follow_up(seq, now);
        let job_ended = self.at(seq).state().is_terminal();
        Settled::Applied { state: decision.state(), due, dead, job_ended }
    }

    /// Notes that a job is paused once nothing of it runs.
    fn come_to_rest(&mut self, seq: u64) {
        let job = self.at_mut(seq);
        if !job.is_busy() && job.run.come_to_rest() {
            self.tell_job(seq, JobState::Paused);
        }
    }

    /// Keeps evidence of a write that came too late.
    fn record_stale(&mut self, held: Held, now: Timestamp) {
        if let Some(at) = self.find(held.task) {
            let message = format!("a write by attempt {} came after its lease was lost", held.attempt);
            let record = AttemptRecord { attempt: held.attempt, at: now, how: AttemptEnd::Stale, message };
            self.task_mut(at).history.push(record);
        }
    }
}

/// The end of an attempt that took too long.
fn timeout(spec: &TaskSpec) -> Outcome {
    let limit = spec.timeout.unwrap_or_default();
    Outcome::Failed(Failure::new(ErrorClass::Timeout, format!("the attempt took longer than {limit}")))
}
