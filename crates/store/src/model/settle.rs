//! Ending attempts: by their workers, and by the clock.

use super::{End, Location, Model};
use crate::verbs::{Held, Settled, Settlement, SweepAsk, Swept};
use crate::views::{AttemptEnd, AttemptRecord};
use orchestrator_core::{ErrorClass, Event, Failure, Next, Outcome, TaskSpec, Timestamp, decide};

/// What the record says of an attempt whose worker vanished.
const LOST: &str = "the worker vanished: its lease ran out";

impl Model {
    /// Ends attempts, one after the other.
    pub fn settle(&mut self, batch: Vec<Settlement>, now: Timestamp) -> Vec<Settled> {
        let mut events = vec![];
        let answers = batch
            .into_iter()
            .map(|s| self.settle_one(s.held, s.outcome, s.jitter, now, &mut events))
            .collect();
        self.commit(events, now);
        answers
    }

    /// Ends the attempts that are overdue, the longest overdue first.
    pub fn expired(&mut self, ask: SweepAsk, now: Timestamp) -> Swept {
        let mut overdue: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|(seq, job)| job.lease().map(|lease| (lease.overdue(), *seq)))
            .filter(|(moment, _)| *moment <= now)
            .collect();
        overdue.sort();
        let more = overdue.len() > ask.limit as usize;
        overdue.truncate(ask.limit as usize);

        let mut events = vec![];
        let mut ended = vec![];
        for (n, (_, seq)) in overdue.into_iter().enumerate() {
            let job = self.at(seq);
            let held = Held { task: job.task(), attempt: job.counters.attempt };
            let timed_out =
                job.lease().is_some_and(|lease| lease.times_out.is_some_and(|at| at <= lease.expires));
            let outcome = if timed_out { timeout(&job.spec) } else { Outcome::Lost };
            ended.push((held, self.settle_one(held, outcome, ask.jitter_of(n), now, &mut events)));
        }
        self.commit(events, now);
        Swept { ended, more }
    }

    fn settle_one(
        &mut self,
        held: Held,
        outcome: Outcome,
        jitter: f64,
        now: Timestamp,
        events: &mut Vec<Event>,
    ) -> Settled {
        let Some(seq) = self.held(held) else {
            self.record_stale(held, now);
            return Settled::Stale;
        };
        let job = self.at_mut(seq);
        let decision = decide(&job.spec, job.counters, &outcome, now, jitter);
        let spot = job.lease().expect("the fence held").spot;
        job.counters = decision.counters;

        let mut output = None;
        let mut error = None;
        match outcome {
            Outcome::Completed(json) | Outcome::Skipped(json) => output = Some(json),
            Outcome::Failed(failure) => error = Some((AttemptEnd::Failed(failure.class), failure.message)),
            Outcome::Lost => error = Some((AttemptEnd::Lost, LOST.to_owned())),
            Outcome::Continue(leg) => {
                job.checkpoint = Some(leg.checkpoint);
                job.limits = leg.limits;
            }
            Outcome::Released => {}
        }
        if let Some((how, message)) = error.clone() {
            job.history.push(AttemptRecord { attempt: held.attempt, at: now, how, message });
        }

        let (mut due, mut dead) = (None, None);
        match decision.next {
            Next::End(state, reason) => {
                dead = reason;
                let dead =
                    reason.map(|reason| (reason, error.map(|(_, message)| message).unwrap_or_default()));
                job.checkpoint = None;
                job.location = Location::Ended(End { state, at: now, output, dead });
            }
            Next::Wait(at) => {
                due = Some(at);
                job.location = Location::Waiting { due: at };
            }
            Next::Requeue => self.stand(seq, spot),
        }
        events.push(self.at(seq).event());
        Settled::Applied { state: decision.state(), due, dead }
    }

    /// Keeps evidence of a write that came too late.
    fn record_stale(&mut self, held: Held, now: Timestamp) {
        if let Some(seq) = self.seq(held.task.job) {
            let message = format!("a write by attempt {} came after its lease was lost", held.attempt);
            let record = AttemptRecord { attempt: held.attempt, at: now, how: AttemptEnd::Stale, message };
            self.at_mut(seq).history.push(record);
        }
    }
}

/// The end of an attempt that took too long.
fn timeout(spec: &TaskSpec) -> Outcome {
    let limit = spec.timeout.unwrap_or_default();
    Outcome::Failed(Failure::new(ErrorClass::Timeout, format!("the attempt took longer than {limit}")))
}
