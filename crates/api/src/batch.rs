//! Many jobs in one request: taken in together, and steered together.

use orchestrator_core::flow::advance::NoRecovery;
use orchestrator_core::{JobId, JobState, Json, TaskId};
use orchestrator_store::{Command, Controlled, Submitted, Wish};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most jobs that one request may be about.
pub const MOST_JOBS: usize = 1000;

/// Jobs to be taken in, all of them or none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobBatch {
    /// The jobs, at most 1000, each with the fields of a single one.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>, max_items = 1000))]
    pub jobs: Vec<Json>,
    /// Definitions of flows that jobs of this batch may name, under the names given here: they need not be applied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = BTreeMap<String, Object>))]
    pub flows: BTreeMap<String, Json>,
}

/// What came of the jobs, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobBatchAnswer {
    /// One for each.
    pub jobs: Vec<BatchedJob>,
}

/// What came of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BatchedJob {
    /// The job that now stands for the submit; of a conflict, the one that has the key.
    pub id: JobId,
    /// What came of it.
    pub result: BatchedResult,
    /// Where it stands; not told of a conflict.
    pub state: Option<JobState>,
    /// The job that had the key before and ended badly.
    pub previous: Option<JobId>,
}

/// What came of one job, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BatchedResult {
    /// It is new.
    Created,
    /// Its key has a job already, with the same payload.
    Existing,
    /// Its key has a job already, with another payload. It was not taken in.
    Conflict,
}

impl From<Submitted> for BatchedJob {
    fn from(submitted: Submitted) -> Self {
        let (result, state, previous) = match submitted {
            Submitted::Created { previous, .. } => {
                (BatchedResult::Created, Some(JobState::Pending), previous)
            }
            Submitted::Existing { state, .. } => (BatchedResult::Existing, Some(state), None),
            Submitted::Conflict { .. } => (BatchedResult::Conflict, None, None),
        };
        BatchedJob { id: submitted.id(), result, state, previous }
    }
}

impl From<BatchedJob> for Submitted {
    fn from(job: BatchedJob) -> Self {
        let BatchedJob { id, result, state, previous } = job;
        match result {
            BatchedResult::Created => Submitted::Created { id, previous },
            BatchedResult::Existing => Submitted::Existing { id, state: state.unwrap_or(JobState::Pending) },
            BatchedResult::Conflict => Submitted::Conflict { id },
        }
    }
}

/// What is to be done to jobs, in one transaction. Each is answered by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ControlRequest {
    /// What is asked.
    pub wishes: Vec<WishFields>,
}

/// What is to be done to one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WishFields {
    /// What to do.
    pub action: Action,
    /// The job.
    pub job: JobId,
    /// The number of the task, of `requeue` and `discard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// The name of the task from which on to `recover`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state in which the job must be, so that nothing is done to one that has moved on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<JobState>,
}

/// What can be done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Run again what failed.
    Retry,
    /// End it now.
    Cancel,
    /// Start nothing new of it.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Take it up again after a bad end.
    Recover,
    /// Run one dead letter again, and what comes after it.
    Requeue,
    /// Take a task out of the dead letters.
    Discard,
}

impl From<Wish> for WishFields {
    fn from(wish: Wish) -> Self {
        let job = wish.command.job();
        let (action, task, from) = match wish.command {
            Command::Retry(_) => (Action::Retry, None, None),
            Command::Cancel(_) => (Action::Cancel, None, None),
            Command::Pause(_) => (Action::Pause, None, None),
            Command::Resume(_) => (Action::Resume, None, None),
            Command::Recover { from, .. } => (Action::Recover, None, from.map(|from| from.to_string())),
            Command::Requeue(task) => (Action::Requeue, Some(task.index), None),
            Command::Discard(task) => (Action::Discard, Some(task.index), None),
        };
        WishFields { action, job, task, from, expect: wish.expect }
    }
}

impl TryFrom<WishFields> for Wish {
    type Error = &'static str;

    /// Says what is missing or too much.
    fn try_from(wish: WishFields) -> Result<Self, Self::Error> {
        let WishFields { action, job, task, from, expect } = wish;
        let of_task = matches!(action, Action::Requeue | Action::Discard);
        if task.is_some() != of_task {
            return Err("task: requeue and discard are about one, the others are not");
        }
        if from.is_some() && action != Action::Recover {
            return Err("from: only a recovery has it");
        }
        let letter = TaskId { job, index: task.unwrap_or_default() };
        let command = match action {
            Action::Retry => Command::Retry(job),
            Action::Cancel => Command::Cancel(job),
            Action::Pause => Command::Pause(job),
            Action::Resume => Command::Resume(job),
            Action::Recover => Command::Recover { job, from: from.map(Into::into) },
            Action::Requeue => Command::Requeue(letter),
            Action::Discard => Command::Discard(letter),
        };
        Ok(Wish { command, expect })
    }
}

/// What came of the wishes, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ControlAnswer {
    /// One for each.
    pub results: Vec<ControlResult>,
}

/// What came of a wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ControlResult {
    /// It was done.
    Done {
        /// The job's state now.
        state: JobState,
    },
    /// It makes no sense in the job's state, which stays as it is.
    Refused {
        /// That state.
        state: JobState,
    },
    /// The job's key belongs to a newer job now, so it cannot run again.
    Superseded {
        /// The newer one.
        by: JobId,
    },
    /// There is no such job.
    NotFound,
    /// The job has no such task, or it is not in the dead letters.
    NoSuchTask,
    /// It cannot be recovered so.
    NoRecovery {
        /// Why.
        why: NoRecovery,
    },
    /// The job is not in the state that was expected. Nothing was done.
    Changed {
        /// The state in which it is.
        state: JobState,
    },
}

impl From<Controlled> for ControlResult {
    fn from(controlled: Controlled) -> Self {
        match controlled {
            Controlled::Done(state) => ControlResult::Done { state },
            Controlled::Refused(state) => ControlResult::Refused { state },
            Controlled::Superseded(by) => ControlResult::Superseded { by },
            Controlled::NotFound => ControlResult::NotFound,
            Controlled::NoSuchTask => ControlResult::NoSuchTask,
            Controlled::NoRecovery(why) => ControlResult::NoRecovery { why },
            Controlled::Changed(state) => ControlResult::Changed { state },
        }
    }
}

impl From<ControlResult> for Controlled {
    fn from(result: ControlResult) -> Self {
        match result {
            ControlResult::Done { state } => Controlled::Done(state),
            ControlResult::Refused { state } => Controlled::Refused(state),
            ControlResult::Superseded { by } => Controlled::Superseded(by),
            ControlResult::NotFound => Controlled::NotFound,
            ControlResult::NoSuchTask => Controlled::NoSuchTask,
            ControlResult::NoRecovery { why } => Controlled::NoRecovery(why),
            ControlResult::Changed { state } => Controlled::Changed(state),
        }
    }
}
