//! Jobs that ended long ago: which may go, and their removal. The server's own retention does the same by itself.

use crate::app::Shared;
use crate::body::{JsonBody, read};
use crate::openapi::answers::{BadBody, BadRequest, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{RawQuery, State};
use orchestrator_api::batch::MOST_JOBS;
use orchestrator_api::old::{ForgetAnswer, ForgetRequest, RemovableJobs};
use orchestrator_core::{FieldError, JobId, Timestamp};
use orchestrator_store::{Bygone, RemovableAsk};

/// How many jobs are told unless more or fewer are asked for.
const USUAL: u32 = 100;
/// The most jobs that one look passes.
const LOOK: u32 = 10_000;

/// Lists old jobs
///
/// Jobs that ended before the moments given, in order of submission. A kind without a moment stays.
#[utoipa::path(
    get, path = "/jobs/removable", operation_id = "list_removable_jobs", tag = tag::JOBS,
    params(
        ("completed_before" = Option<Timestamp>, Query, description = "Jobs that completed before this moment."),
        ("failed_before" = Option<Timestamp>, Query, description = "Jobs that failed, timed out or were cancelled before it."),
        ("dead_before" = Option<Timestamp>, Query, description = "Those among them that have dead letters."),
        ("limit" = Option<u32>, Query, description = "How many, 100 unless given.", minimum = 1, maximum = 1000),
        ("look" = Option<u32>, Query, description = "How many jobs to look at, at most.", minimum = 1, maximum = 10000),
        ("cursor" = Option<JobId>, Query, description = "Go on after this job, the `next` of the page before."),
    ),
    responses((status = 200, description = "The jobs.", body = RemovableJobs), BadRequest, Unavailable),
)]
pub async fn removable(
    State(app): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Json<RemovableJobs>, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let bygone = Bygone {
        completed: parameters.one("completed_before"),
        failed: parameters.one("failed_before"),
        dead: parameters.one("dead_before"),
    };
    let limit = parameters.one("limit").unwrap_or(USUAL);
    if !(1..=MOST_JOBS as u32).contains(&limit) {
        parameters.wrong("limit", format!("from 1 to {MOST_JOBS}"));
    }
    let look = parameters.one("look").unwrap_or(LOOK);
    if !(1..=LOOK).contains(&look) {
        parameters.wrong("look", format!("from 1 to {LOOK}"));
    }
    let after = parameters.one("cursor");
    parameters.done()?;
    let found = app.engine.store().removable(RemovableAsk { bygone, after, limit, look }).await?;
    Ok(Json(found.into()))
}

/// Removes old jobs
///
/// With all that belongs to them, in one transaction. Only jobs that have ended, and at the moment that is given.
#[utoipa::path(
    post, path = "/jobs/forget", operation_id = "forget_jobs", tag = tag::JOBS,
    request_body(content = ForgetRequest, example = json!({ "jobs": [{ "job": "019a8f00-0000-7000-8000-000000000001", "ended": "2026-11-15T06:00:00Z" }] })),
    responses((status = 200, description = "What came of each.", body = ForgetAnswer), BadBody, Unavailable),
)]
pub async fn forget(
    State(app): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Json<ForgetAnswer>, Problem> {
    let ForgetRequest { jobs } = read(&body)?;
    if jobs.len() > MOST_JOBS {
        let message = format!("at most {MOST_JOBS}, not {}", jobs.len());
        return Err(Problem::fields(&[FieldError::new("jobs", message)]));
    }
    let forgot = app.engine.store().forget(jobs.into_iter().map(Into::into).collect()).await?;
    Ok(Json(ForgetAnswer { results: forgot.into_iter().map(Into::into).collect() }))
}
