//! What a run hears of each outcome, and what it tells at its end.

use super::progress::Snapshot;
use super::serve::Ended;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::output::{Output, Paint, columns, count};
use crate::signals::Signal;
use orchestrator_store::Settled;
use orchestrator_worker::Stats as PoolStats;
use orchestrator_worker::pool::{OnSettled, Report as Outcome, Summary};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// So many failures are kept for the report.
const KEPT_FAILURES: usize = 10;
/// So many events wait for a slow reader of stdout before events are dropped.
const EVENTS: usize = 10_000;

/// A job that ended in the dead letters.
#[derive(Clone, Debug, Serialize)]
pub struct FailedJob {
    job: String,
    artifact_id: Option<String>,
    handler: String,
    attempts: u32,
    reason: String,
    error: String,
}

/// Hears of every outcome of this process: keeps the first failures, and for programs passes every
/// outcome on as an event.
pub struct Settlements {
    out: Output,
    send: mpsc::Sender<Value>,
    receive: mpsc::Receiver<Value>,
    dropped: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<FailedJob>>>,
}

impl Settlements {
    /// Nothing heard yet.
    pub fn new(out: Output) -> Self {
        let (send, receive) = mpsc::channel(EVENTS);
        Settlements { out, send, receive, dropped: Arc::default(), failures: Arc::default() }
    }

    /// The ear for a pool.
    pub fn listener(&self) -> OnSettled {
        let events = (!self.out.is_table()).then(|| self.send.clone());
        let (dropped, failures) = (self.dropped.clone(), self.failures.clone());
        Arc::new(move |outcome| {
            if let Some(failed) = failed_job(outcome) {
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                if failures.len() < KEPT_FAILURES {
                    failures.push(failed);
                }
            }
            if let Some(events) = &events
                && events.try_send(event(outcome)).is_err()
            {
                dropped.fetch_add(1, Relaxed);
            }
        })
    }

    /// The next event.
    pub async fn next_event(&mut self) -> Value {
        // Never closed: this holds a sender.
        self.receive.recv().await.unwrap_or_default()
    }

    /// Writes an event.
    pub fn show(&self, event: Value) -> CliResult<()> {
        self.out.event(&event)
    }

    /// Writes the events that have come in.
    pub fn flush(&mut self) -> CliResult<()> {
        while let Ok(event) = self.receive.try_recv() {
            self.show(event)?;
        }
        Ok(())
    }
}

fn failed_job(outcome: &Outcome) -> Option<FailedJob> {
    let Settled::Applied { dead: Some(reason), .. } = outcome.settled else { return None };
    Some(FailedJob {
        job: outcome.held.task.job.to_string(),
        artifact_id: outcome.key.as_deref().map(str::to_owned),
        handler: outcome.spec.handler.to_string(),
        attempts: outcome.failures + 1,
        reason: reason.to_string(),
        error: outcome.failure.as_ref().map(ToString::to_string).unwrap_or_default(),
    })
}

fn event(outcome: &Outcome) -> Value {
    let (state, due, dead) = match outcome.settled {
        Settled::Applied { state, due, dead, .. } => (state.as_str(), due, dead),
        Settled::Stale => ("stale", None, None),
    };
    json!({
        "event": "settled",
        "job": outcome.held.task.job,
        "attempt": outcome.held.attempt,
        "artifact_id": outcome.key,
        "handler": outcome.spec.handler,
        "state": state,
        "took_ms": u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
        "retry_at": due,
        "dead": dead,
        "error": outcome.failure.as_ref().map(ToString::to_string),
    })
}

/// What a run has done.
#[derive(Debug, Serialize)]
pub struct Report {
    event: &'static str,
    ended: &'static str,
    /// Ended well in this process.
    pub done: u64,
    /// Nothing to do, in this process.
    pub skipped: u64,
    /// Failed for good while it ran.
    pub failed: u64,
    /// Failed and put back for another attempt, in this process.
    pub retried: u64,
    released: u64,
    unreported: u64,
    stale: u64,
    seconds: f64,
    left: Snapshot,
    failures: Vec<FailedJob>,
    events_dropped: u64,
}

impl Report {
    /// Puts it together. `last` is the queue at the end.
    pub fn new(
        ended: Ended,
        took: Duration,
        pool: &PoolStats,
        stopped: Summary,
        last: &Snapshot,
        settlements: Settlements,
    ) -> Report {
        Report {
            event: "summary",
            ended: match ended {
                Ended::Drained => "drained",
                Ended::Asked(Signal::Interrupt) => "interrupted",
                Ended::Asked(Signal::Terminate) => "terminated",
            },
            done: pool.completed,
            skipped: pool.skipped,
            // The sweeper fails jobs, too, whose workers vanish.
            failed: pool.failed.max(last.failed),
            retried: pool.retried,
            released: pool.released,
            unreported: stopped.unreported,
            stale: pool.stale + pool.lost,
            seconds: took.as_secs_f64(),
            left: last.clone(),
            failures: settlements.failures.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            events_dropped: settlements.dropped.load(Relaxed),
        }
    }

    /// Writes it.
    pub fn tell(&self, out: Output) -> CliResult {
        if !out.is_table() {
            out.event(self)?;
            return Ok(Exit::Ok);
        }
        let mut text = String::new();
        let numbers = [
            ("done", self.done, Paint::Green, true),
            ("skipped", self.skipped, Paint::Dim, true),
            ("failed", self.failed, Paint::Red, true),
            ("retried", self.retried, Paint::Yellow, true),
            ("given back", self.released, Paint::Dim, false),
            ("unreported", self.unreported, Paint::Red, false),
            ("stale", self.stale, Paint::Dim, false),
        ];
        let shown = numbers.into_iter().filter(|(_, number, _, always)| *always || *number > 0).map(
            |(name, number, how, _)| {
                let part = format!("{name} {}", count(number));
                if number > 0 { out.paint(how, &part) } else { part }
            },
        );
        text += &shown.collect::<Vec<_>>().join(" · ");
        let ended = self.done + self.skipped;
        let rate = ended as f64 / self.seconds.max(0.001);
        text += &format!("      {:.1}s  {} jobs/s\n", self.seconds, count(rate.round() as u64));
        text += &self.left_text();
        if !self.failures.is_empty() {
            let rows = self.failures.iter().map(|failed| {
                let error = failed.error.lines().next().unwrap_or_default().to_owned();
                vec![
                    failed.artifact_id.clone().unwrap_or_else(|| failed.job.clone()),
                    failed.handler.clone(),
                    failed.attempts.to_string(),
                    error,
                ]
            });
            text += &columns(&["FAILED", "HANDLER", "ATTEMPTS", "ERROR"], &[2], rows.collect());
        }
        out.data(&text)?;
        Ok(Exit::Ok)
    }

    fn left_text(&self) -> String {
        let left = &self.left;
        let parts = [
            ("queued", left.queued),
            ("parked", left.parked),
            ("retrying", left.retrying),
            ("in progress", left.in_progress),
            ("scheduled", left.scheduled),
        ];
        let mut parts: Vec<_> = parts
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| format!("{name} {}", count(n)))
            .collect();
        parts.extend(left.not_served.iter().map(|line| {
            format!("{} of {} in queue {} (not served)", count(line.waiting), line.handler, line.queue)
        }));
        if parts.is_empty() { String::new() } else { format!("left: {}\n", parts.join(" · ")) }
    }
}
