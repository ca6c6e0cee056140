//! How far a run is: a bar on a terminal, a line now and then elsewhere, events for programs.

use super::serve::{Lines, Plan};
use crate::config::QueueConfig;
use crate::error::CliResult;
use crate::log::BARS;
use crate::output::{Output, age, count};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use orchestrator_core::Millis;
use orchestrator_store::{Catalog, LineStats, StoreResult};
use orchestrator_worker::Stats as PoolStats;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// The time between two lines where nothing can be drawn.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The time between two looks at the limit keys.
const KEYS_EVERY: Duration = Duration::from_secs(1);
/// So many keys are shown.
const SHOWN_KEYS: usize = 4;

/// The served lines at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Ready to run.
    pub queued: u64,
    /// Waiting for room under a limit.
    pub parked: u64,
    /// Waiting for their next attempt.
    pub retrying: u64,
    /// Held by workers of any process.
    pub in_progress: u64,
    /// Due later.
    pub scheduled: u64,
    /// Ended since the first snapshot, by any process.
    pub finished: u64,
    /// Ended badly since the first snapshot, by any process.
    pub failed: u64,
    /// Work in lines that are not served.
    pub not_served: Vec<NotServed>,
    #[serde(skip)]
    ended_ever: u64,
    #[serde(skip)]
    failed_ever: u64,
}

/// A line with work that this run does not serve.
#[derive(Clone, Debug, Serialize)]
pub struct NotServed {
    /// Its queue.
    pub queue: String,
    /// Its handler.
    pub handler: String,
    /// How much waits.
    pub waiting: u64,
}

impl Snapshot {
    /// Looks at the store.
    pub async fn take(store: &dyn Catalog, lines: &Lines, first: Option<&Snapshot>) -> StoreResult<Snapshot> {
        let mut now = Snapshot::default();
        for line in store.stats().await?.lines {
            if lines.serves(&line) {
                now.add(&line);
            } else {
                let waiting = line.ready + line.parked + line.retrying + line.scheduled;
                if waiting > 0 {
                    now.not_served.push(NotServed {
                        queue: line.queue.to_string(),
                        handler: line.handler.to_string(),
                        waiting,
                    });
                }
            }
        }
        // Somebody may retry failed jobs meanwhile, so both may fall.
        let first =
            first.map_or((now.ended_ever, now.failed_ever), |first| (first.ended_ever, first.failed_ever));
        now.finished = now.ended_ever.saturating_sub(first.0);
        now.failed = now.failed_ever.saturating_sub(first.1);
        Ok(now)
    }

    fn add(&mut self, line: &LineStats) {
        self.queued += line.ready;
        self.parked += line.parked;
        self.retrying += line.retrying;
        self.in_progress += line.running;
        self.scheduled += line.scheduled;
        self.ended_ever += line.completed + line.skipped + line.failed + line.cancelled + line.timed_out;
        self.failed_ever += line.failed;
    }

    /// What is still to do, save what is scheduled for later.
    pub fn left(&self) -> u64 {
        self.queued + self.parked + self.retrying + self.in_progress
    }

    /// The same after some more jobs have ended.
    pub fn after(&self, ended: u64) -> Snapshot {
        let ended = ended.min(self.left());
        let mut then = Snapshot { finished: self.finished + ended, ..self.clone() };
        let mut rest = ended;
        for state in [&mut then.queued, &mut then.in_progress, &mut then.parked, &mut then.retrying] {
            let part = rest.min(*state);
            *state -= part;
            rest -= part;
        }
        then
    }

    fn states(&self) -> String {
        let mut text = format!("running {}", self.in_progress);
        for (name, number) in [
            ("retrying", self.retrying),
            ("parked", self.parked),
            ("scheduled", self.scheduled),
            ("failed", self.failed),
        ] {
            if number > 0 {
                text += &format!(" · {name} {}", count(number));
            }
        }
        text
    }
}

/// Shows a run.
pub struct View {
    out: Output,
    bar: ProgressBar,
    started: Instant,
    line_at: Instant,
    keys_at: Instant,
    keys: String,
}

impl View {
    /// Says what starts, and shows the bar where there can be one.
    pub fn start(out: Output, plan: &Plan, config: &QueueConfig, first: &Snapshot) -> View {
        let now = Instant::now();
        let bar = if out.draws() {
            BARS.add(ProgressBar::new(first.left()).with_style(style()))
        } else {
            ProgressBar::hidden()
        };
        let view =
            View { out, bar, started: now, line_at: now + LINE_EVERY, keys_at: now, keys: String::new() };
        let until = if plan.drain { "until nothing is left" } else { "until Ctrl-C" };
        view.note(&format!("serving {} with {} workers {until}", plan.queues.join(", "), config.max_workers));
        for line in &first.not_served {
            view.note(&format!(
                "note: {} of {} in queue {} are not served here",
                count(line.waiting),
                line.handler,
                line.queue
            ));
        }
        view
    }

    /// Tells people something beside the bar.
    pub fn note(&self, text: &str) {
        BARS.suspend(|| self.out.note(text));
    }

    /// Shows a snapshot.
    pub async fn show(&mut self, now: &Snapshot, pool: &PoolStats, store: &dyn Catalog) -> CliResult<()> {
        if !self.bar.is_hidden() {
            if Instant::now() >= self.keys_at {
                self.keys_at = Instant::now() + KEYS_EVERY;
                self.keys = busiest_keys(store).await.unwrap_or_default();
            }
            self.bar.set_length(now.finished + now.left());
            self.bar.set_position(now.finished);
            self.bar.set_message(format!("{}{}", now.states(), self.keys));
        } else if Instant::now() >= self.line_at {
            self.line_at = Instant::now() + LINE_EVERY;
            if self.out.is_table() {
                let eta = self.eta(now).map(|eta| format!(" · eta {}", age(eta))).unwrap_or_default();
                self.note(&format!(
                    "{}/{} done · {}{eta}",
                    count(now.finished),
                    count(now.finished + now.left()),
                    now.states()
                ));
            } else {
                self.out.event(&json!({ "event": "progress", "queue": now, "pool": pool }))?;
            }
        }
        Ok(())
    }

    fn eta(&self, now: &Snapshot) -> Option<Millis> {
        let per_job = self.started.elapsed().checked_div(u32::try_from(now.finished).ok()?)?;
        Some(per_job.checked_mul(u32::try_from(now.left()).ok()?)?.into())
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:32} {human_pos}/{human_len}  {rate}  eta {eta}\n{msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            // A text that cannot be written is a bar without its rate.
            let _ = write!(text, "{}/s", count(state.per_sec().round() as u64));
        })
}

/// The keys that are nearest to their limit, over all processes.
async fn busiest_keys(store: &dyn Catalog) -> StoreResult<String> {
    let mut keys = store.limits().await?;
    keys.retain(|view| view.running > 0);
    let fill =
        |running: u32, cap: Option<u32>| cap.map_or(0.0, |cap| f64::from(running) / f64::from(cap.max(1)));
    keys.sort_by(|a, b| fill(b.running, b.rule.concurrency).total_cmp(&fill(a.running, a.rule.concurrency)));
    let shown = keys.iter().take(SHOWN_KEYS).map(|view| match view.rule.concurrency {
        Some(cap) => format!("  {} {}/{cap}", view.key, view.running),
        None => format!("  {} {}", view.key, view.running),
    });
    let shown: String = shown.collect();
    Ok(if shown.is_empty() { shown } else { format!("\n{}", shown.trim_start()) })
}
