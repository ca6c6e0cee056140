//! A job of the model, and where its tasks are.

use super::IdemKey;
use crate::views::AttemptRecord;
use orchestrator_core::decide::waiting_state;
use orchestrator_core::flow::Plan;
use orchestrator_core::flow::plan::TaskPlan;
use orchestrator_core::flow::run::Run;
use orchestrator_core::order::Priority;
use orchestrator_core::{
    Counters, DeadReason, Document, JobId, JobState, Json, Limits, Meta, TaskId, TaskState, Timestamp,
    WorkerId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a task is found: the number of its job, and its index in it.
pub(super) type At = (u64, u32);

/// A queue and a handler: where tasks stand in line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub queue: Arc<str>,
    pub handler: Arc<str>,
}

/// One tier of a line. Stamps are comparable inside it.
pub(super) type Tier = (Line, u8);

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub id: JobId,
    pub tenant: Arc<str>,
    pub key: Option<IdemKey>,
    pub created: Timestamp,
    pub priority: Priority,
    pub previous: Option<JobId>,
    pub payload: Json,
    pub meta: Arc<Meta>,
    pub document: Option<Document>,
    pub run_at: Option<Timestamp>,
    /// What it runs; behind a job of a queue, the flow of its one task.
    pub plan: Arc<Plan>,
    /// The version of the flow, for a job of a flow.
    pub version: Option<u32>,
    /// Whether it is told of as a job of its own. A job of a queue is not until it has to be: when it
    /// waits for others or is paused. Up to then all that is seen of it is its task.
    pub header: bool,
    pub run: Run,
    /// The jobs that must complete before it begins.
    pub waits_for: BTreeSet<u64>,
    /// The output that its flow defines.
    pub output: Option<Json>,
    /// The tasks of the plan, and behind them the items that those were expanded into.
    pub tasks: BTreeMap<u32, Task>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Task {
    /// What it came to life with; nothing before.
    pub released: Option<Released>,
    /// The limits under which it runs: its own, or those of the leg that it is at.
    pub limits: Limits,
    pub counters: Counters,
    pub checkpoint: Option<Json>,
    pub location: Location,
    pub history: Vec<AttemptRecord>,
}

#[derive(Clone, Debug)]
pub(super) struct Released {
    /// What its handler gets, where that is neither in the plan nor the job's payload.
    pub payload: Option<Json>,
    pub limits: Limits,
}

/// Where a task is; its state follows from that.
#[derive(Clone, Debug, Default)]
pub(super) enum Location {
    /// Not let in yet: it needs others, or waits behind the others of its `for_each`.
    #[default]
    Pending,
    InLine(Spot),
    Waiting {
        due: Timestamp,
    },
    /// Out of line because its job is paused, with the place or the moment that it had.
    Held {
        spot: Option<Spot>,
        due: Option<Timestamp>,
    },
    Leased(Lease),
    /// It has become its items.
    Expanded,
    Ended(End),
}

/// A place in line: lower stamps go first, `since` tells how long it has waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub stamp: i64,
    pub since: Timestamp,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub worker: WorkerId,
    pub started: Timestamp,
    pub expires: Timestamp,
    pub times_out: Option<Timestamp>,
    /// The place that it had, and gets back when it is given back.
    pub spot: Spot,
}

impl Lease {
    /// The moment from which on the attempt is overdue.
    pub fn overdue(&self) -> Timestamp {
        self.times_out.map_or(self.expires, |at| at.min(self.expires))
    }
}

#[derive(Clone, Debug)]
pub(super) struct End {
    pub state: TaskState,
    pub at: Timestamp,
    pub output: Option<Json>,
    /// Why it is in the dead letters, and its last error.
    pub dead: Option<(DeadReason, String)>,
}

impl End {
    /// An end that leaves nothing.
    pub fn plain(state: TaskState, at: Timestamp) -> End {
        End { state, at, output: None, dead: None }
    }
}

impl Job {
    pub fn state(&self) -> JobState {
        self.run.state
    }

    pub fn task_id(&self, index: u32) -> TaskId {
        TaskId { job: self.id, index }
    }

    /// The task of the plan that stands at an index.
    pub fn plan_task(&self, index: u32) -> u32 {
        self.run.place(index).expect("tasks stand where the run says").task
    }

    /// How the task at an index is run.
    pub fn rules(&self, index: u32) -> &TaskPlan {
        &self.plan.tasks()[self.plan_task(index) as usize]
    }

    /// The task's name; of an item, with its number.
    pub fn name(&self, index: u32) -> Arc<str> {
        let name = &self.rules(index).name;
        match self.run.place(index).and_then(|place| place.item) {
            Some(n) => format!("{name}[{n}]").into(),
            None => name.clone(),
        }
    }

    /// The flow's name, where somebody defined it.
    pub fn flow(&self) -> Option<Arc<str>> {
        (!self.plan.is_implicit()).then(|| self.plan.name().clone())
    }

    pub fn line(&self, index: u32) -> Line {
        let spec = &self.rules(index).spec;
        Line { queue: spec.queue.clone(), handler: spec.handler.clone() }
    }

    pub fn tier(&self, index: u32) -> Tier {
        (self.line(index), self.rules(index).priority.unwrap_or(self.priority).tier())
    }

    /// What the handler of a task gets, once that is known.
    pub fn input(&self, index: u32) -> Option<Json> {
        if self.plan.is_implicit() {
            return Some(self.payload.clone());
        }
        let released = self.tasks.get(&index)?.released.as_ref()?;
        let written = || self.rules(index).literal.clone();
        Some(released.payload.clone().or_else(written).unwrap_or_else(|| self.payload.clone()))
    }

    pub fn is_busy(&self) -> bool {
        self.tasks.values().any(|task| task.lease().is_some())
    }
}

impl Task {
    pub fn state(&self) -> TaskState {
        match &self.location {
            Location::Pending => TaskState::Pending,
            Location::InLine(_) | Location::Held { due: None, .. } => TaskState::Queued,
            Location::Waiting { .. } | Location::Held { due: Some(_), .. } => waiting_state(&self.counters),
            Location::Leased(_) | Location::Expanded => TaskState::Running,
            Location::Ended(end) => end.state,
        }
    }

    pub fn spot(&self) -> Option<Spot> {
        match &self.location {
            Location::InLine(spot) => Some(*spot),
            _ => None,
        }
    }

    pub fn due(&self) -> Option<Timestamp> {
        match &self.location {
            Location::Waiting { due } => Some(*due),
            Location::Held { due, .. } => *due,
            _ => None,
        }
    }

    pub fn lease(&self) -> Option<&Lease> {
        match &self.location {
            Location::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    pub fn end(&self) -> Option<&End> {
        match &self.location {
            Location::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Whether it has come to life and not ended. An item that waits behind the others counts, an expanded
    /// task does not: its items do.
    pub fn is_alive(&self) -> bool {
        match &self.location {
            Location::Pending => self.released.is_some(),
            Location::InLine(_) | Location::Waiting { .. } | Location::Held { .. } | Location::Leased(_) => {
                true
            }
            Location::Expanded | Location::Ended(_) => false,
        }
    }
}

/// The counters of a task that has not been tried since it was let in or reset.
pub(super) fn fresh(attempt: u32) -> Counters {
    Counters { attempt, ..Counters::default() }
}
