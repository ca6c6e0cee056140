//! The registry of flows, and what past runs tell of them.

use super::Model;
use super::job::Job;
use crate::verbs::{FlowChange, FlowChanged};
use crate::views::{FlowRef, FlowView};
use orchestrator_core::flow::Plan;
use orchestrator_core::{Json, Millis, Timestamp};
use std::sync::Arc;

/// One version of a flow.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    plan: Arc<Plan>,
    created: Timestamp,
    current: bool,
}

/// How long the attempts that completed a task took, and how many they were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timing {
    total: Millis,
    n: u64,
}

impl Model {
    /// Changes the registry.
    pub fn change_flows(&mut self, changes: Vec<FlowChange>, now: Timestamp) -> Vec<FlowChanged> {
        let mut change = |change| match change {
            FlowChange::Apply(plan) => self.apply_flow(&plan, now),
            FlowChange::Retire(name) => match self.make_current(&name, None) {
                Some(_) => FlowChanged::Retired,
                None => FlowChanged::NotFound,
            },
        };
        changes.into_iter().map(&mut change).collect()
    }

    fn apply_flow(&mut self, plan: &Arc<Plan>, now: Timestamp) -> FlowChanged {
        let known = self.version_of(plan);
        let version = self.register(plan, now);
        let before = self.make_current(plan.name(), Some(version));
        match known {
            None => FlowChanged::Created(version),
            Some(_) if before == Some(version) => FlowChanged::Unchanged(version),
            Some(_) => FlowChanged::Restored(version),
        }
    }

    /// The version of a flow, which is a new one if its content is not known yet.
    pub(super) fn register(&mut self, plan: &Arc<Plan>, now: Timestamp) -> u32 {
        self.version_of(plan).unwrap_or_else(|| {
            let version = self.versions(plan.name()).map(|(version, _)| version).max().unwrap_or(0) + 1;
            let registered = Registered { plan: plan.clone(), created: now, current: false };
            self.flows.insert((plan.name().clone(), version), registered);
            version
        })
    }

    /// Makes a version the only current one of its name, or none. Says which was before.
    fn make_current(&mut self, name: &str, current: Option<u32>) -> Option<u32> {
        let mut before = None;
        for ((_, version), registered) in self.flows.iter_mut().filter(|((other, _), _)| **other == *name) {
            before = before.or(registered.current.then_some(*version));
            registered.current = current == Some(*version);
        }
        before
    }

    fn version_of(&self, plan: &Plan) -> Option<u32> {
        let mut versions = self.versions(plan.name());
        versions.find(|(_, registered)| registered.plan.hash() == plan.hash()).map(|(version, _)| version)
    }

    fn versions(&self, name: &str) -> impl Iterator<Item = (u32, &Registered)> {
        let of_name = move |((other, _), _): &(&(Arc<str>, u32), &Registered)| **other == *name;
        self.flows.iter().filter(of_name).map(|((_, version), registered)| (*version, registered))
    }

    /// The current version of every flow, or every version of one.
    pub fn flows(&self, name: Option<&str>) -> Vec<FlowView> {
        let wanted = |other: &str, registered: &Registered| match name {
            Some(name) => other == name,
            None => registered.current,
        };
        let all = self.flows.iter().filter(|((other, _), registered)| wanted(other, registered));
        all.map(|((_, version), registered)| registered.view(*version)).collect()
    }

    /// One version of a flow; without a number, the current one.
    pub fn flow(&self, name: &str, version: Option<u32>) -> Option<FlowView> {
        let wanted = |(number, registered): &(u32, &Registered)| match version {
            Some(version) => *number == version,
            None => registered.current,
        };
        self.versions(name).find(wanted).map(|(number, registered)| registered.view(number))
    }

    /// Counts the attempt that completed a task into the mean of its flow's version.
    pub(super) fn note_time(&mut self, seq: u64, index: u32, took: Millis) {
        let job = self.at(seq);
        if let Some(version) = job.version {
            let key = (job.plan.name().clone(), version, job.plan_task(index));
            let timing = self.timings.entry(key).or_default();
            timing.total = Millis(timing.total.0 + took.0);
            timing.n += 1;
        }
    }

    /// How long a task took in past runs of its flow's version, on average.
    pub(super) fn usual(&self, job: &Job, index: u32) -> Option<Millis> {
        let key = (job.plan.name().clone(), job.version?, job.plan_task(index));
        self.timings.get(&key).map(|timing| Millis(timing.total.0 / timing.n))
    }
}

impl Registered {
    fn view(&self, version: u32) -> FlowView {
        FlowView {
            flow: flow_ref(&self.plan, version),
            created: self.created,
            current: self.current,
            definition: Json::trusted(self.plan.text().clone()),
        }
    }
}

pub(super) fn flow_ref(plan: &Plan, version: u32) -> FlowRef {
    FlowRef { name: plan.name().clone(), version, hash: plan.hash().clone() }
}
