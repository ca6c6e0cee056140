//! What the catalog shows.

mod overview;
#[cfg(test)]
mod tests;

pub use overview::*;

use orchestrator_core::flow::Plan;
use orchestrator_core::{
    Counters, DeadReason, Document, ErrorClass, JobId, JobState, Json, Limits, Meta, Millis, Priority,
    TaskId, TaskSpec, TaskState, Timestamp, WorkerId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
    /// What it carries along.
    pub meta: Meta,
    /// The document that is kept with it.
    pub document: Option<DocumentView>,
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

    /// The task of a name; items are not among them.
    pub fn task_named(&self, name: &str) -> Option<&TaskView> {
        self.tasks.iter().find(|task| *task.name == *name)
    }

    /// The index that a number or `label[3]`, the item of a task, means.
    pub fn index_of(&self, text: &str) -> Option<u32> {
        if let Ok(index) = text.parse() {
            return Some(index);
        }
        let (name, item) = text.strip_suffix(']')?.split_once('[')?;
        let item: u32 = item.parse().ok()?;
        let items = self.task_named(name)?.items?;
        (item < items.count).then(|| items.first + item)
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

    /// Whether its context has a field with a value.
    pub fn has_context(&self, field: &str, value: &Json) -> bool {
        self.meta.has_context(field, value)
    }

    /// Whether it ended badly and may be recovered.
    pub fn is_recoverable(&self) -> bool {
        matches!(self.state, JobState::Failed | JobState::TimedOut) && self.recoveries < self.max_recoveries
    }
}

/// A document that is kept with a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DocumentView {
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub media_type: Arc<str>,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: Arc<str>,
}

impl DocumentView {
    /// What is shown of a document.
    pub fn of(document: &Document) -> DocumentView {
        DocumentView {
            name: document.name().clone(),
            media_type: document.media_type().clone(),
            size: document.content().len() as u64,
            sha256: document.sha256().clone(),
        }
    }
}

/// One version of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FlowRef {
    /// Its name.
    pub name: Arc<str>,
    /// Its number, from 1.
    pub version: u32,
    /// The hash of its content.
    pub hash: Arc<str>,
}

/// A flow in the registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(from = "FlatFlow")]
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

/// A flow as it is read: JSON that is carried as text cannot be read beside fields that are flattened.
#[derive(Deserialize)]
struct FlatFlow {
    name: Arc<str>,
    version: u32,
    hash: Arc<str>,
    created: Timestamp,
    current: bool,
    definition: Json,
}

impl From<FlatFlow> for FlowView {
    fn from(flat: FlatFlow) -> Self {
        let FlatFlow { name, version, hash, created, current, definition } = flat;
        FlowView { flow: FlowRef { name, version, hash }, created, current, definition }
    }
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
    /// Only those that were taken in at this moment or later.
    pub created_from: Option<Timestamp>,
    /// Only those that were taken in before this moment.
    pub created_before: Option<Timestamp>,
    /// Only those whose context has each of these fields with this value.
    pub context: Vec<(Arc<str>, Json)>,
    /// The newest first, where else the oldest are.
    pub newest_first: bool,
}

impl JobFilter {
    /// Whether a job is to be listed that was taken in at a moment, as far as that goes.
    pub fn came_in_time(&self, created: Timestamp) -> bool {
        self.created_from.is_none_or(|from| created >= from)
            && self.created_before.is_none_or(|before| created < before)
    }

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
            && self.came_in_time(job.created)
            && self.context.iter().all(|(field, value)| job.has_context(field, value))
    }
}

/// A failed task that waits for somebody's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
