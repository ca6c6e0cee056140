//! Where a task is: the tables say it, these types say it in memory.

use orchestrator_core::{Counters, DeadReason, Json, TaskState, Timestamp};
use std::sync::Arc;

/// A task somewhere, with what travels with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its lane.
    pub lane: i32,
    /// Its tier.
    pub tier: u8,
    /// What has happened to it.
    pub counters: Counters,
    /// What an earlier leg left.
    pub checkpoint: Option<Json>,
    /// Where it is.
    pub at: At,
}

/// The places.
#[derive(Clone, Debug, PartialEq)]
pub enum At {
    /// In line.
    Ready(Spot),
    /// In line, behind a limit key that was full.
    Parked(i32, Spot),
    /// Out of line until a moment.
    Delayed(Timestamp),
    /// Out of line until its job is resumed: with its place, or the moment for which it waits.
    Held(Option<Spot>, Option<Timestamp>),
    /// Held by a worker.
    Leased(Lease),
    /// Over.
    Ended(End),
}

/// A place in a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The stamp.
    pub stamp: i64,
    /// Since when it is in line.
    pub since: Timestamp,
}

/// A lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// How the task is run.
    pub spec: i32,
    /// The place that it had in line.
    pub spot: Spot,
    /// When it was granted.
    pub started: Timestamp,
    /// When it runs out.
    pub expires: Timestamp,
    /// When the attempt times out.
    pub times_out: Option<Timestamp>,
    /// Who holds it.
    pub worker: Arc<str>,
}

impl Lease {
    /// When a sweep ends it.
    pub fn overdue(&self) -> Timestamp {
        self.times_out.map_or(self.expires, |at| at.min(self.expires))
    }
}

/// An end.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// How.
    pub state: TaskState,
    /// When.
    pub at: Timestamp,
    /// With what.
    pub output: Option<Json>,
    /// Why it is in the dead letters, if it is.
    pub dead: Option<DeadReason>,
}

impl Placed {
    /// The lease, if a worker holds the task.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.at {
            At::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    /// The end, if the task is over.
    pub fn end(&self) -> Option<&End> {
        match &self.at {
            At::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// The state of the task.
    pub fn state(&self) -> TaskState {
        match &self.at {
            At::Ready(_) | At::Parked(..) => TaskState::Queued,
            At::Delayed(_) | At::Held(_, Some(_)) => orchestrator_core::decide::waiting_state(&self.counters),
            At::Held(..) => TaskState::Queued,
            At::Leased(_) => TaskState::Running,
            At::Ended(end) => end.state,
        }
    }
}
