//! The protocol of workers that run elsewhere, in any language: lease, heartbeat, and the end of an attempt.
//!
//! Every message about an attempt carries its task and its number. One that does not hold its lease any more changes nothing.

use crate::app::Shared;
use crate::body::{JsonBody, read};
use crate::openapi::answers::{BadBody, Conflict, Unavailable};
use crate::openapi::tag;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use orchestrator_api::work::{
    CompleteRequest, Ended, FailRequest, HeartbeatAnswer, HeartbeatRequest, LeaseAnswer, LeaseRequest,
    LostAnswer, LostRequest, MOST_TASKS, ReleaseRequest, SettleAnswer, SettleRequest,
};
use orchestrator_core::spec::is_name;
use orchestrator_core::{ErrorClass, Failure, FieldError, Millis, Outcome};
use orchestrator_store::{Held, LeaseAsk, Settled, Settlement};
use orchestrator_worker::DEFAULT_MAX_OUTPUT;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest that an ask for tasks may wait.
const LONGEST_WAIT: Millis = Millis::secs(60);
/// The largest body about attempts, whatever other bodies may have: a batch of outputs, or the largest one.
const MAX_BODY: usize = 16 << 20;
/// How long a lease holds without a heartbeat: at least, usually and at most.
const TTL: (Millis, Millis, Millis) = (Millis::secs(1), Millis::secs(30), Millis::hours(1));

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(lease))
        .routes(routes!(heartbeat))
        .routes(routes!(lost))
        .routes(routes!(settle))
        .routes(routes!(complete))
        .routes(routes!(fail))
        .routes(routes!(release))
        .layer(DefaultBodyLimit::max(MAX_BODY))
}

/// Leases tasks
///
/// Answers as soon as there are any, or with none when the time is up. Each is held by the worker until its lease runs out.
#[utoipa::path(
    post, path = "/work/lease", operation_id = "lease_tasks", tag = tag::WORK,
    request_body(content = LeaseRequest, example = json!({ "worker": "downloads-1", "handlers": ["download"], "slots": 10, "wait": "30s" })),
    responses((status = 200, description = "The tasks, the best first.", body = LeaseAnswer), BadBody, Unavailable),
)]
async fn lease(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<Json<LeaseAnswer>, Problem> {
    let request: LeaseRequest = read(&body)?;
    let mut problems = vec![];
    if !(1..=MOST_TASKS as u32).contains(&request.slots) {
        problems.push(FieldError::new("slots", format!("from 1 to {MOST_TASKS}")));
    }
    if request.handlers.is_empty() || request.queues.is_empty() {
        problems.push(FieldError::new("handlers", "name at least one handler and one queue"));
    }
    if request.handlers.len() * request.queues.len() > MOST_TASKS {
        problems
            .push(FieldError::new("handlers", format!("at most {MOST_TASKS} pairs of queue and handler")));
    }
    for (field, names) in [("queues", &request.queues), ("handlers", &request.handlers)] {
        if names.iter().any(|name| !is_name(name)) {
            problems.push(FieldError::new(field, "only names (A-Z a-z 0-9 . _ - /)"));
        }
    }
    let name = request.worker.as_str();
    if !(1..=200).contains(&name.chars().count()) || name.chars().any(char::is_control) {
        problems.push(FieldError::new(
            "worker",
            "must have 1 to 200 characters, none of them a control character",
        ));
    }
    let wait = request.wait.unwrap_or_default();
    if wait > LONGEST_WAIT {
        problems.push(FieldError::new("wait", format!("at most {LONGEST_WAIT}")));
    }
    let ttl = ttl(request.ttl, &mut problems);
    if !problems.is_empty() {
        return Err(Problem::fields(&problems));
    }
    let LeaseRequest { worker, queues, handlers, slots, .. } = request;
    let ask = LeaseAsk { worker, queues, handlers, slots, ttl, hold: Millis(0) };
    let tasks = app.source.lease(ask, Duration::from(wait), &app.stopping).await?;
    Ok(Json(LeaseAnswer { tasks }))
}

fn ttl(asked: Option<Millis>, problems: &mut Vec<FieldError>) -> Millis {
    let ttl = asked.unwrap_or(TTL.1);
    if !(TTL.0..=TTL.2).contains(&ttl) {
        problems.push(FieldError::new("ttl", format!("from {} to {}", TTL.0, TTL.2)));
    }
    ttl
}

/// Prolongs leases
///
/// Tells also which of them are lost: then the work is to be stopped, its result will not be taken.
#[utoipa::path(
    post, path = "/work/heartbeat", operation_id = "heartbeat", tag = tag::WORK,
    request_body(content = HeartbeatRequest, example = json!({ "held": [{ "task": "019a8f00-0000-7000-8000-000000000001/0", "attempt": 1 }], "ttl": "30s" })),
    responses((status = 200, description = "What became of each lease, in order.", body = HeartbeatAnswer), BadBody, Unavailable),
)]
async fn heartbeat(
    State(app): State<Shared>,
    JsonBody(body): JsonBody,
) -> Result<Json<HeartbeatAnswer>, Problem> {
    let request: HeartbeatRequest = read(&body)?;
    let mut problems = bounded("held", request.held.len());
    let ttl = ttl(request.ttl, &mut problems);
    if !problems.is_empty() {
        return Err(Problem::fields(&problems));
    }
    Ok(Json(HeartbeatAnswer { beats: app.source.extend(request.held, ttl).await? }))
}

/// Which leases are lost
///
/// It prolongs none.
#[utoipa::path(
    post, path = "/work/lost", operation_id = "lost_leases", tag = tag::WORK,
    request_body(content = LostRequest, example = json!({ "held": [{ "task": "019a8f00-0000-7000-8000-000000000001/0", "attempt": 1 }] })),
    responses((status = 200, description = "Those that are.", body = LostAnswer), BadBody, Unavailable),
)]
async fn lost(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<Json<LostAnswer>, Problem> {
    let LostRequest { held } = read(&body)?;
    let problems = bounded("held", held.len());
    if !problems.is_empty() {
        return Err(Problem::fields(&problems));
    }
    Ok(Json(LostAnswer { lost: app.source.lost(held).await? }))
}

/// Ends attempts
///
/// Each in its own way, all in one commit. One that does not hold its lease is answered as stale and changes nothing.
#[utoipa::path(
    post, path = "/work/settle", operation_id = "settle_attempts", tag = tag::WORK,
    request_body(content = SettleRequest, example = json!({ "outcomes": [{ "task": "019a8f00-0000-7000-8000-000000000001/0", "attempt": 1, "outcome": { "completed": { "bytes": 1024 } } }] })),
    responses((status = 200, description = "What came of each, in order.", body = SettleAnswer), BadBody, Unavailable),
)]
async fn settle(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<Json<SettleAnswer>, Problem> {
    let request: SettleRequest = read(&body)?;
    let mut problems = bounded("outcomes", request.outcomes.len());
    if request.outcomes.iter().any(|ended| ended.outcome == Outcome::Lost) {
        problems.push(FieldError::new("outcomes", "only the store says that an attempt is lost"));
    }
    if !problems.is_empty() {
        return Err(Problem::fields(&problems));
    }
    let held = |ended: Ended| (Held { task: ended.task, attempt: ended.attempt }, ended.outcome);
    let settled = end(&app, request.outcomes.into_iter().map(held).collect()).await?;
    Ok(Json(SettleAnswer { settled }))
}

fn bounded(field: &str, number: usize) -> Vec<FieldError> {
    let too_many =
        (number > MOST_TASKS).then(|| FieldError::new(field, format!("at most {MOST_TASKS}, not {number}")));
    too_many.into_iter().collect()
}

/// Completes an attempt
#[utoipa::path(
    post, path = "/work/complete", operation_id = "complete_attempt", tag = tag::WORK,
    request_body(content = CompleteRequest, example = json!({ "task": "019a8f00-0000-7000-8000-000000000001/0", "attempt": 1, "output": { "bytes": 1024 } })),
    responses((status = 200, description = "It was taken.", body = Settled), Conflict, BadBody, Unavailable),
)]
async fn complete(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<Json<Settled>, Problem> {
    let CompleteRequest { task, attempt, output } = read(&body)?;
    one_end(&app, Held { task, attempt }, Outcome::Completed(output)).await
}

/// Fails an attempt
///
/// Whether the task is tried again depends on the kind of the error and on how often it was tried.
#[utoipa::path(
    post, path = "/work/fail", operation_id = "fail_attempt", tag = tag::WORK,
    request_body(content = FailRequest, example = json!({ "task": "019a8f00-0000-7000-8000-000000000001/0", "attempt": 1, "message": "the server is busy", "retry_after": "30s" })),
    responses((status = 200, description = "It was taken.", body = Settled), Conflict, BadBody, Unavailable),
)]
async fn fail(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<Json<Settled>, Problem> {
    let FailRequest { task, attempt, message, retryable, class, retry_after } = read(&body)?;
    let class = class.unwrap_or(match retryable {
        Some(false) => ErrorClass::Permanent,
        Some(true) | None => ErrorClass::Transient,
    });
    if retryable.is_some_and(|retryable| retryable != class.is_retryable()) {
        let message =
            format!("{} is {}retryable", class.as_str(), if class.is_retryable() { "" } else { "not " });
        return Err(Problem::fields(&[FieldError::new("retryable", message)]));
    }
    let failure = Failure { class, message, retry_after };
    one_end(&app, Held { task, attempt }, Outcome::Failed(failure)).await
}

/// Gives an attempt back
///
/// Unharmed, as in an orderly stop: it costs the task nothing, and it keeps its place.
#[utoipa::path(
    post, path = "/work/release", operation_id = "release_attempt", tag = tag::WORK,
    request_body(content = ReleaseRequest, example = json!({ "task": "019a8f00-0000-7000-8000-000000000001/0", "attempt": 1 })),
    responses((status = 200, description = "It was taken.", body = Settled), Conflict, BadBody, Unavailable),
)]
async fn release(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<Json<Settled>, Problem> {
    let ReleaseRequest { task, attempt } = read(&body)?;
    one_end(&app, Held { task, attempt }, Outcome::Released).await
}

/// Ends one attempt. One that does not hold its lease is a conflict.
async fn one_end(app: &Shared, held: Held, outcome: Outcome) -> Result<Json<Settled>, Problem> {
    match end(app, vec![(held, outcome)]).await?.pop() {
        Some(settled @ Settled::Applied { .. }) => Ok(Json(settled)),
        Some(Settled::Stale) | None => Err(Problem::new(
            StatusCode::CONFLICT,
            "lease_lost",
            format!(
                "attempt {} does not hold task {} any more: stop the work, its result is not taken",
                held.attempt, held.task
            ),
        )),
    }
}

async fn end(app: &Shared, ends: Vec<(Held, Outcome)>) -> Result<Vec<Settled>, Problem> {
    let settlement = |(held, outcome): (Held, Outcome)| Settlement {
        held,
        outcome: outcome.bounded(DEFAULT_MAX_OUTPUT),
        jitter: fastrand::f64(),
    };
    Ok(app.source.settle(ends.into_iter().map(settlement).collect()).await?)
}
