//! Why something that was asked of a job was not done, and what to do instead.

use crate::submit::SubmitError;
use crate::waiters::WaitError;
use orchestrator_core::flow::Problem;
use orchestrator_core::flow::advance::NoRecovery;
use orchestrator_core::{JobId, JobState};
use orchestrator_store::StoreError;
use std::fmt;
use std::sync::Arc;

/// What was asked of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// To pause.
    Pause,
    /// To go on.
    Resume,
    /// To end.
    Cancel,
    /// To be taken up again.
    Recover,
    /// To run again what failed.
    Retry,
}

impl Verb {
    /// What was done to a job to which this was done.
    pub const fn done(self) -> &'static str {
        match self {
            Verb::Pause => "paused",
            Verb::Resume => "resumed",
            Verb::Cancel => "cancelled",
            Verb::Recover => "recovered",
            Verb::Retry => "retried",
        }
    }

    /// What to do with a job to which this cannot be done.
    fn hint(self, state: JobState) -> &'static str {
        match (self, state) {
            (Verb::Pause, JobState::Pausing | JobState::Paused) => "it stands still until it is resumed",
            (Verb::Pause | Verb::Cancel, _) => "it has ended already",
            (Verb::Resume, _) => "only a paused job goes on",
            (Verb::Recover, JobState::Failed | JobState::TimedOut) => "it has one task only: retry it",
            (Verb::Recover | Verb::Retry, _) if state.is_terminal() => "rerun it as a new job",
            (Verb::Recover | Verb::Retry, _) => "wait until it has ended, or cancel and rerun it",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.done())
    }
}

/// A flow that cannot be had from the registry.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// There is none of the name.
    #[error("there is no flow {0}: apply it first")]
    NotFound(Arc<str>),
    /// The name is known, the version is not.
    #[error("there is no version {1} of the flow {0}")]
    NoSuchVersion(Arc<str>, u32),
    /// What is stored is not a flow that this program can run.
    #[error("the stored flow {name} cannot be read by this program: {}", first(problems))]
    Unreadable {
        /// The flow.
        name: Arc<str>,
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn first(problems: &[Problem]) -> String {
    problems.first().map(ToString::to_string).unwrap_or_default()
}

/// Something that was not done with a job. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There is none.
    #[error("there is no job {0}: its id is mistyped, or it is in another database")]
    NotFound(JobId),
    /// The key of a new job has a job already, with another payload or document.
    #[error("job {id} has the same key and another payload: give the same payload, or another key")]
    Conflict {
        /// The job that has the key.
        id: JobId,
    },
    /// It makes no sense in the job's state.
    #[error("job {job} is {state} and cannot be {verb}: {}", verb.hint(*state))]
    Refused {
        /// The job.
        job: JobId,
        /// What was asked.
        verb: Verb,
        /// The state.
        state: JobState,
    },
    /// It is not in the state that was expected.
    #[error("job {job} has changed meanwhile: it is {state} now; look again and decide anew")]
    Changed {
        /// The job.
        job: JobId,
        /// The state.
        state: JobState,
    },
    /// A newer job has its key.
    #[error("job {job} cannot run again: its key belongs to job {by} now; look at that one")]
    Superseded {
        /// The job.
        job: JobId,
        /// The newer one.
        by: JobId,
    },
    /// It has no task of the name.
    #[error("job {job} has no task {task:?}, only: {}", known.join(", "))]
    NoSuchTask {
        /// The job.
        job: JobId,
        /// The name.
        task: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// It cannot be recovered so.
    #[error("job {job} cannot be recovered: {why}{}", match why {
        NoRecovery::Exhausted(_) => "; rerun it as a new job",
        _ => "",
    })]
    NoRecovery {
        /// The job.
        job: JobId,
        /// Why.
        why: NoRecovery,
    },
    /// The flow that it runs cannot be had.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// A job is not valid.
    #[error("the job is not valid: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid {
        /// Everything that is wrong with it.
        problems: Vec<orchestrator_core::FieldError>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl JobError {
    /// A stable word for the error.
    pub const fn code(&self) -> &'static str {
        match self {
            JobError::NotFound(_) => "not_found",
            JobError::Conflict { .. } => "key_conflict",
            JobError::Refused { .. } => "wrong_state",
            JobError::Changed { .. } => "changed",
            JobError::Superseded { .. } => "superseded",
            JobError::NoSuchTask { .. } => "no_such_task",
            JobError::NoRecovery { .. } => "no_recovery",
            JobError::Flow(FlowError::Store(error)) | JobError::Store(error) => error.code(),
            JobError::Flow(_) => "no_flow",
            JobError::Invalid { .. } => "invalid",
        }
    }
}

impl From<SubmitError> for JobError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Invalid { problems, .. } => JobError::Invalid { problems },
            SubmitError::Store(error) => JobError::Store(error),
        }
    }
}

impl From<WaitError> for JobError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::NotFound(id) => JobError::NotFound(id),
            WaitError::Store(error) => JobError::Store(error),
        }
    }
}
