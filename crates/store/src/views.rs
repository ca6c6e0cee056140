//! What the catalog shows.

use crate::verbs::RuleOrigin;
use orchestrator_core::{
    Counters, DeadReason, ErrorClass, Event, JobId, JobState, Json, LimitKey, LimitRule, Limits, Priority,
    TaskSpec, TaskState, Timestamp, WorkerId,
};
use serde::Serialize;
use std::sync::Arc;

/// One job of a single task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The caller's key.
    pub key: Option<Arc<str>>,
    /// When it was taken in.
    pub created: Timestamp,
    /// How urgent it is.
    pub priority: Priority,
    /// The earlier job with the same key that ended badly.
    pub previous: Option<JobId>,
    /// How its task is run.
    pub spec: Arc<TaskSpec>,
    /// What its handler gets.
    pub payload: Json,
    /// Its task.
    pub task: TaskView,
    /// Attempts that did not end well, and stale writes, oldest first.
    pub history: Vec<AttemptRecord>,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskView {
    /// Where it stands.
    pub state: TaskState,
    /// What has happened to it.
    pub counters: Counters,
    /// The limits under which it runs, or ran last.
    pub limits: Limits,
    /// What an earlier leg left.
    pub checkpoint: Option<Json>,
    /// Who holds it, while it runs.
    pub worker: Option<WorkerId>,
    /// When its lease runs out, while it runs.
    pub expires: Option<Timestamp>,
    /// When it falls due, while it waits for a moment.
    pub due: Option<Timestamp>,
    /// Whether it waits only for room under its limits.
    pub parked: bool,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Its result, if it ended well.
    pub output: Option<Json>,
    /// Why it is in the dead letters.
    pub dead: Option<DeadReason>,
}

/// The record of an attempt that did not end well.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptRecord {
    /// Its number.
    pub attempt: u32,
    /// When it ended, or when the stale write came.
    pub at: Timestamp,
    /// How it ended.
    pub how: AttemptEnd,
    /// What went wrong, for people.
    pub message: String,
}

/// How a recorded attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// With an error.
    Failed(ErrorClass),
    /// Its worker vanished.
    Lost,
    /// It wrote after it had lost its lease; the write changed nothing.
    Stale,
}

/// Where a page starts, and how long it is.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The last job of the page before.
    pub after: Option<JobId>,
    /// At most so many.
    pub limit: u32,
}

/// Restricts to a queue, a handler, or both.
#[derive(Clone, Debug, Default)]
pub struct LineFilter {
    /// Only this queue.
    pub queue: Option<Arc<str>>,
    /// Only this handler.
    pub handler: Option<Arc<str>>,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Only of these lines.
    pub line: LineFilter,
    /// Only with a task in this state.
    pub state: Option<TaskState>,
}

/// A failed task that waits for somebody's decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadLetter {
    /// The job.
    pub job: JobId,
    /// The caller's key.
    pub key: Option<Arc<str>>,
    /// Its queue.
    pub queue: Arc<str>,
    /// Its handler.
    pub handler: Arc<str>,
    /// Why it is here.
    pub reason: DeadReason,
    /// Since when.
    pub at: Timestamp,
    /// What has happened to it.
    pub counters: Counters,
    /// Its last error.
    pub message: String,
}

/// Counts of everything, by line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// One entry per queue and handler that ever had work, in order of their names.
    pub lines: Vec<LineStats>,
}

/// Counts of one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// In the dead letters.
    pub failed: u64,
    /// Ended on request.
    pub cancelled: u64,
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
            cancelled: 0,
            oldest_queued: None,
            oldest_running: None,
            oldest_failed: None,
        }
    }
}

/// A limit key: its rule and its use.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

/// One commit of the journal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JournalEntry {
    /// Its number; numbers rise, later commits have later numbers.
    pub n: i64,
    /// When it was committed.
    pub at: Timestamp,
    /// What changed, in order.
    pub events: Vec<Event>,
}
