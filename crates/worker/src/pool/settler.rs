//! Hands outcomes in. All that ended while one batch was being committed rides in the next one.
//!
//! An outcome is handed in until the source has answered it, and each only once as far as the
//! source lets us know: where an answer got lost, the fence makes the repetition harmless.

use super::Shared;
use super::backoff::Backoff;
use super::config::Report;
use orchestrator_core::{ErrorClass, Failure, Limits, Outcome, TaskSpec};
use orchestrator_store::{Held, Leased, Settled, Settlement};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The most outcomes of one batch, and the most that wait for the next.
pub(super) const SETTLE_BATCH: usize = 4096;

/// The end of one attempt.
pub(super) struct Done {
    held: Held,
    outcome: Outcome,
    /// For the hook; absent where nobody listens.
    about: Option<About>,
}

impl Done {
    pub fn new(held: Held, outcome: Outcome, about: Option<About>) -> Self {
        Done { held, outcome, about }
    }
}

/// What a report tells about a task beside its outcome.
pub(super) struct About {
    key: Option<Arc<str>>,
    spec: Arc<TaskSpec>,
    limits: Limits,
    failures: u32,
    took: Duration,
}

impl About {
    pub fn of(leased: &Leased) -> Self {
        About {
            key: leased.key.clone(),
            spec: leased.spec.clone(),
            limits: leased.limits.clone(),
            failures: leased.counters.failures,
            took: Duration::ZERO,
        }
    }

    /// The same after the handler ran.
    pub fn after(self, took: Duration) -> Self {
        About { took, ..self }
    }
}

/// Gives tasks back that never started.
pub(super) async fn give_back(tasks: Vec<Leased>, done: &mpsc::Sender<Done>) {
    for leased in tasks {
        let about = Some(About::of(&leased));
        if done.send(Done::new(leased.held(), Outcome::Released, about)).await.is_err() {
            return;
        }
    }
}

/// Runs until every sender is gone and everything is handed in.
pub(super) async fn run(shared: Arc<Shared>, mut inbox: mpsc::Receiver<Done>, mut rng: fastrand::Rng) {
    let mut settler = Settler { backoff: Backoff::new(rng.fork()), rng, shared: &shared };
    let mut batch = Vec::new();
    while inbox.recv_many(&mut batch, SETTLE_BATCH).await > 0 {
        settler.hand_in(&mut batch).await;
        batch.clear();
    }
}

struct Settler<'a> {
    shared: &'a Shared,
    backoff: Backoff,
    rng: fastrand::Rng,
}

impl Settler<'_> {
    async fn hand_in(&mut self, batch: &mut [Done]) {
        if self.settle(batch).await.is_ok() {
            return;
        }
        // One of them cannot be stored. The others must not wait for it.
        for one in batch.chunks_mut(1) {
            let Err(why) = self.settle(one).await else { continue };
            let message = format!("the outcome of the handler cannot be stored: {why}");
            one[0].outcome = Outcome::Failed(Failure::new(ErrorClass::Defect, message));
            if let Err(why) = self.settle(one).await {
                self.shared.counters.refused.fetch_add(1, Relaxed);
                tracing::error!(task = %one[0].held.task, why, "outcome refused; the lease will run out");
            }
        }
    }

    /// Tries until the source has answered. The error is a refusal for good.
    async fn settle(&mut self, batch: &[Done]) -> Result<(), String> {
        loop {
            let settlements = batch.iter().map(|done| Settlement {
                held: done.held,
                outcome: done.outcome.clone(),
                jitter: self.rng.f64(),
            });
            match self.shared.source.settle(settlements.collect()).await {
                Ok(answers) => {
                    self.backoff.reset();
                    batch.iter().zip(&answers).for_each(|(done, settled)| self.note(done, settled));
                    return Ok(());
                }
                Err(error) if error.is_refusal() => return Err(error.to_string()),
                Err(error) => {
                    let pause = self.backoff.pause();
                    tracing::warn!(%error, ?pause, outcomes = batch.len(), "cannot hand in outcomes, trying again");
                    sleep(pause).await;
                }
            }
        }
    }

    fn note(&self, done: &Done, settled: &Settled) {
        self.shared.counters.settled(&done.outcome, settled);
        let (Some(hook), Some(about)) = (&self.shared.config.on_settled, &done.about) else { return };
        let failure = match &done.outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        let report = Report {
            held: done.held,
            key: about.key.clone(),
            spec: about.spec.clone(),
            limits: about.limits.clone(),
            failures: about.failures,
            took: about.took,
            failure,
            settled: *settled,
        };
        if catch_unwind(AssertUnwindSafe(|| hook(&report))).is_err() {
            tracing::error!("the on_settled hook panicked");
        }
    }
}
