//! Runs attempts, one after another: the handler, its time limit, its token and its panics.

use super::Shared;
use super::settler::{About, Done};
use super::slots::{Stop, Taken};
use super::span;
use crate::handler::{Handler, Work};
use futures_util::FutureExt;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{ErrorClass, Failure, Millis, Outcome};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// One worker: takes tasks until the pool closes.
pub(super) async fn run(shared: Arc<Shared>, worker: usize, done: mpsc::Sender<Done>) {
    while let Some(mut taken) = shared.slots.next(worker).await {
        let held = taken.leased.held();
        let started = taken.started;
        let spec = taken.leased.spec.clone();
        let span = span::begin(&mut taken.leased, shared.config.traced);
        let about = shared.config.on_settled.as_ref().map(|_| About::of(&taken.leased));
        let busy = shared.meters.start();
        let outcome = attempt(&shared, worker, taken).instrument(span.clone()).await;
        let took = started.elapsed();
        drop(busy);
        shared.meters.ran(&spec.handler, took);
        span::end(&span, outcome.as_ref(), took);
        drop(span);
        match outcome {
            Some(outcome) => {
                let about = about.map(|about| about.after(took));
                // The slot stays taken until the outcome is handed over: a settler that lags behind
                // slows the leasing down.
                if done.send(Done::new(held, outcome, about)).await.is_err() {
                    return;
                }
            }
            None => {
                shared.counters.lost.fetch_add(1, Relaxed);
                tracing::warn!(task = %held.task, attempt = held.attempt, "lease lost, attempt dropped");
            }
        }
    }
}

/// Runs one attempt to its outcome; `None` when its lease was lost and nobody wants to know.
async fn attempt(shared: &Shared, worker: usize, taken: Taken) -> Option<Outcome> {
    let name = taken.leased.spec.handler.clone();
    let Some(handler) = shared.registry.get(&name) else {
        let known: Vec<_> = shared.registry.names().map(|name| &**name).collect();
        return Some(defect(format!("there is no handler {name:?} here, only: {}", known.join(", "))));
    };
    match AssertUnwindSafe(drive(shared, worker, &**handler, taken)).catch_unwind().await {
        Ok(Some(Outcome::Lost)) => {
            Some(defect("the handler answered \"lost\", which only a store may say".to_owned()))
        }
        Ok(outcome) => outcome.map(|outcome| outcome.bounded(shared.config.max_output)),
        Err(panic) => Some(defect(format!("the handler panicked: {}", panic_message(&*panic)))),
    }
}

/// Polls the handler until it ends or must end. When this returns the handler's future is dropped.
async fn drive(shared: &Shared, worker: usize, handler: &dyn Handler, taken: Taken) -> Option<Outcome> {
    let Taken { leased, deadline, token, started } = taken;
    let limit = leased.spec.timeout;
    let own_deadline = limit.and_then(|limit| started.checked_add(limit.into()));
    let deadline = deadline.into_iter().chain(own_deadline).min();
    let mut running = pin!(handler.run(Work { leased, cancelled: token.clone() }));
    let (stop, last_word) = tokio::select! {
        biased;
        outcome = &mut running => {
            let stop = if token.is_cancelled() { shared.slots.stop_of(worker) } else { None };
            let Some(stop) = stop else { return Some(outcome) };
            (stop, Some(outcome))
        }
        stop = must_end(shared, worker, &token, deadline) => {
            token.cancel();
            (stop, timeout(shared.config.cancel_grace.into(), running).await.ok())
        }
    };
    conclude(stop, last_word, limit.unwrap_or_else(|| started.elapsed().into()))
}

/// Waits until the attempt must end, and says why.
async fn must_end(
    shared: &Shared,
    worker: usize,
    token: &CancellationToken,
    deadline: Option<Instant>,
) -> Stop {
    // Without a limit of its own an attempt may take as long as its lease is prolonged.
    const FOREVER: Duration = Duration::from_secs(86_400 * 365);
    let deadline = deadline.unwrap_or_else(|| Instant::now() + FOREVER);
    let stopped = async {
        token.cancelled().await;
        match shared.slots.stop_of(worker) {
            Some(stop) => stop,
            // The handler fired it, for work of its own.
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        stop = stopped => stop,
        () = sleep_until(deadline), if !planted(Bug::IgnoreTimeout) => Stop::Timeout,
    }
}

/// What to report of an attempt that had to end. Work that got done anyway counts; an error does
/// not, as it is most likely the cancelling itself.
fn conclude(stop: Stop, last_word: Option<Outcome>, limit: Millis) -> Option<Outcome> {
    match (stop, last_word) {
        (Stop::Lost, _) => None,
        (_, Some(done @ (Outcome::Completed(_) | Outcome::Skipped(_)))) => Some(done),
        (Stop::Shutdown, Some(leg @ Outcome::Continue(_))) => Some(leg),
        (Stop::Shutdown, Some(error)) if planted(Bug::ShutdownCounts) => Some(error),
        (Stop::Shutdown, _) => Some(Outcome::Released),
        (Stop::Timeout, _) => {
            let message = format!("the attempt took longer than its limit of {limit}");
            Some(Outcome::Failed(Failure::new(ErrorClass::Timeout, message)))
        }
    }
}

fn defect(message: String) -> Outcome {
    Outcome::Failed(Failure::new(ErrorClass::Defect, message))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_core::{Json, Limits, outcome::Leg};

    fn leg() -> Outcome {
        Outcome::Continue(Leg { checkpoint: Json::null(), limits: Limits::none(), delay: Millis(0) })
    }

    fn failed() -> Outcome {
        Outcome::Failed(Failure::permanent("killed by signal 15"))
    }

    #[test]
    fn a_lost_lease_reports_nothing() {
        for last_word in [None, Some(Outcome::Completed(Json::null())), Some(failed())] {
            assert_eq!(conclude(Stop::Lost, last_word, Millis(1)), None);
        }
    }

    #[test]
    fn a_shutdown_costs_no_attempt_but_keeps_what_got_done() {
        assert_eq!(conclude(Stop::Shutdown, None, Millis(1)), Some(Outcome::Released));
        assert_eq!(conclude(Stop::Shutdown, Some(failed()), Millis(1)), Some(Outcome::Released));
        assert_eq!(conclude(Stop::Shutdown, Some(leg()), Millis(1)), Some(leg()));
        let done = Outcome::Completed(Json::null());
        assert_eq!(conclude(Stop::Shutdown, Some(done.clone()), Millis(1)), Some(done));
    }

    #[test]
    fn a_timeout_names_its_limit_and_no_leg_evades_it() {
        for last_word in [None, Some(failed()), Some(leg()), Some(Outcome::Released)] {
            let Some(Outcome::Failed(failure)) = conclude(Stop::Timeout, last_word, Millis::secs(90)) else {
                panic!("not a failure")
            };
            assert_eq!(failure.class, ErrorClass::Timeout);
            assert!(failure.message.contains("1m30s"), "{}", failure.message);
        }
    }
}
