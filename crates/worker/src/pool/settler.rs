//! Hands outcomes in. All that ended while one batch was being committed rides in the next one.
//!
//! An outcome is handed in until the source has answered it, and each only once as far as the
//! source lets us know: where an answer got lost, the fence makes the repetition harmless.

use super::Shared;
use super::backoff::Backoff;
use super::config::Report;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{ErrorClass, Failure, Limits, Outcome, TaskSpec};
use orchestrator_store::{Held, Leased, Settled, Settlement};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
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
        settler.hand_in(&mut batch, &mut inbox).await;
        batch.clear();
    }
}

/// Why the source did not take a batch.
enum Trouble {
    /// It never will.
    Refused(String),
    /// It may later.
    Passing,
}

struct Settler<'a> {
    shared: &'a Shared,
    backoff: Backoff,
    rng: fastrand::Rng,
}

impl Settler<'_> {
    /// Hands a batch in, and what comes in while it has to wait.
    async fn hand_in(&mut self, batch: &mut Vec<Done>, inbox: &mut mpsc::Receiver<Done>) {
        loop {
            match self.try_once(batch).await {
                Ok(()) => break,
                Err(Trouble::Passing) => self.wait(batch, inbox).await,
                Err(Trouble::Refused(_)) => {
                    self.one_by_one(batch).await;
                    break;
                }
            }
        }
        self.keep(&[]);
    }

    /// One of them cannot be stored. The others must not wait for it.
    async fn one_by_one(&mut self, batch: &mut [Done]) {
        for at in 0..batch.len() {
            self.keep(&batch[at..]);
            let one = &mut batch[at..=at];
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
            match self.try_once(batch).await {
                Ok(()) => return Ok(()),
                Err(Trouble::Refused(why)) => return Err(why),
                Err(Trouble::Passing) => sleep(self.backoff.pause()).await,
            }
        }
    }

    async fn try_once(&mut self, batch: &[Done]) -> Result<(), Trouble> {
        let settlements = batch.iter().map(|done| Settlement {
            held: done.held,
            outcome: done.outcome.clone(),
            jitter: self.rng.f64(),
        });
        match self.shared.source.settle(settlements.collect()).await {
            Ok(answers) => {
                self.backoff.reset();
                batch.iter().zip(&answers).for_each(|(done, settled)| self.note(done, settled));
                Ok(())
            }
            Err(error) if error.is_refusal() => Err(Trouble::Refused(error.to_string())),
            Err(_) if planted(Bug::DropOutcomeOnError) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, outcomes = batch.len(), "cannot hand in outcomes, trying again");
                Err(Trouble::Passing)
            }
        }
    }

    /// Waits until the next try. Meanwhile the leases of all that is to be handed in are kept alive: the work is
    /// done, and must not be lost because it cannot be told at once.
    async fn wait(&mut self, batch: &mut Vec<Done>, inbox: &mut mpsc::Receiver<Done>) {
        let mut over = pin!(sleep(self.backoff.pause()));
        loop {
            self.keep(batch);
            let room = SETTLE_BATCH.saturating_sub(batch.len());
            tokio::select! {
                biased;
                () = &mut over => return,
                more = inbox.recv_many(batch, room), if room > 0 => if more == 0 {
                    return over.await;
                },
            }
        }
    }

    fn keep(&self, batch: &[Done]) {
        self.shared.slots.keep(batch.iter().map(|done| done.held).collect());
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
