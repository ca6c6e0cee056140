//! Requests and answers of the verbs.

use orchestrator_core::flow::Plan;
use orchestrator_core::flow::advance::NoRecovery;
use orchestrator_core::{
    Counters, DeadReason, JobId, JobState, Json, LimitKey, LimitRule, Limits, Meta, Millis, Outcome, TaskId,
    TaskSpec, TaskState, Timestamp, WorkerId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What came of one submitted job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Submitted {
    /// A new job.
    Created {
        /// Its id.
        id: JobId,
        /// The job that had the key before and ended badly.
        previous: Option<JobId>,
    },
    /// The key has a job already, with the same payload and document.
    Existing {
        /// The job.
        id: JobId,
        /// Where it stands.
        state: JobState,
    },
    /// The key has a job already, with another payload or document. Nothing was taken in.
    Conflict {
        /// The job.
        id: JobId,
    },
}

impl Submitted {
    /// The job that now stands for the submit.
    pub fn id(&self) -> JobId {
        match self {
            Submitted::Created { id, .. } | Submitted::Existing { id, .. } | Submitted::Conflict { id } => {
                *id
            }
        }
    }
}

/// A worker's wish for tasks.
#[derive(Clone, Debug)]
pub struct LeaseAsk {
    /// Who asks.
    pub worker: WorkerId,
    /// The queues that it serves.
    pub queues: Vec<Arc<str>>,
    /// The handlers that it has.
    pub handlers: Vec<Arc<str>>,
    /// At most so many tasks.
    pub slots: u32,
    /// How long the leases hold without a heartbeat.
    pub ttl: Millis,
    /// How long the store may keep the ask while it has nothing to hand out and knows of nothing
    /// that time alone will make ready, so that the commit that brings work can hand it out too.
    /// A hint: a store may answer with nothing at once.
    pub hold: Millis,
}

/// The answer to a [`LeaseAsk`].
#[derive(Clone, Debug, Default)]
pub struct LeaseGrant {
    /// The tasks, best first.
    pub tasks: Vec<Leased>,
    /// When the passing of time alone may make another task ready for this ask: one falls due or a
    /// rate allows it.
    pub next_at: Option<Timestamp>,
}

/// One leased task, with all that a worker needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Leased {
    /// The task.
    pub task: TaskId,
    /// Its name in the flow; of an item, with the item's number. The task of a queue's job is called `main`.
    pub name: Arc<str>,
    /// The flow that it belongs to.
    pub flow: Option<Arc<str>>,
    /// Its counters; `counters.attempt` is the attempt that this lease holds.
    pub counters: Counters,
    /// How it is run.
    pub spec: Arc<TaskSpec>,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// The caller's key.
    pub key: Option<Arc<str>>,
    /// What the handler gets.
    pub payload: Json,
    /// What an earlier leg left ([`Outcome::Continue`]).
    pub checkpoint: Option<Json>,
    /// The limits whose slots the lease holds.
    pub limits: Limits,
    /// What its job carries along.
    pub meta: Arc<Meta>,
    /// When the lease runs out without a heartbeat.
    pub expires: Timestamp,
    /// When the attempt times out.
    pub times_out: Option<Timestamp>,
}

impl Leased {
    /// What fences the attempt.
    pub fn held(&self) -> Held {
        Held { task: self.task, attempt: self.counters.attempt }
    }
}

/// A claim to hold a lease: the task and the attempt's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Held {
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Beat {
    /// The lease holds until then.
    Until(Timestamp),
    /// The lease is gone: stop the work, its result will not be taken.
    Lost,
}

/// The end of one attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// Which attempt.
    pub held: Held,
    /// How it ended.
    pub outcome: Outcome,
    /// Random in `[0, 1)`, spreads retries.
    pub jitter: f64,
}

/// What came of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It was taken.
    Applied {
        /// The state that the task entered.
        state: TaskState,
        /// When the next attempt falls due, where the task waits for one.
        due: Option<Timestamp>,
        /// Why the task went to the dead letters, where it did.
        dead: Option<DeadReason>,
        /// Whether the job has ended with it.
        job_ended: bool,
    },
    /// The attempt does not hold the lease: nothing changed.
    Stale,
}

impl Settled {
    /// The state that the task entered, if the settlement was taken.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Settled::Applied { state, .. } => Some(*state),
            Settled::Stale => None,
        }
    }
}

/// A look for overdue attempts.
#[derive(Clone, Copy, Debug)]
pub struct SweepAsk {
    /// At most so many.
    pub limit: u32,
    /// Random in `[0, 1)`, spreads the retries of what timed out.
    pub jitter: f64,
}

impl SweepAsk {
    /// The jitter of the `n`-th task of a sweep: evenly spread from the one random number.
    pub fn jitter_of(&self, n: usize) -> f64 {
        (self.jitter + n as f64 * 0.618_033_988_749_895).fract()
    }
}

/// What a sweep ended.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Each attempt and what came of it.
    pub ended: Vec<(Held, Settled)>,
    /// Jobs whose deadline has passed.
    pub timed_out: Vec<JobId>,
    /// Whether more may be overdue.
    pub more: bool,
}

/// What an operator asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Run again what failed in a job, with its counters at zero. Not counted as a recovery.
    Retry(JobId),
    /// End a job now. After the answer no completion is taken.
    Cancel(JobId),
    /// Start nothing new of a job; what runs may finish.
    Pause(JobId),
    /// Go on after a pause.
    Resume(JobId),
    /// Take up a job again that ended badly: from a task, so that it and all that come after it run again, or from
    /// everything that went wrong. A job is recovered only as often as its flow allows.
    Recover {
        /// The job.
        job: JobId,
        /// The name of the task.
        from: Option<Arc<str>>,
    },
    /// Run a dead letter again, and what comes after it.
    Requeue(TaskId),
    /// Take a task out of the dead letters. It stays failed.
    Discard(TaskId),
}

impl Command {
    /// The job that it is about.
    pub fn job(&self) -> JobId {
        match self {
            Command::Retry(job) | Command::Cancel(job) | Command::Pause(job) | Command::Resume(job) => *job,
            Command::Recover { job, .. } => *job,
            Command::Requeue(task) | Command::Discard(task) => task.job,
        }
    }
}

/// A command, and what must hold for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// What to do.
    pub command: Command,
    /// The state in which the job must be, so that nothing is done to one that has moved on since somebody looked.
    pub expect: Option<JobState>,
}

impl Wish {
    /// A command for a job that must be in a state.
    pub fn expecting(command: Command, state: JobState) -> Self {
        Wish { command, expect: Some(state) }
    }
}

impl From<Command> for Wish {
    fn from(command: Command) -> Self {
        Wish { command, expect: None }
    }
}

/// A queue that is to be paused or to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueChange {
    /// The queue.
    pub queue: Arc<str>,
    /// Whether it is to be paused.
    pub paused: bool,
}

/// How long a worker is remembered that says nothing.
pub const WORKER_REMEMBERED: Millis = Millis::hours(24);

/// What a worker tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerNote {
    /// Its name, under which it holds leases.
    pub name: WorkerId,
    /// The machine that it runs on.
    #[cfg_attr(feature = "schema", schema(max_length = 200, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub host: Arc<str>,
    /// What it is and of which version.
    #[cfg_attr(feature = "schema", schema(max_length = 200, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    pub version: Arc<str>,
    /// The queues that it serves.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<orchestrator_core::schema::Name>, max_items = 1000))]
    pub queues: Vec<Arc<str>>,
    /// The handlers that it has.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<orchestrator_core::schema::Name>, max_items = 1000))]
    pub handlers: Vec<Arc<str>>,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// Whether it is gone.
    pub gone: bool,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controlled {
    /// It was done; the job's state now.
    Done(JobState),
    /// It makes no sense in the job's state, which stays as it is.
    Refused(JobState),
    /// Its key belongs to a newer job now, so it cannot run again.
    Superseded(JobId),
    /// There is no such job.
    NotFound,
    /// The job has no such task, or it is not in the dead letters.
    NoSuchTask,
    /// It cannot be recovered so.
    NoRecovery(NoRecovery),
    /// The job is not in the state that was expected, but in this one. Nothing was done.
    Changed(JobState),
}

/// A change of the registry of flows.
#[derive(Clone, Debug)]
pub enum FlowChange {
    /// Makes a definition the current one of its name: as a new version, unless one with the same content exists.
    Apply(Arc<Plan>),
    /// Takes a name out of the registry. Its jobs go on, and its versions stay for them.
    Retire(Arc<str>),
}

/// What came of a change of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowChanged {
    /// A new version.
    Created(u32),
    /// An earlier version has the same content and is current now.
    Restored(u32),
    /// It is the current version already.
    Unchanged(u32),
    /// The name is out of the registry.
    Retired,
    /// There was no such name.
    NotFound,
}

/// Who wrote a limit rule. What an operator wrote stays until an operator strikes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RuleOrigin {
    /// The configuration of a process that started.
    Config,
    /// An operator, while it ran.
    Operator,
}

/// A change of one limit rule. One of [`RuleOrigin::Config`] does nothing where an operator's stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitChange {
    /// The key, or a default such as `host:*`.
    pub key: LimitKey,
    /// The rule; `None` strikes it.
    pub rule: Option<LimitRule>,
    /// Who asks.
    pub origin: RuleOrigin,
}
