//! What the catalog shows of a store as a whole: counts, days, queues, workers and limits.

use crate::verbs::{RuleOrigin, WorkerNote};
use orchestrator_core::{JobState, LimitKey, LimitRule, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Counts of everything, by line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// One entry per queue and handler that ever had work, in order of their names.
    pub lines: Vec<LineStats>,
}

/// Counts of one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LineStats {
    /// The queue.
    pub queue: Arc<str>,
    /// The handler.
    pub handler: Arc<str>,
    /// In line, ready to run.
    pub ready: u64,
    /// In line, waiting for room under a limit.
    pub parked: u64,
    /// Waiting for the moment at which they were asked to run.
    pub scheduled: u64,
    /// Waiting for their next attempt.
    pub retrying: u64,
    /// Held by workers.
    pub running: u64,
    /// Ended well.
    pub completed: u64,
    /// Ended with nothing to do.
    pub skipped: u64,
    /// Ended badly.
    pub failed: u64,
    /// Of those, in the dead letters: nobody has decided on them.
    #[serde(default)]
    pub dead: u64,
    /// Ended on request.
    pub cancelled: u64,
    /// Ended by their job's deadline.
    pub timed_out: u64,
    /// Waiting for their job to be resumed.
    pub paused: u64,
    /// When the oldest job that is ready or parked was taken in.
    pub oldest_queued: Option<Timestamp>,
    /// When the longest running attempt started.
    pub oldest_running: Option<Timestamp>,
    /// When the oldest dead letter arrived.
    pub oldest_failed: Option<Timestamp>,
}

impl LineStats {
    /// A line without work.
    pub fn new(queue: Arc<str>, handler: Arc<str>) -> Self {
        LineStats {
            queue,
            handler,
            ready: 0,
            parked: 0,
            scheduled: 0,
            retrying: 0,
            running: 0,
            completed: 0,
            skipped: 0,
            failed: 0,
            dead: 0,
            cancelled: 0,
            timed_out: 0,
            paused: 0,
            oldest_queued: None,
            oldest_running: None,
            oldest_failed: None,
        }
    }
}

/// Jobs of one day, by UTC. An end counts also where the job was taken up again after it, and what is counted stays
/// when jobs are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DayStats {
    /// The day, as `2026-11-16`.
    pub day: String,
    /// Jobs that were taken in.
    pub created: u64,
    /// Jobs that were taken up again after they had ended.
    #[serde(default)]
    pub reopened: u64,
    /// Jobs that ended on that day: well,
    pub completed: u64,
    /// badly,
    pub failed: u64,
    /// by their deadline,
    pub timed_out: u64,
    /// or on request.
    pub cancelled: u64,
}

impl DayStats {
    /// A day on which nothing has happened yet, by its number as [`Timestamp::day`] counts.
    pub fn new(day: i64) -> Self {
        let day: String = Timestamp::of_day(day).to_string().chars().take(10).collect();
        DayStats { day, ..DayStats::default() }
    }

    /// The number of the jobs that ended in a state; none for a state that is no end.
    pub fn ended(&mut self, state: JobState) -> Option<&mut u64> {
        match state {
            JobState::Completed => Some(&mut self.completed),
            JobState::Failed => Some(&mut self.failed),
            JobState::TimedOut => Some(&mut self.timed_out),
            JobState::Cancelled => Some(&mut self.cancelled),
            _ => None,
        }
    }
}

/// A queue that is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedQueue {
    /// Its name.
    pub queue: Arc<str>,
    /// Since when.
    pub since: Timestamp,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerView {
    /// What it told of itself.
    #[serde(flatten)]
    pub note: WorkerNote,
    /// When it was heard of first.
    pub first_seen: Timestamp,
    /// When it was heard of last.
    pub last_seen: Timestamp,
    /// How many tasks it holds.
    pub running: u64,
}

/// A limit key: its rule and its use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitView {
    /// The key, or a default such as `host:*`.
    pub key: LimitKey,
    /// The rule that applies to it.
    pub rule: LimitRule,
    /// Who wrote a rule for exactly this key; `None` where a default applies.
    pub origin: Option<RuleOrigin>,
    /// How many hold a slot now.
    pub running: u32,
}
