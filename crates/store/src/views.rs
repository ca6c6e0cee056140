//! What the catalog shows.

use crate::verbs::RuleOrigin;
use orchestrator_core::flow::Plan;
use orchestrator_core::{
    Counters, DeadReason, ErrorClass, Event, JobId, JobState, Json, LimitKey, LimitRule, Limits, Millis,
    Priority, TaskId, TaskSpec, TaskState, Timestamp, WorkerId,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// The flow that it runs; a job of a queue has none.
    pub flow: Option<FlowRef>,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The caller's key.
    pub key: Option<Arc<str>>,
    /// When it was taken in.
    pub created: Timestamp,
    /// When its first task started. Of a job of a queue that never was paused and waited for none, only while
    /// it runs: when the attempt at hand did.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// When its time is up; none while its clock stands still and after its end.
    pub deadline: Option<Timestamp>,
    /// How urgent it is.
    pub priority: Priority,
    /// The job that it repeats, or the earlier one with the same key that ended badly.
    pub previous: Option<JobId>,
    /// The jobs that it waits for.
    pub waits_for: Vec<JobId>,
    /// How often it was recovered.
    pub recoveries: u32,
    /// How often it may be.
    pub max_recoveries: u32,
    /// Why it ended as it did, where no task tells.
    pub reason: Option<String>,
    /// What was submitted.
    pub payload: Json,
    /// What came of it, if it completed.
    pub output: Option<Json>,
    /// The tasks of its flow, in order; a job of a queue has one. Items of a `for_each` are not among them.
    pub tasks: Vec<TaskView>,
}

impl JobView {
    /// The first task: of a job of a queue, the only one.
    pub fn task(&self) -> &TaskView {
        &self.tasks[0]
    }

    /// The output of a job whose flow defines none: that of its last task, or of several an object by name.
    pub fn output_of(plan: &Plan, tasks: &[TaskView]) -> Option<Json> {
        let output = |sink: &u32| tasks.get(*sink as usize).and_then(|task| task.output.clone());
        if let [sink] = plan.sinks() {
            return output(sink);
        }
        let field = |sink: &u32| (plan.tasks()[*sink as usize].name.to_string(), output(sink));
        let fields: BTreeMap<String, Option<Json>> = plan.sinks().iter().map(field).collect();
        // Names and JSON texts are what JSON can hold.
        Json::of(&fields).ok()
    }

    /// Whether it ended badly and may be recovered.
    pub fn is_recoverable(&self) -> bool {
        matches!(self.state, JobState::Failed | JobState::TimedOut) && self.recoveries < self.max_recoveries
    }
}

/// One version of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowRef {
    /// Its name.
    pub name: Arc<str>,
    /// Its number, from 1.
    pub version: u32,
    /// The hash of its content.
    pub hash: Arc<str>,
}

/// A flow in the registry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowView {
    /// Which version.
    #[serde(flatten)]
    pub flow: FlowRef,
    /// When it was written.
    pub created: Timestamp,
    /// Whether jobs that name only the flow get this version.
    pub current: bool,
    /// The definition: its canonical text.
    pub definition: Json,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskView {
    /// Its place in the job.
    pub index: u32,
    /// Its name in the flow; of an item, with the item's number. The task of a queue's job is called `main`.
    pub name: Arc<str>,
    /// How it is run.
    pub spec: Arc<TaskSpec>,
    /// Where it stands.
    pub state: TaskState,
    /// What has happened to it.
    pub counters: Counters,
    /// The limits under which it runs, or ran last.
    pub limits: Limits,
    /// What its handler gets, once that is known.
    pub input: Option<Json>,
    /// What an earlier leg left.
    pub checkpoint: Option<Json>,
    /// Who holds it, while it runs.
    pub worker: Option<WorkerId>,
    /// When the attempt that runs was started.
    pub started: Option<Timestamp>,
    /// When its lease runs out, while it runs.
    pub expires: Option<Timestamp>,
    /// When it falls due, while it waits for a moment.
    pub due: Option<Timestamp>,
    /// Since when it is in line.
    pub since: Option<Timestamp>,
    /// Whether it waits only for room under its limits.
    pub parked: bool,
    /// Whether it waits only for its job to be resumed.
    pub held: bool,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Its result, if it ended well.
    pub output: Option<Json>,
    /// Why it is in the dead letters.
    pub dead: Option<DeadReason>,
    /// What it was expanded into.
    pub items: Option<ItemsView>,
    /// How long it took in past runs of this version, on average.
    pub usual: Option<Millis>,
    /// Attempts that did not end well, and stale writes, oldest first.
    pub history: Vec<AttemptRecord>,
}

impl TaskView {
    /// A task that waits for what it needs.
    pub fn pending(index: u32, name: Arc<str>, spec: Arc<TaskSpec>) -> TaskView {
        TaskView {
            index,
            name,
            spec,
            state: TaskState::Pending,
            counters: Counters::default(),
            limits: Limits::none(),
            input: None,
            checkpoint: None,
            worker: None,
            started: None,
            expires: None,
            due: None,
            since: None,
            parked: false,
            held: false,
            ended: None,
            output: None,
            dead: None,
            items: None,
            usual: None,
            history: vec![],
        }
    }

    /// The output of an expanded task: the list of its items' outputs.
    pub fn output_of_items(outputs: impl IntoIterator<Item = Option<Json>>) -> Json {
        // JSON texts are what JSON can hold.
        Json::of(&outputs.into_iter().collect::<Vec<_>>()).unwrap_or_default()
    }
}

/// What a `for_each` was expanded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ItemsView {
    /// The index of the first item.
    pub first: u32,
    /// How many items.
    pub count: u32,
    /// How many have ended.
    pub ended: u32,
    /// How many of those failed.
    pub failed: u32,
    /// How many are held by workers.
    pub running: u32,
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
    /// Only with a task of these lines.
    pub line: LineFilter,
    /// Only with a task in this state.
    pub task: Option<TaskState>,
    /// Only in one of these states; in any, where there are none.
    pub states: Vec<JobState>,
    /// Only of this flow.
    pub flow: Option<Arc<str>>,
    /// Only those that may be recovered.
    pub recoverable: bool,
    /// The newest first, where else the oldest are.
    pub newest_first: bool,
}

impl JobFilter {
    /// Whether a job is to be listed.
    pub fn takes(&self, job: &JobView) -> bool {
        let in_line = |task: &TaskView| {
            self.line.queue.as_ref().is_none_or(|queue| *queue == task.spec.queue)
                && self.line.handler.as_ref().is_none_or(|handler| *handler == task.spec.handler)
        };
        job.tasks.iter().any(in_line)
            && self.task.is_none_or(|state| job.tasks.iter().any(|task| task.state == state))
            && (self.states.is_empty() || self.states.contains(&job.state))
            && self.flow.as_ref().is_none_or(|name| job.flow.as_ref().is_some_and(|flow| flow.name == *name))
            && (!self.recoverable || job.is_recoverable())
    }
}

/// A failed task that waits for somebody's decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadLetter {
    /// The task.
    pub task: TaskId,
    /// Its name, as in [`TaskView::name`].
    pub name: Arc<str>,
    /// The flow that it belongs to.
    pub flow: Option<Arc<str>>,
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
    /// Ended badly.
    pub failed: u64,
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
            cancelled: 0,
            timed_out: 0,
            paused: 0,
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
