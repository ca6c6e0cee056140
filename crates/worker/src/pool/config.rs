//! What a pool can be told.

use super::introduce::Introduction;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{Failure, Limits, Millis, TaskSpec, WorkerId};
use orchestrator_store::{Held, Settled};
use std::sync::Arc;
use std::time::Duration;

/// The largest output of an attempt, where nothing else is said.
pub const DEFAULT_MAX_OUTPUT: usize = 1 << 20;

/// How a pool works.
#[derive(Clone)]
pub struct PoolConfig {
    /// The name under which it holds leases.
    pub worker: WorkerId,
    /// The queues that it serves.
    pub queues: Vec<Arc<str>>,
    /// How many tasks run at once.
    pub max_workers: usize,
    /// How long a lease holds without a heartbeat.
    pub lease_ttl: Millis,
    /// How often the leases are prolonged; at least three times per `lease_ttl`, whatever stands here.
    pub heartbeat: Millis,
    /// How long [`Pool::stop`](super::Pool::stop) lets running tasks go on.
    pub grace: Millis,
    /// How long a handler may still run after its token fired, to clean up, before it is dropped.
    pub cancel_grace: Millis,
    /// How often the source is asked whether leases were taken away, so that cancelled work really stops. What
    /// this process itself takes away is known at once.
    pub watch: Millis,
    /// The largest output, and the largest checkpoint, of an attempt, in bytes. More is a final failure.
    pub max_output: usize,
    /// How many tasks are leased ahead of the workers.
    pub prefetch: Prefetch,
    /// Called for every outcome that the source answered, in the task that hands them in: keep it short.
    pub on_settled: Option<OnSettled>,
    /// What it tells of itself, so that it is seen among the workers; nothing where there is none.
    pub introduction: Option<Introduction>,
    /// Whether attempts are spans of the traces that jobs carry, because somebody keeps them.
    pub traced: bool,
    /// Spreads retries and pauses.
    pub rng: fastrand::Rng,
}

impl PoolConfig {
    /// The defaults for a worker that serves the default queue.
    pub fn new(worker: WorkerId) -> Self {
        PoolConfig {
            worker,
            queues: vec![DEFAULT_QUEUE.into()],
            max_workers: 8,
            lease_ttl: Millis::secs(600),
            heartbeat: Millis::secs(30),
            grace: Millis::secs(30),
            cancel_grace: Millis::secs(2),
            watch: Millis::secs(1),
            max_output: DEFAULT_MAX_OUTPUT,
            prefetch: Prefetch::default(),
            on_settled: None,
            introduction: None,
            traced: false,
            rng: fastrand::Rng::new(),
        }
    }
}

/// How many tasks are leased ahead: as many as the workers get through in `span`, at most `cap`.
/// A leased task that waits holds slots of its limits and is kept from other processes, so slow
/// handlers get none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// How far ahead.
    pub span: Millis,
    /// No more than so many.
    pub cap: usize,
}

impl Prefetch {
    /// Nothing is leased ahead.
    pub const OFF: Prefetch = Prefetch { span: Millis(0), cap: 0 };
}

impl Default for Prefetch {
    fn default() -> Self {
        Prefetch { span: Millis(25), cap: 2048 }
    }
}

/// Hears of every outcome.
pub type OnSettled = Arc<dyn Fn(&Report) + Send + Sync>;

/// One outcome that the source answered.
#[derive(Clone, Debug)]
pub struct Report {
    /// The attempt.
    pub held: Held,
    /// The caller's key of the job.
    pub key: Option<Arc<str>>,
    /// How the task is run.
    pub spec: Arc<TaskSpec>,
    /// The limits whose slots it held.
    pub limits: Limits,
    /// How many attempts of the task had failed before this one.
    pub failures: u32,
    /// How long the handler ran; zero if the task was given back before it started.
    pub took: Duration,
    /// What went wrong, where the attempt failed.
    pub failure: Option<Failure>,
    /// What the source made of it.
    pub settled: Settled,
}
