//! Jobs that ended long ago: which may go, and their removal.

use orchestrator_core::{JobId, Timestamp};
use orchestrator_store::{Forget, Forgot, Removable, RemovablePage};
use serde::{Deserialize, Serialize};

/// Jobs that ended long enough ago, in order of submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RemovableJobs {
    /// The jobs.
    pub jobs: Vec<RemovableJob>,
    /// Where the look goes on, if it was ended by a bound.
    pub next: Option<JobId>,
}

/// A job that may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RemovableJob {
    /// Which.
    pub job: JobId,
    /// When it ended.
    pub ended: Timestamp,
    /// How many tasks it has, items among them.
    pub tasks: u32,
}

impl From<RemovablePage> for RemovableJobs {
    fn from(page: RemovablePage) -> Self {
        let job = |Removable { job, ended, tasks }| RemovableJob { job, ended, tasks };
        RemovableJobs { jobs: page.jobs.into_iter().map(job).collect(), next: page.next }
    }
}

impl From<RemovableJobs> for RemovablePage {
    fn from(found: RemovableJobs) -> Self {
        let job = |RemovableJob { job, ended, tasks }| Removable { job, ended, tasks };
        RemovablePage { jobs: found.jobs.into_iter().map(job).collect(), next: found.next }
    }
}

/// Jobs that are to be removed with all that belongs to them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ForgetRequest {
    /// Which.
    pub jobs: Vec<ForgetJob>,
}

/// A job that is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ForgetJob {
    /// Which.
    pub job: JobId,
    /// The end that the wish is about: a job that was taken up again since stays.
    pub ended: Timestamp,
}

impl From<Forget> for ForgetJob {
    fn from(forget: Forget) -> Self {
        ForgetJob { job: forget.job, ended: forget.ended }
    }
}

impl From<ForgetJob> for Forget {
    fn from(wish: ForgetJob) -> Self {
        Forget { job: wish.job, ended: wish.ended }
    }
}

/// What came of the wishes, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ForgetAnswer {
    /// One for each.
    pub results: Vec<ForgetResult>,
}

/// What came of a wish to remove a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ForgetResult {
    /// It is gone.
    Removed,
    /// It has not ended, or at another moment: it stays.
    Kept,
    /// There is no such job, or not any more.
    NotFound,
}

impl From<Forgot> for ForgetResult {
    fn from(forgot: Forgot) -> Self {
        match forgot {
            Forgot::Done => ForgetResult::Removed,
            Forgot::Kept => ForgetResult::Kept,
            Forgot::NotFound => ForgetResult::NotFound,
        }
    }
}

impl From<ForgetResult> for Forgot {
    fn from(result: ForgetResult) -> Self {
        match result {
            ForgetResult::Removed => Forgot::Done,
            ForgetResult::Kept => Forgot::Kept,
            ForgetResult::NotFound => Forgot::NotFound,
        }
    }
}
