//! What stands in the path of a request. What cannot be read is a problem like any other.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use orchestrator_core::JobId;
use orchestrator_core::id::BadId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

/// The parts of a path that are not fixed.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // PostgreSQL has no character zero, so nothing that is kept is called so.
        if parts.uri.path().contains("%00") {
            return Err(Problem::parameter("path", "must not hold the character zero"));
        }
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        found.map(|path| Path(path.0)).map_err(|error| Problem::parameter("path", error.body_text()))
    }
}

/// The job that a path names.
#[derive(IntoParams)]
#[into_params(names("id"), parameter_in = Path)]
pub struct OfJob(
    /// The job.
    pub JobId,
);

impl<S: Send + Sync> FromRequestParts<S> for OfJob {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(found): Path<Vec<(String, String)>> = Path::from_request_parts(parts, state).await?;
        let text = found.iter().find(|(name, _)| name == "id").map(|(_, text)| text.as_str());
        let id = text.unwrap_or_default().parse();
        id.map(OfJob).map_err(|error: BadId| Problem::parameter("id", error.to_string()))
    }
}

/// The task that a path names by its job and its place: `Path<OfTask>`.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OfTask {
    /// The job.
    pub job: JobId,
    /// The place of the task in it.
    pub index: u32,
}
