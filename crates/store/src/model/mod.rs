//! The contract told as the plainest correct code in memory.
//!
//! A [`Model`] is what every store must look like from outside: maps that are scanned, counts that
//! are derived each time, no index that could disagree with the truth. It takes the time as an
//! argument and is a value, so that it can be cloned, compared and replayed. It must never be made
//! clever: what it says is what the conformance suite holds other stores to.
//!
//! [`ModelStore`] puts a clock and a lock around it and serves it through the store traits.

mod control;
mod counts;
mod forget;
mod invariants;
mod job;
mod journal;
mod lease;
mod legal;
mod moves;
mod operate;
mod recover;
mod registry;
mod replay;
mod settle;
mod store;
mod submit;
mod views;

pub use replay::Told;
pub use store::ModelStore;

use crate::verbs::RuleOrigin;
use crate::views::{DayStats, WorkerView};
use job::{At, Job, Line, Location, Spot, Task, Tier};
use journal::Entry;
use orchestrator_core::order::enter;
use orchestrator_core::rate::Bucket;
use orchestrator_core::{
    Event, JobEvent, JobId, JobState, LimitKey, LimitRule, TaskEvent, TaskId, Timestamp,
};
use registry::{Registered, Timing};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A whole store as a value.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Every job, by its number in order of submission, counted from 1.
    jobs: BTreeMap<u64, Job>,
    /// The number of the newest job that there ever was.
    last: u64,
    /// The jobs that were removed.
    forgotten: BTreeMap<u64, JobId>,
    /// The job that each idempotency key names.
    keys: BTreeMap<IdemKey, u64>,
    /// Every version of every flow, by name and number.
    flows: BTreeMap<(Arc<str>, u32), Registered>,
    /// How long the tasks of a version took, by name, number and task.
    timings: BTreeMap<(Arc<str>, u32, u32), Timing>,
    /// Where each tenant's next task in a tier stands at the earliest: of new jobs, and of those that go on.
    tenant_next: BTreeMap<(Tier, Arc<str>, bool), i64>,
    /// The front of each tier: the highest stamp that was handed out.
    fronts: BTreeMap<Tier, i64>,
    /// When each line was served last, as a count of tasks handed out.
    served: BTreeMap<Line, u64>,
    rules: BTreeMap<LimitKey, (LimitRule, RuleOrigin)>,
    buckets: BTreeMap<LimitKey, Bucket>,
    /// Queues that are paused, and since when.
    paused: BTreeMap<Arc<str>, Timestamp>,
    /// What workers told of themselves, by name; how many tasks each holds is counted when it is asked for.
    workers: BTreeMap<Arc<str>, WorkerView>,
    /// What happened on each day.
    days: BTreeMap<i64, DayStats>,
    journal: Vec<Entry>,
    /// What the journal told in entries that were removed.
    told: Told,
    /// What the verb at hand has changed so far.
    events: Vec<Event>,
}

/// Tenant, handler or flow, text of the key, window.
type IdemKey = (Arc<str>, Arc<str>, Arc<str>, i64);

impl Model {
    /// An empty store.
    pub fn new() -> Self {
        Model::default()
    }

    /// Every job with its state, in order of submission.
    pub fn states(&self) -> impl Iterator<Item = (JobId, JobState)> {
        self.jobs.values().map(|job| (job.id, job.state()))
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

    /// Where a task is found that exists.
    fn find(&self, id: TaskId) -> Option<At> {
        let seq = self.seq(id.job)?;
        self.at(seq).tasks.contains_key(&id.index).then_some((seq, id.index))
    }

    fn task_at(&self, (seq, index): At) -> &Task {
        self.at(seq).tasks.get(&index).expect("indexes of tasks come from the job's tasks")
    }

    fn task_mut(&mut self, (seq, index): At) -> &mut Task {
        self.at_mut(seq).tasks.get_mut(&index).expect("indexes of tasks come from the job's tasks")
    }

    /// Every task of every job, in order.
    fn tasks(&self) -> impl Iterator<Item = (At, &Job, &Task)> {
        self.jobs
            .iter()
            .flat_map(|(seq, job)| job.tasks.iter().map(move |(index, task)| ((*seq, *index), job, task)))
    }

    /// The rule for a key: the exact one, else the default of its kind, else no limit.
    fn rule(&self, key: &LimitKey) -> LimitRule {
        let written = self.rules.get(key).or_else(|| self.rules.get(&key.default_key()));
        written.map(|(rule, _)| *rule).unwrap_or_default()
    }

    /// How many leases hold a slot of each key.
    fn running(&self) -> BTreeMap<LimitKey, u32> {
        let mut running = BTreeMap::new();
        for (_, _, task) in self.tasks().filter(|(_, _, task)| task.lease().is_some()) {
            for key in task.limits.keys() {
                *running.entry(key.clone()).or_default() += 1;
            }
        }
        running
    }

    /// Whether every key of the task has a free slot.
    fn has_slots(&self, task: &Task, running: &BTreeMap<LimitKey, u32>) -> bool {
        task.limits.keys().iter().all(|key| {
            let cap = self.rule(key).concurrency;
            cap.is_none_or(|cap| running.get(key).copied().unwrap_or(0) < cap)
        })
    }

    /// When the rates of all its keys allow the task to start.
    fn rates_allow_at(&self, task: &Task) -> Option<Timestamp> {
        let moment = |key| {
            let bucket = self.buckets.get(key).copied().unwrap_or_default();
            self.rule(key).rate.map(|rate| bucket.ready_at(&rate))
        };
        task.limits.keys().iter().filter_map(moment).max()
    }

    /// Puts a task in line as one that just came.
    fn enter_line(&mut self, at: At, now: Timestamp) {
        let job = self.at(at.0);
        let tier = job.tier(at.1);
        let front = self.fronts.get(&tier).copied().unwrap_or(0);
        let tenant = (tier, job.tenant.clone(), job.header && job.run.continues());
        let place = enter(front, self.tenant_next.get(&tenant).copied().unwrap_or(0));
        self.tenant_next.insert(tenant, place.tenant_next);
        self.task_mut(at).location = Location::InLine(Spot { stamp: place.stamp, since: now });
    }

    /// Notes the state that a task has entered.
    fn tell_task(&mut self, at: At) {
        let (job, task) = (self.at(at.0), self.task_at(at));
        let event =
            TaskEvent { task: job.task_id(at.1), state: task.state(), attempt: task.counters.attempt };
        self.events.push(Event::Task(event));
    }

    /// Notes a state that a job has entered. The one task of a job without a header tells it all.
    fn tell_job(&mut self, seq: u64, state: JobState) {
        let job = self.at(seq);
        if job.header {
            let event = JobEvent { job: job.id, state };
            self.events.push(Event::Job(event));
        }
    }

    /// Writes what the verb changed into the journal.
    fn commit(&mut self, now: Timestamp) {
        let events = std::mem::take(&mut self.events);
        if !events.is_empty() {
            let n = self.journal.last().map_or(1, |entry| entry.n + 1);
            self.journal.push(Entry { n, at: now, events });
        }
    }
}
