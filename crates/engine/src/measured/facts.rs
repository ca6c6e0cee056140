//! Facts of the store as gauges: read when somebody looks at the metrics, never on the way of a task.
//!
//! Every replica shows the same numbers, so those of several are put together with `max`, not `sum`.

use orchestrator_core::{Millis, Timestamp};
use orchestrator_store::meter::{Kind, Meter, Whose};
use orchestrator_store::{DayStats, LineStats, Stats, Store, StoreResult, WorkerView};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

const DEPTH: Meter = gauge(
    "orchestrator_queue_depth",
    &["queue", "state"],
    "Tasks of a queue that wait: ready to run, parked until a limit has room, scheduled for a moment, retrying after a \
     failure, or paused with their job.",
);
const OLDEST: Meter = gauge(
    "orchestrator_queue_oldest_seconds",
    &["queue"],
    "How long ago the job was submitted whose task has been in line longest, ready or parked; 0 where none is.",
);
const ACTIVE_TASKS: Meter = gauge("orchestrator_active_tasks", &["queue"], "Tasks that workers hold now.");
const ACTIVE_RUNS: Meter =
    gauge("orchestrator_active_runs", &[], "Jobs that were taken in and have not ended.");
const DEAD: Meter = gauge(
    "orchestrator_dead_letter_queue_size",
    &["queue"],
    "Failed tasks that wait for somebody's decision.",
);
const WORKERS: Meter =
    gauge("orchestrator_workers", &[], "Workers that said something of themselves within the last minute.");
const UP: Meter =
    gauge("orchestrator_store_up", &[], "1 where the numbers of the store could be read just now, else 0.");
const RUNS: Meter = Meter {
    name: "orchestrator_flow_runs_processed_total",
    kind: Kind::Counter,
    labels: &["status"],
    whose: Whose::Store,
    help: "Jobs that have ended, by how: completed, failed, timed_out or cancelled.",
};

/// What is read.
pub const METERS: &[Meter] = &[RUNS, ACTIVE_RUNS, ACTIVE_TASKS, DEAD, DEPTH, OLDEST, WORKERS, UP];

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Meter {
    Meter { name, kind: Kind::Gauge, labels, whose: Whose::Store, help }
}

/// Facts that are so old are read again.
const FRESH: Duration = Duration::from_secs(1);
/// A store that takes longer is not up.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many queues have a series of their own; the rest, in order of their names, is called other.
const MOST_QUEUES: usize = 100;
/// All days since the beginning: what ended is summed over them.
const ALL_DAYS: u32 = 100_000;
/// A worker that has said nothing for so long is not there.
const QUIET: Millis = Millis::mins(1);

/// Reads the facts of a store.
pub struct Facts {
    store: Arc<dyn Store>,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    at: Option<Instant>,
    /// The queues that have series of their own, for good: a series must not change its meaning.
    queues: BTreeSet<Arc<str>>,
}

impl Facts {
    /// Those of a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Facts { store, read: Mutex::default() }
    }

    /// Brings the gauges up to date, unless somebody has just done that. Where the store cannot be read, they stay as they
    /// are and `orchestrator_store_up` tells.
    pub async fn refresh(&self) {
        let mut read = self.read.lock().await;
        if read.at.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let up = match timeout(PATIENCE, self.look(&mut read)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot read the numbers of the store for the metrics");
                false
            }
            Err(_) => {
                tracing::warn!("the store is too slow to read its numbers for the metrics");
                false
            }
        };
        metrics::gauge!(UP.name).set(f64::from(u8::from(up)));
        read.at = Some(Instant::now());
    }

    async fn look(&self, read: &mut Read) -> StoreResult<()> {
        let Stats { lines } = self.store.stats().await?;
        let days = self.store.daily(ALL_DAYS).await?;
        let workers = self.store.workers().await?;
        self.queues(read, &lines);
        let sum = |of: fn(&DayStats) -> u64| days.iter().map(of).sum::<u64>();
        let ends = [
            ("completed", sum(|day| day.completed)),
            ("failed", sum(|day| day.failed)),
            ("timed_out", sum(|day| day.timed_out)),
            ("cancelled", sum(|day| day.cancelled)),
        ];
        let begun = sum(|day| day.created) + sum(|day| day.reopened);
        let over: u64 = ends.iter().map(|(_, count)| count).sum();
        metrics::gauge!(ACTIVE_RUNS.name).set(begun.saturating_sub(over) as f64);
        for (status, count) in ends {
            metrics::counter!(RUNS.name, "status" => status).absolute(count);
        }
        let there =
            |worker: &&WorkerView| !worker.note.gone && self.store.now().since(worker.last_seen) <= QUIET;
        metrics::gauge!(WORKERS.name).set(workers.iter().filter(there).count() as f64);
        Ok(())
    }

    fn queues(&self, read: &mut Read, lines: &[LineStats]) {
        let mut queues: BTreeMap<Arc<str>, Queue> = BTreeMap::new();
        for line in lines {
            if read.queues.len() < MOST_QUEUES {
                read.queues.insert(line.queue.clone());
            }
            let name = if read.queues.contains(&line.queue) { line.queue.clone() } else { "other".into() };
            queues.entry(name).or_default().add(line);
        }
        for (name, queue) in queues {
            let name = name.to_string();
            for (state, count) in queue.waiting {
                metrics::gauge!(DEPTH.name, "queue" => name.clone(), "state" => state).set(count as f64);
            }
            let age = queue.oldest.map_or(0.0, |oldest| self.store.now().since(oldest).0 as f64 / 1e3);
            metrics::gauge!(OLDEST.name, "queue" => name.clone()).set(age);
            metrics::gauge!(ACTIVE_TASKS.name, "queue" => name.clone()).set(queue.running as f64);
            metrics::gauge!(DEAD.name, "queue" => name).set(queue.dead as f64);
        }
    }
}

/// One queue, over all of its handlers.
#[derive(Default)]
struct Queue {
    waiting: BTreeMap<&'static str, u64>,
    running: u64,
    dead: u64,
    oldest: Option<Timestamp>,
}

impl Queue {
    fn add(&mut self, line: &LineStats) {
        let waiting = [
            ("ready", line.ready),
            ("parked", line.parked),
            ("scheduled", line.scheduled),
            ("retrying", line.retrying),
            ("paused", line.paused),
        ];
        for (state, count) in waiting {
            *self.waiting.entry(state).or_default() += count;
        }
        self.running += line.running;
        self.dead += line.dead;
        self.oldest = self.oldest.into_iter().chain(line.oldest_queued).min();
    }
}
