//! Jobs.

use orchestrator_core::{JobId, JobState, Json};
use orchestrator_store::JobView;
use serde::{Deserialize, Serialize};

/// What came of a submit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobCreated {
    /// The job that now stands for the submit.
    pub id: JobId,
    /// Whether it is new.
    pub result: JobResult,
    /// Where it stands.
    pub state: JobState,
    /// The job that had the key before and ended badly.
    pub previous: Option<JobId>,
}

/// Whether a job is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobResult {
    /// It is.
    Created,
    /// Its key had a job already.
    Existing,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// Where the next page begins, if there may be one.
    pub next: Option<JobId>,
}

/// From where to recover.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// The task from which on it runs again; all that went wrong where there is none.
    #[serde(default)]
    pub from: Option<String>,
}

/// What is different in the next run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// Another input; the same where there is none.
    #[serde(default)]
    pub input: Option<Json>,
}
