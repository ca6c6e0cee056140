//! The contract told as the plainest correct code in memory.
//!
//! A [`Model`] is what every store must look like from outside: maps that are scanned, counts that
//! are derived each time, no index that could disagree with the truth. It takes the time as an
//! argument and is a value, so that it can be cloned, compared and replayed. It must never be made
//! clever: what it says is what the conformance suite holds other stores to.
//!
//! [`ModelStore`] puts a clock and a lock around it and serves it through the store traits.

mod control;
mod invariants;
mod lease;
mod legal;
mod settle;
mod store;
mod submit;
mod views;

pub use store::ModelStore;

use crate::verbs::RuleOrigin;
use crate::views::{AttemptRecord, JournalEntry};
use orchestrator_core::decide::waiting_state;
use orchestrator_core::order::{Priority, enter};
use orchestrator_core::rate::Bucket;
use orchestrator_core::{
    Counters, DeadReason, Event, JobId, JobState, Json, LimitKey, LimitRule, Limits, TaskId, TaskSpec,
    TaskState, Timestamp, WorkerId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A whole store as a value.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Every job, by its number in order of submission, counted from 1.
    jobs: BTreeMap<u64, Job>,
    /// The job that each idempotency key names.
    keys: BTreeMap<IdemKey, u64>,
    /// Where each tenant's next task in a tier stands at the earliest.
    tenant_next: BTreeMap<(Tier, Arc<str>), i64>,
    /// The front of each tier: the highest stamp that was handed out.
    fronts: BTreeMap<Tier, i64>,
    /// When each line was served last, as a count of tasks handed out.
    served: BTreeMap<Line, u64>,
    rules: BTreeMap<LimitKey, (LimitRule, RuleOrigin)>,
    buckets: BTreeMap<LimitKey, Bucket>,
    journal: Vec<JournalEntry>,
}

/// A queue and a handler: where tasks stand in line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    queue: Arc<str>,
    handler: Arc<str>,
}

/// One tier of a line. Stamps are comparable inside it.
type Tier = (Line, u8);

/// Tenant, handler, text of the key, window.
type IdemKey = (Arc<str>, Arc<str>, Arc<str>, i64);

#[derive(Clone, Debug)]
struct Job {
    id: JobId,
    tenant: Arc<str>,
    key: Option<IdemKey>,
    created: Timestamp,
    priority: Priority,
    previous: Option<JobId>,
    spec: Arc<TaskSpec>,
    payload: Json,
    submitted_limits: Limits,
    limits: Limits,
    counters: Counters,
    checkpoint: Option<Json>,
    location: Location,
    history: Vec<AttemptRecord>,
}

/// Where the task of a job is; its state follows from that.
#[derive(Clone, Debug)]
enum Location {
    InLine(Spot),
    Waiting { due: Timestamp },
    Leased(Lease),
    Ended(End),
}

/// A place in line: lower stamps go first, `since` tells how long it has waited.
#[derive(Clone, Copy, Debug)]
struct Spot {
    stamp: i64,
    since: Timestamp,
}

#[derive(Clone, Debug)]
struct Lease {
    worker: WorkerId,
    started: Timestamp,
    expires: Timestamp,
    times_out: Option<Timestamp>,
    /// The place that it had, and gets back when it is given back.
    spot: Spot,
}

impl Lease {
    /// The moment from which on the attempt is overdue.
    fn overdue(&self) -> Timestamp {
        self.times_out.map_or(self.expires, |at| at.min(self.expires))
    }
}

#[derive(Clone, Debug)]
struct End {
    state: TaskState,
    at: Timestamp,
    output: Option<Json>,
    /// Why it is in the dead letters, and its last error.
    dead: Option<(DeadReason, String)>,
}

impl Job {
    fn task(&self) -> TaskId {
        TaskId::only(self.id)
    }

    fn line(&self) -> Line {
        Line { queue: self.spec.queue.clone(), handler: self.spec.handler.clone() }
    }

    fn tier(&self) -> Tier {
        (self.line(), self.priority.tier())
    }

    fn state(&self) -> TaskState {
        match &self.location {
            Location::InLine(_) => TaskState::Queued,
            Location::Waiting { .. } => waiting_state(&self.counters),
            Location::Leased(_) => TaskState::Running,
            Location::Ended(end) => end.state,
        }
    }

    fn job_state(&self) -> JobState {
        JobState::of_only_task(self.state(), self.counters.attempt > 0)
    }

    /// What the journal says about the task now.
    fn event(&self) -> Event {
        Event { task: self.task(), state: self.state(), attempt: self.counters.attempt }
    }

    fn spot(&self) -> Option<Spot> {
        match &self.location {
            Location::InLine(spot) => Some(*spot),
            _ => None,
        }
    }

    fn lease(&self) -> Option<&Lease> {
        match &self.location {
            Location::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    fn end(&self) -> Option<&End> {
        match &self.location {
            Location::Ended(end) => Some(end),
            _ => None,
        }
    }
}

impl Model {
    /// An empty store.
    pub fn new() -> Self {
        Model::default()
    }

    /// The number of a job that exists.
    fn seq(&self, id: JobId) -> Option<u64> {
        let seq = u64::try_from(id.free_bits()).ok()?;
        self.jobs.get(&seq).filter(|job| job.id == id).map(|_| seq)
    }

    fn at(&self, seq: u64) -> &Job {
        self.jobs.get(&seq).expect("numbers of jobs come from the map of jobs")
    }

    fn at_mut(&mut self, seq: u64) -> &mut Job {
        self.jobs.get_mut(&seq).expect("numbers of jobs come from the map of jobs")
    }

    /// The rule for a key: the exact one, else the default of its kind, else no limit.
    fn rule(&self, key: &LimitKey) -> LimitRule {
        let written = self.rules.get(key).or_else(|| self.rules.get(&key.default_key()));
        written.map(|(rule, _)| *rule).unwrap_or_default()
    }

    /// How many leases hold a slot of each key.
    fn running(&self) -> BTreeMap<LimitKey, u32> {
        let mut running = BTreeMap::new();
        for job in self.jobs.values().filter(|job| job.lease().is_some()) {
            for key in job.limits.keys() {
                *running.entry(key.clone()).or_default() += 1;
            }
        }
        running
    }

    /// Whether every key of the task has a free slot.
    fn has_slots(&self, job: &Job, running: &BTreeMap<LimitKey, u32>) -> bool {
        job.limits.keys().iter().all(|key| {
            let cap = self.rule(key).concurrency;
            cap.is_none_or(|cap| running.get(key).copied().unwrap_or(0) < cap)
        })
    }

    /// When the rates of all its keys allow the task to start.
    fn rates_allow_at(&self, job: &Job) -> Option<Timestamp> {
        let moment = |key| {
            let bucket = self.buckets.get(key).copied().unwrap_or_default();
            self.rule(key).rate.map(|rate| bucket.ready_at(&rate))
        };
        job.limits.keys().iter().filter_map(moment).max()
    }

    /// Puts a task in line as one that just came.
    fn enter_line(&mut self, seq: u64, now: Timestamp) {
        let tier = self.at(seq).tier();
        let front = self.fronts.get(&tier).copied().unwrap_or(0);
        let tenant = (tier, self.at(seq).tenant.clone());
        let place = enter(front, self.tenant_next.get(&tenant).copied().unwrap_or(0));
        self.tenant_next.insert(tenant, place.tenant_next);
        self.stand(seq, Spot { stamp: place.stamp, since: now });
    }

    /// Puts a task at a place in line.
    fn stand(&mut self, seq: u64, spot: Spot) {
        self.at_mut(seq).location = Location::InLine(spot);
    }

    /// Writes what a verb changed into the journal.
    fn commit(&mut self, events: Vec<Event>, now: Timestamp) {
        if !events.is_empty() {
            let n = self.journal.last().map_or(1, |entry| entry.n + 1);
            self.journal.push(JournalEntry { n, at: now, events });
        }
    }
}
