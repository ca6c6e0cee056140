//! Takes a job in.

use super::look::{span, until_ended};
use super::multipart::{self, JobForm};
use crate::app::Shared;
use crate::body::{Body, media_type, unreadable};
use crate::observe::Place;
use crate::openapi::answers::{BadBody, Conflict, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::request_id::CORRELATION_ID;
use axum::Json;
use axum::extract::{FromRequest, RawQuery, Request, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use orchestrator_api::jobs::{JobCreated, JobResult};
use orchestrator_core::{FieldError, JobState};
use orchestrator_engine::{JobError, JobFields};
use orchestrator_store::{JobView, Submitted};
use utoipa::ToSchema;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What a submit is answered with that made no new job, or that waited.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only described; the answers are made of their own types")]
enum Answer {
    Key(JobCreated),
    Ended(Box<JobView>),
}

/// Submits a job
///
/// It is durable when this answers. A job names a handler with its payload, or a flow with its input. With a document it comes
/// as a form. `Idempotency-Key` (the same as the field `artifact_id`) makes it safe to repeat: the same key with the same
/// payload is the same job, with another payload a conflict.
#[utoipa::path(
    post, path = "/jobs", operation_id = "create_job", tag = tag::JOBS,
    params(
        ("wait" = Option<String>, Query, description = "Wait so long for the end of the job, at most 10m.", pattern = r"^([0-9]{1,5}ms|[1-5]?[0-9]?[0-9]s|[0-9]m|10m)$", example = "30s"),
        ("Idempotency-Key" = Option<String>, Header, description = "The caller's own id of the work, quoted or bare.", min_length = 1, max_length = 512),
        ("X-Correlation-Id" = Option<String>, Header, description = "What ties the job to other work, where the body does not say.", min_length = 1, max_length = 255),
    ),
    request_body(
        content(
            (JobFields = "application/json", examples(
                ("handler" = (summary = "A handler", value = json!({ "handler": "download", "payload": { "url": "https://example.org/a.pdf" }, "artifact_id": "doi:10.1/x", "priority": "high", "limits": { "host": "example.org" } }))),
                ("flow" = (summary = "A flow", value = json!({ "flow": "dataset-build", "input": { "source": "https://example.org/a" }, "context": { "lab": "x" } }))),
            )),
            (JobForm = "multipart/form-data"),
        ),
    ),
    responses(
        (status = 201, description = "A new job.", body = JobCreated, headers(("Location" = String, description = "Where it is."))),
        (status = 200, description = "The job that has the key already; with `wait`, the job, which has ended.", body = inline(Answer)),
        (status = 202, description = "With `wait`: the time is up, and it has not ended.", body = JobView),
        BadBody, Conflict, Unavailable,
    ),
)]
pub async fn create(
    State(app): State<Shared>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let place = Place::of(request.extensions());
    let mut parameters = Parameters::of(query.as_deref());
    let wait = span(&mut parameters, "wait");
    parameters.done()?;
    let (fields, document) = if media_type(&headers).eq_ignore_ascii_case("multipart/form-data") {
        multipart::read(request).await?
    } else {
        let Body(body) = Body::from_request(request, &()).await?;
        (fields(&headers, &body, app.max_body)?, None)
    };
    let mut job = app.job(with_headers(fields, &headers)?).await?;
    job.document = document.or(job.document);
    Place::join(place, &mut job.meta);
    let answer = app.engine.submit(vec![job]).await?.into_iter().next();
    let (id, result, state, previous) = match answer {
        Some(Submitted::Created { id, previous }) => (id, JobResult::Created, JobState::Pending, previous),
        Some(Submitted::Existing { id, state }) => (id, JobResult::Existing, state, None),
        Some(Submitted::Conflict { id }) => return Err(JobError::Conflict { id }.into()),
        None => {
            return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "store", "the store did not answer"));
        }
    };
    if let Some(limit) = wait {
        return until_ended(&app, id, limit).await;
    }
    let status = if result == JobResult::Created { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(LOCATION, format!("/jobs/{id}"))];
    Ok((status, location, Json(JobCreated { id, result, state, previous })).into_response())
}

fn fields(headers: &HeaderMap, body: &[u8], max_body: usize) -> Result<JobFields, Problem> {
    if body.len() > max_body {
        return Err(unreadable(StatusCode::PAYLOAD_TOO_LARGE, ""));
    }
    let media_type = media_type(headers);
    if !media_type.eq_ignore_ascii_case("application/json") {
        let detail =
            format!("send the job as application/json or multipart/form-data, not as {media_type:?}");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
    }
    let broken = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "broken_json", detail);
    let text = std::str::from_utf8(body).map_err(|_| broken("the body is not UTF-8".to_owned()))?;
    JobFields::parse(text).map_err(|problem| broken(problem.message))
}

/// Adds what headers say. A key that both name must be the same.
fn with_headers(mut fields: JobFields, headers: &HeaderMap) -> Result<JobFields, Problem> {
    if let Some(key) = text(headers, &IDEMPOTENCY_KEY)? {
        // The draft of the header wants it quoted, and most callers send it bare.
        let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(&key).to_owned();
        if fields.artifact_id.as_ref().is_some_and(|given| *given != key) {
            let message = "is not the one in the header Idempotency-Key";
            return Err(Problem::fields(&[FieldError::new("artifact_id", message)]));
        }
        fields.artifact_id = Some(key);
    }
    if fields.correlation_id.is_none() {
        fields.correlation_id = text(headers, &CORRELATION_ID)?;
    }
    Ok(fields)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(_) => Err(Problem::parameter(name.as_str(), "only visible ASCII")),
    }
}
