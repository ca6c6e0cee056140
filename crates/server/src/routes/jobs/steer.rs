//! Pause, resume, cancel, recover, retry and rerun.

use super::look;
use crate::app::Shared;
use crate::body::{JsonBody, read_or_default as read};
use crate::etag::IfMatch;
use crate::openapi::answers::{BadBody, BadRequest, Changed, Conflict, JobThen, NotFound, Unavailable};
use crate::openapi::tag;
use crate::path::OfJob;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use orchestrator_api::jobs::{Recovery, Rerun};
use orchestrator_core::JobState;
use orchestrator_engine::{JobError, JobHandle};
use orchestrator_store::JobView;

/// Pauses a job
///
/// Nothing new of it starts; what runs may finish. Its clock stands still.
#[utoipa::path(
    post, path = "/jobs/{id}/pause", operation_id = "pause_job", tag = tag::JOBS,
    params(OfJob, IfMatch),
    responses(JobThen, BadRequest, NotFound, Conflict, Changed, Unavailable),
)]
pub async fn pause(State(app): State<Shared>, OfJob(id): OfJob, seen: IfMatch) -> Result<Response, Problem> {
    steer(app.engine.handle(id), seen, JobHandle::pause).await
}

/// Resumes a job
///
/// It goes on after a pause.
#[utoipa::path(
    post, path = "/jobs/{id}/resume", operation_id = "resume_job", tag = tag::JOBS,
    params(OfJob, IfMatch),
    responses(JobThen, BadRequest, NotFound, Conflict, Changed, Unavailable),
)]
pub async fn resume(State(app): State<Shared>, OfJob(id): OfJob, seen: IfMatch) -> Result<Response, Problem> {
    steer(app.engine.handle(id), seen, JobHandle::resume).await
}

/// Cancels a job
///
/// It ends now: what runs is stopped, and no result is taken any more.
#[utoipa::path(
    post, path = "/jobs/{id}/cancel", operation_id = "cancel_job", tag = tag::JOBS,
    params(OfJob, IfMatch),
    responses(JobThen, BadRequest, NotFound, Conflict, Changed, Unavailable),
)]
pub async fn cancel(State(app): State<Shared>, OfJob(id): OfJob, seen: IfMatch) -> Result<Response, Problem> {
    steer(app.engine.handle(id), seen, JobHandle::cancel).await
}

/// Cancels a job, by another name
///
/// The same as `POST /jobs/{id}/cancel`. The job stays and can be looked at.
#[utoipa::path(
    delete, path = "/jobs/{id}", operation_id = "delete_job", tag = tag::JOBS,
    params(OfJob, IfMatch),
    responses(JobThen, BadRequest, NotFound, Conflict, Changed, Unavailable),
)]
pub async fn delete(State(app): State<Shared>, OfJob(id): OfJob, seen: IfMatch) -> Result<Response, Problem> {
    steer(app.engine.handle(id), seen, JobHandle::cancel).await
}

/// Retries a job
///
/// Runs again what failed in it, with its counters at zero.
#[utoipa::path(
    post, path = "/jobs/{id}/retry", operation_id = "retry_job", tag = tag::JOBS,
    params(OfJob, IfMatch),
    responses(JobThen, BadRequest, NotFound, Conflict, Changed, Unavailable),
)]
pub async fn retry(State(app): State<Shared>, OfJob(id): OfJob, seen: IfMatch) -> Result<Response, Problem> {
    steer(app.engine.handle(id), seen, JobHandle::retry).await
}

/// Recovers a job
///
/// Takes up a job again that failed or timed out, from a task on or from everything that went wrong. A job is recovered only
/// as often as its flow allows.
#[utoipa::path(
    post, path = "/jobs/{id}/recover", operation_id = "recover_job", tag = tag::JOBS,
    params(OfJob, IfMatch),
    request_body(content = Option<Recovery>, example = json!({ "from": "validate" })),
    responses(JobThen, BadBody, NotFound, Conflict, Changed, Unavailable),
)]
pub async fn recover(
    State(app): State<Shared>,
    OfJob(id): OfJob,
    seen: IfMatch,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let Recovery { from } = read(&body)?;
    steer(app.engine.handle(id), seen, async |handle| handle.recover(from.as_deref()).await).await
}

/// Reruns a job
///
/// A new job like this one, with the same input or another.
#[utoipa::path(
    post, path = "/jobs/{id}/rerun", operation_id = "rerun_job", tag = tag::JOBS,
    params(OfJob),
    request_body(content = Option<Rerun>, example = json!({ "input": { "source": "https://example.org/b" } })),
    responses(
        (status = 201, description = "The new job.", body = JobView, headers(("ETag" = String, description = "The tag of the job, for `If-Match`."), ("Location" = String, description = "Where it is."))),
        BadBody, NotFound, Conflict, Unavailable,
    ),
)]
pub async fn rerun(
    State(app): State<Shared>,
    OfJob(id): OfJob,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let Rerun { input } = read(&body)?;
    let again = app.engine.handle(id).rerun(input).await?;
    let job = again.view().await?;
    Ok(([(LOCATION, format!("/jobs/{}", job.id))], look::shown(StatusCode::CREATED, &job)).into_response())
}

/// Does one thing to a job, if it is as the caller saw it, and answers with what it is then.
async fn steer(
    job: JobHandle,
    seen: IfMatch,
    act: impl AsyncFnOnce(&JobHandle) -> Result<JobState, JobError>,
) -> Result<Response, Problem> {
    let job = seen.guard(job).await?;
    act(&job).await?;
    Ok(look::shown(StatusCode::OK, &job.view().await?))
}
