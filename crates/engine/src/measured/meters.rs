//! The metrics of the verbs: their names, and the handles through which a process records what it did.

use metrics::{Counter, Histogram};
use orchestrator_core::TaskState;
use orchestrator_store::meter::{Kind, Meter, Scale, Whose};
use orchestrator_store::{Leased, StoreError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

const SUBMITTED: Meter = counter(
    "orchestrator_jobs_submitted_total",
    &["result"],
    "Jobs that came in through this process: created, existing (the key has a job) or conflict.",
);
const SCHEDULED: Meter = counter(
    "orchestrator_tasks_scheduled_total",
    &[],
    "Attempts that this process handed out to workers, here or elsewhere.",
);
const COMPLETED: Meter = counter(
    "orchestrator_tasks_completed_total",
    &["status"],
    "Tasks that an attempt brought to their end: completed, skipped or failed.",
);
const RETRIES: Meter = counter(
    "orchestrator_retry_attempts_total",
    &["task", "handler"],
    "Attempts handed out of tasks that had failed or lost their worker before. Only so many names of tasks are told apart; \
     the rest is called other.",
);
const STALE: Meter = counter(
    "orchestrator_stale_settlements_total",
    &[],
    "Outcomes that came after their lease was gone, and changed nothing.",
);
const EXPIRED: Meter = counter(
    "orchestrator_lease_expiries_total",
    &[],
    "Attempts that the sweeper ended: their lease ran out, or they took longer than they may.",
);
const OVERDUE: Meter = counter(
    "orchestrator_jobs_timed_out_total",
    &[],
    "Jobs that the sweeper ended because their deadline had passed.",
);
const ERRORS: Meter = counter(
    "orchestrator_store_errors_total",
    &["code"],
    "Calls that the store did not carry out, by the code of the error.",
);
const RUN_SECONDS: Meter = Meter {
    name: "orchestrator_run_execution_seconds",
    kind: Kind::Histogram(Scale::Work),
    labels: &[],
    whose: Whose::Process,
    help: "How long jobs took from submit to their end, of those whose last attempt ended through this process.",
};
const VERB_SECONDS: Meter = Meter {
    name: "orchestrator_store_seconds",
    kind: Kind::Histogram(Scale::Calls),
    labels: &["verb"],
    whose: Whose::Process,
    help: "How long the store took for a call, until it was durable. Leases are not timed: they wait for work.",
};
const VERB_SIZES: Meter = Meter {
    name: "orchestrator_store_batch_size",
    kind: Kind::Histogram(Scale::Sizes),
    labels: &["verb"],
    whose: Whose::Process,
    help: "How much one call of the store carried: jobs, tasks, leases or outcomes.",
};

/// What the wrapper records.
pub const METERS: &[Meter] = &[
    SUBMITTED,
    SCHEDULED,
    COMPLETED,
    RETRIES,
    STALE,
    EXPIRED,
    OVERDUE,
    ERRORS,
    RUN_SECONDS,
    VERB_SECONDS,
    VERB_SIZES,
];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Meter {
    Meter { name, kind: Kind::Counter, labels, whose: Whose::Process, help }
}

/// So many pairs of task and handler have a series of their own.
const MOST_RETRIED: usize = 200;

/// The handles, looked up once.
pub struct Meters {
    pub submit: VerbMeters,
    pub lease: Histogram,
    pub extend: VerbMeters,
    pub settle: VerbMeters,
    pub expired: VerbMeters,
    pub control: VerbMeters,
    pub forget: VerbMeters,
    pub created: Counter,
    pub existing: Counter,
    pub conflict: Counter,
    pub scheduled: Counter,
    pub stale: Counter,
    pub expiries: Counter,
    pub overdue: Counter,
    pub run_seconds: Histogram,
    completed: Counter,
    skipped: Counter,
    failed: Counter,
    /// By task and handler. A retry is rare beside all else, so a lock does no harm.
    retries: Mutex<HashMap<(String, Arc<str>), Counter>>,
}

/// The handles of one verb.
pub struct VerbMeters {
    pub seconds: Histogram,
    pub size: Histogram,
}

impl VerbMeters {
    fn new(verb: &'static str) -> Self {
        VerbMeters {
            seconds: metrics::histogram!(VERB_SECONDS.name, "verb" => verb),
            size: metrics::histogram!(VERB_SIZES.name, "verb" => verb),
        }
    }
}

impl Meters {
    pub fn new() -> Self {
        let submitted = |result: &'static str| metrics::counter!(SUBMITTED.name, "result" => result);
        let ended = |status: &'static str| metrics::counter!(COMPLETED.name, "status" => status);
        Meters {
            submit: VerbMeters::new("submit"),
            lease: metrics::histogram!(VERB_SIZES.name, "verb" => "lease"),
            extend: VerbMeters::new("extend"),
            settle: VerbMeters::new("settle"),
            expired: VerbMeters::new("expired"),
            control: VerbMeters::new("control"),
            forget: VerbMeters::new("forget"),
            created: submitted("created"),
            existing: submitted("existing"),
            conflict: submitted("conflict"),
            scheduled: metrics::counter!(SCHEDULED.name),
            stale: metrics::counter!(STALE.name),
            expiries: metrics::counter!(EXPIRED.name),
            overdue: metrics::counter!(OVERDUE.name),
            run_seconds: metrics::histogram!(RUN_SECONDS.name),
            completed: ended("completed"),
            skipped: ended("skipped"),
            failed: ended("failed"),
            retries: Mutex::default(),
        }
    }

    /// Tasks entered their last state; those that only wait for another attempt are none.
    pub fn ended(&self, state: TaskState, count: u64) {
        match state {
            TaskState::Completed => self.completed.increment(count),
            TaskState::Skipped => self.skipped.increment(count),
            TaskState::Failed => self.failed.increment(count),
            _ => {}
        }
    }

    /// A task is tried again.
    pub fn retry(&self, leased: &Leased) {
        // The items of a for_each are one task as far as this goes.
        let task = leased.name.split('[').next().unwrap_or_default();
        let mut known = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (task.to_owned(), leased.spec.handler.clone());
        if let Some(counter) = known.get(&key) {
            return counter.increment(1);
        }
        let full = known.len() >= MOST_RETRIED;
        let (task, handler) = if full { ("other".to_owned(), "other".into()) } else { key.clone() };
        let counter =
            metrics::counter!(RETRIES.name, "task" => task.clone(), "handler" => handler.to_string());
        counter.increment(1);
        if !full {
            known.insert(key, counter);
        }
    }
}

/// The store did not carry a call out. Rare, so the handle is looked up each time.
pub fn failed(error: &StoreError) {
    metrics::counter!(ERRORS.name, "code" => error.code()).increment(1);
}
