//! One job: as it is, how far it is, and its end.

use crate::app::{App, Shared};
use crate::etag;
use crate::openapi::answers::{BadRequest, NotFound, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::path::OfJob;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use orchestrator_core::{JobId, Millis};
use orchestrator_engine::{Progress, Waited};
use orchestrator_store::JobView;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;

/// The longest that a request may wait for the end of a job.
pub const LONGEST_WAIT: Millis = Millis::mins(10);
/// How long it waits unless it says.
const USUAL_WAIT: Millis = Millis::secs(30);

/// Shows a job
///
/// With its tasks, what was tried and how it ended.
#[utoipa::path(
    get, path = "/jobs/{id}", operation_id = "get_job", tag = tag::JOBS,
    params(OfJob),
    responses(
        (status = 200, description = "The job.", body = JobView, headers(("ETag" = String, description = "The tag of the job, for `If-Match`."))),
        BadRequest, NotFound, Unavailable,
    ),
)]
pub async fn job(State(app): State<Shared>, OfJob(id): OfJob) -> Result<Response, Problem> {
    let job = app.engine.handle(id).view().await?;
    Ok(shown(StatusCode::OK, &job))
}

/// Fetches the document of a job
///
/// As it was sent with the job, under its own media type.
#[utoipa::path(
    get, path = "/jobs/{id}/document", operation_id = "get_job_document", tag = tag::JOBS,
    params(OfJob),
    responses(
        (status = 200, description = "The document.", body = String, content_type = "*/*",
            headers(("Content-Disposition" = String, description = "Its name."))),
        BadRequest, NotFound, Unavailable,
    ),
)]
pub async fn document(State(app): State<Shared>, OfJob(id): OfJob) -> Result<Response, Problem> {
    let Some(document) = app.engine.store().document(id).await? else {
        // Tells a job without a document from none.
        app.engine.handle(id).view().await?;
        let detail = format!("job {id} has no document");
        return Err(Problem::new(StatusCode::NOT_FOUND, "no_document", detail));
    };
    // Never shown by a browser in place: it comes from anybody.
    let name: String = utf8_percent_encode(document.name(), NON_ALPHANUMERIC).to_string();
    let headers = [
        (CONTENT_TYPE, document.media_type().to_string()),
        (CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{name}")),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, Bytes::copy_from_slice(document.content())).into_response())
}

/// Tells how far a job is
#[utoipa::path(
    get, path = "/jobs/{id}/progress", operation_id = "get_job_progress", tag = tag::JOBS,
    params(OfJob),
    responses((status = 200, description = "Its progress.", body = Progress), BadRequest, NotFound, Unavailable),
)]
pub async fn progress(State(app): State<Shared>, OfJob(id): OfJob) -> Result<Json<Progress>, Problem> {
    Ok(Json(app.engine.handle(id).progress().await?))
}

/// Waits for the end of a job
///
/// Answers as soon as it has ended, or when the time is up.
#[utoipa::path(
    get, path = "/jobs/{id}/wait", operation_id = "wait_for_job", tag = tag::JOBS,
    params(
        OfJob,
        ("timeout" = Option<String>, Query, description = "How long, at most 10m; 30s unless given.", pattern = r"^([0-9]{1,5}ms|[1-5]?[0-9]?[0-9]s|[0-9]m|10m)$", example = "30s"),
    ),
    responses(
        (status = 200, description = "It has ended.", body = JobView, headers(("ETag" = String, description = "The tag of the job, for `If-Match`."))),
        (status = 202, description = "The time is up, and it has not ended.", body = JobView, headers(("ETag" = String, description = "The tag of the job, for `If-Match`."))),
        BadRequest, NotFound, Unavailable,
    ),
)]
pub async fn wait(
    State(app): State<Shared>,
    OfJob(id): OfJob,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let limit = span(&mut parameters, "timeout").unwrap_or(USUAL_WAIT);
    parameters.done()?;
    until_ended(&app, id, limit).await
}

/// A span to wait, which is bounded.
pub fn span(parameters: &mut Parameters, name: &'static str) -> Option<Millis> {
    let span: Millis = parameters.one(name)?;
    if span > LONGEST_WAIT {
        parameters.wrong(name, format!("at most {LONGEST_WAIT}"));
    }
    Some(span)
}

/// Waits for the end of a job, until the time is up or the server stops.
pub async fn until_ended(app: &App, id: JobId, limit: Millis) -> Result<Response, Problem> {
    let waited = tokio::select! {
        biased;
        waited = app.engine.wait(id, Some(Duration::from(limit))) => waited?,
        () = app.stopping.cancelled() => Waited::TimedOut(app.engine.handle(id).view().await?),
    };
    let status = if matches!(waited, Waited::Ended(_)) { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(shown(status, waited.job()))
}

/// A job as an answer.
pub fn shown(status: StatusCode, job: &JobView) -> Response {
    let mut response = (status, Json(job)).into_response();
    etag::put(&mut response, job);
    response
}
