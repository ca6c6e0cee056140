//! The rules of attempts told plainly: what each end of an attempt must come to, and what the next one must get.
//!
//! The model decides with the rules of `core`; this book does not use them, so a mistake there is seen here.

use crate::oracle::{Check, Violation};
use orchestrator_core::{JobId, Json, Outcome, RetryPolicy, TaskId, TaskSpec, TaskState, Timestamp};
use orchestrator_store::model::Model;
use orchestrator_store::{Command, Leased, Settled};
use std::collections::BTreeMap;

/// What is known of tasks from their attempts.
#[derive(Default)]
pub struct Book {
    /// How many attempts failed, and how many lost their worker, since the task was let in.
    counts: BTreeMap<TaskId, (u32, u32)>,
    /// What the last leg of a task left for the next.
    legs: BTreeMap<TaskId, Json>,
    /// The deadlines of paused jobs, and since when they are paused.
    pauses: BTreeMap<JobId, (Timestamp, Timestamp)>,
}

fn wrong(kind: &'static str, what: String) -> Check {
    Err(Violation::new(kind, what))
}

impl Book {
    /// A task is handed out: it must come with what its earlier attempts made of it.
    pub fn granted(&self, leased: &Leased) -> Check {
        let (id, counters) = (leased.task, leased.counters);
        let (failures, crashes) = self.counts.get(&id).copied().unwrap_or_default();
        if (counters.failures, counters.crashes) != (failures, crashes) {
            return wrong(
                "counters",
                format!("{id} had {failures} failures, {crashes} crashes: {counters:?}"),
            );
        }
        if leased.checkpoint.as_ref() != self.legs.get(&id) {
            let (left, got) = (self.legs.get(&id), &leased.checkpoint);
            return wrong("checkpoint", format!("{id} left {left:?}, and {counters:?} gets {got:?}"));
        }
        Ok(())
    }

    /// An attempt has ended.
    pub fn ended(
        &mut self,
        task: TaskId,
        spec: &TaskSpec,
        outcome: &Outcome,
        answer: &Settled,
        now: Timestamp,
    ) -> Check {
        let Settled::Applied { state, due, .. } = *answer else { return Ok(()) };
        let counts = self.counts.entry(task).or_default();
        let good = match outcome {
            Outcome::Completed(_) => state == TaskState::Completed,
            Outcome::Skipped(_) => state == TaskState::Skipped,
            Outcome::Released => state == TaskState::Queued && due.is_none(),
            Outcome::Continue(leg) => {
                self.legs.insert(task, leg.checkpoint.clone());
                let waits = (leg.delay.0 > 0).then(|| now + leg.delay);
                matches!(state, TaskState::Queued | TaskState::Retrying) && due == waits
            }
            Outcome::Failed(failure) => {
                counts.0 += 1;
                if failure.class.is_retryable() && counts.0 <= spec.retry.max_retries {
                    let least =
                        least_wait(&spec.retry, counts.0).max(failure.retry_after.map_or(0, |at| at.0));
                    let waited = due.is_some_and(|due| due.since(now).0 >= least);
                    state == TaskState::Retrying && waited
                } else {
                    is_failure(state)
                }
            }
            Outcome::Lost => {
                counts.1 += 1;
                if counts.1 >= spec.max_crashes.max(1) {
                    is_failure(state)
                } else {
                    state == TaskState::Queued
                }
            }
        };
        if state.is_terminal() {
            self.legs.remove(&task);
        }
        if good {
            return Ok(());
        }
        wrong("decision", format!("{task} after {outcome:?} and {counts:?} under {spec:?}: {answer:?}"))
    }

    /// Nothing of a job runs any more.
    pub fn stopped(&mut self, job: JobId) {
        self.legs.retain(|task, _| task.job != job);
    }

    /// A job is taken up again: what runs again starts anew.
    pub fn revived(&mut self, job: JobId) {
        self.counts.retain(|task, _| task.job != job);
    }

    /// Somebody is about to ask something of jobs.
    pub fn before_control(&mut self, model: &Model, commands: &[Command], now: Timestamp) {
        for command in commands {
            let Command::Pause(id) = command else { continue };
            if let Some(deadline) = model.job(*id).and_then(|job| job.deadline) {
                self.pauses.insert(*id, (deadline, now));
            }
        }
    }

    /// A job goes on: its clock has stood still.
    pub fn resumed(&mut self, model: &Model, id: JobId, now: Timestamp) -> Check {
        let Some((deadline, since)) = self.pauses.remove(&id) else { return Ok(()) };
        let (expected, is) = (deadline + now.since(since), model.job(id).and_then(|job| job.deadline));
        // A job that began while it was paused got its deadline then.
        if is.is_some_and(|is| is < expected) {
            return wrong(
                "deadline",
                format!("job {id} was to end at {expected:?}, after its pause at {is:?}"),
            );
        }
        Ok(())
    }
}

/// A task that failed for good, or was optional.
fn is_failure(state: TaskState) -> bool {
    matches!(state, TaskState::Failed | TaskState::Skipped)
}

/// The shortest wait after so many failures, in milliseconds: the whole random part is taken off.
fn least_wait(retry: &RetryPolicy, failures: u32) -> u64 {
    let doubled = (1..failures).fold(retry.initial.0, |wait, _| wait.saturating_mul(retry.base.into()));
    let full = doubled.min(retry.max.0);
    (full * u64::from(100 - retry.jitter_percent.min(100)) / 100).saturating_sub(1)
}
