//! Many jobs in one request: taken in all or none, and steered each by itself.

use crate::app::{App, Shared};
use crate::body::{JsonBody, read};
use crate::observe::Place;
use crate::openapi::answers::{BadBody, Unavailable};
use crate::openapi::tag;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::Extensions;
use orchestrator_api::batch::{ControlAnswer, ControlRequest, JobBatch, JobBatchAnswer, MOST_JOBS};
use orchestrator_core::flow::Plan;
use orchestrator_core::{FieldError, Json as Document, NewJob};
use orchestrator_engine::{JobFields, SubmitError};
use orchestrator_store::Wish;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Submits many jobs
///
/// In one transaction: all of them, or none where one is not valid. They are durable when this answers. A job whose key has a job with
/// another payload is told as a conflict, and does not keep the others.
#[utoipa::path(
    post, path = "/jobs/batch", operation_id = "create_jobs", tag = tag::JOBS,
    request_body(content = JobBatch, example = json!({ "jobs": [{ "handler": "noop", "artifact_id": "a" }, { "handler": "noop", "artifact_id": "b" }] })),
    responses((status = 200, description = "What came of each.", body = JobBatchAnswer), BadBody, Unavailable),
)]
pub async fn create(
    State(app): State<Shared>,
    extensions: Extensions,
    JsonBody(body): JsonBody,
) -> Result<Json<JobBatchAnswer>, Problem> {
    let JobBatch { jobs, flows } = read(&body)?;
    bounded("jobs", jobs.len())?;
    let mut jobs = made(&app, &jobs, &brought(&flows)?).await?;
    let place = Place::of(&extensions);
    jobs.iter_mut().for_each(|job| Place::join(place, &mut job.meta));
    let answers = app.engine.submit(jobs).await.map_err(|error| match error {
        SubmitError::Invalid { index, problems } => Problem::fields(&at(index, problems).collect::<Vec<_>>()),
        SubmitError::Store(error) => error.into(),
    })?;
    Ok(Json(JobBatchAnswer { jobs: answers.into_iter().map(Into::into).collect() }))
}

/// Steers many jobs
///
/// In one transaction. A wish that cannot be fulfilled does not keep the others.
#[utoipa::path(
    post, path = "/jobs/control", operation_id = "control_jobs", tag = tag::JOBS,
    request_body(content = ControlRequest, example = json!({ "wishes": [{ "action": "cancel", "job": "019a8f00-0000-7000-8000-000000000001" }] })),
    responses((status = 200, description = "What came of each.", body = ControlAnswer), BadBody, Unavailable),
)]
pub async fn control(
    State(app): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Json<ControlAnswer>, Problem> {
    let ControlRequest { wishes } = read(&body)?;
    bounded("wishes", wishes.len())?;
    let (mut good, mut problems) = (vec![], vec![]);
    for (n, wish) in wishes.into_iter().enumerate() {
        match Wish::try_from(wish) {
            Ok(wish) => good.push(wish),
            Err(message) => {
                let (field, message) = message.split_once(": ").unwrap_or(("", message));
                problems.push(FieldError::new(format!("wishes.{n}.{field}"), message));
            }
        }
    }
    if !problems.is_empty() {
        return Err(Problem::fields(&problems));
    }
    let answers = if good.is_empty() { vec![] } else { app.engine.control(good).await? };
    Ok(Json(ControlAnswer { results: answers.into_iter().map(Into::into).collect() }))
}

fn bounded(field: &str, number: usize) -> Result<(), Problem> {
    if number <= MOST_JOBS {
        return Ok(());
    }
    Err(Problem::fields(&[FieldError::new(field, format!("at most {MOST_JOBS}, not {number}"))]))
}

/// The flows that a batch brings along.
fn brought(flows: &BTreeMap<String, Document>) -> Result<BTreeMap<String, Arc<Plan>>, Problem> {
    let (mut plans, mut problems) = (BTreeMap::new(), vec![]);
    for (name, definition) in flows {
        match Plan::from_text(definition.as_str()) {
            Ok(plan) => {
                plans.insert(name.clone(), Arc::new(plan));
            }
            Err(found) => problems.extend(
                found.iter().map(|problem| FieldError::new(format!("flows.{name}"), problem.to_string())),
            ),
        }
    }
    if problems.is_empty() { Ok(plans) } else { Err(Problem::fields(&problems)) }
}

/// Makes the jobs, or says everything that is wrong with any of them.
async fn made(
    app: &App,
    jobs: &[Document],
    brought: &BTreeMap<String, Arc<Plan>>,
) -> Result<Vec<NewJob>, Problem> {
    let (mut good, mut problems) = (Vec::with_capacity(jobs.len()), vec![]);
    for (n, job) in jobs.iter().enumerate() {
        let made = match JobFields::parse(job.as_str()) {
            Ok(fields) => app.job_with(fields, brought).await?,
            Err(problem) => Err(vec![problem]),
        };
        match made {
            Ok(job) => good.push(job),
            Err(found) => problems.extend(at(n, found)),
        }
    }
    if problems.is_empty() { Ok(good) } else { Err(Problem::fields(&problems)) }
}

/// Problems of one job, as problems of the batch.
fn at(n: usize, problems: Vec<FieldError>) -> impl Iterator<Item = FieldError> {
    problems
        .into_iter()
        .map(move |problem| FieldError::new(format!("jobs.{n}.{}", problem.field), problem.message))
}
