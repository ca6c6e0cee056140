//! Workers: what they tell of themselves, and who is there.

use crate::app::Shared;
use crate::body::{JsonBody, read};
use crate::openapi::answers::{BadBody, Unavailable};
use crate::openapi::tag;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use orchestrator_api::work::MOST_TASKS;
use orchestrator_api::workers::{RegisterRequest, WorkerList};
use orchestrator_core::FieldError;
use orchestrator_core::spec::is_name;
use orchestrator_store::WorkerNote;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest text that a worker may tell of itself, in characters.
const LONGEST: usize = 200;
/// The most workers that one request may be about.
const MOST: usize = 100;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(register))
}

/// Lists workers
///
/// Those that said something within the last day.
#[utoipa::path(
    get, path = "/workers", operation_id = "list_workers", tag = tag::WORK,
    responses((status = 200, description = "The workers, in order of their names.", body = WorkerList), Unavailable),
)]
async fn list(State(app): State<Shared>) -> Result<Json<WorkerList>, Problem> {
    Ok(Json(WorkerList { workers: app.engine.store().workers().await? }))
}

/// Registers workers
///
/// They say that they are there, or that they are gone, about every half a minute. They need not: leases work without.
#[utoipa::path(
    post, path = "/work/register", operation_id = "register_workers", tag = tag::WORK,
    request_body(content = RegisterRequest, example = json!({ "workers": [{
        "name": "downloads-1", "host": "worker-7", "queues": ["default"], "handlers": ["download"], "slots": 8,
        "version": "0.1.0", "gone": false,
    }] })),
    responses((status = 204, description = "They are listed now."), BadBody, Unavailable),
)]
async fn register(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<StatusCode, Problem> {
    let RegisterRequest { workers } = read(&body)?;
    let mut problems = vec![];
    if workers.len() > MOST {
        problems.push(FieldError::new("workers", format!("at most {MOST}, not {}", workers.len())));
    }
    problems.extend(workers.iter().enumerate().flat_map(|(n, note)| wrong(n, note)));
    if !problems.is_empty() {
        return Err(Problem::fields(&problems));
    }
    app.engine.store().register(workers).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn wrong(n: usize, note: &WorkerNote) -> Vec<FieldError> {
    let mut problems = vec![];
    let texts = [("name", note.name.as_str()), ("host", &*note.host), ("version", &*note.version)];
    let bad = |text: &str| text.chars().count() > LONGEST || text.chars().any(char::is_control);
    for (field, _) in
        texts.into_iter().filter(|(field, text)| bad(text) || *field == "name" && text.is_empty())
    {
        let message = format!("must have at most {LONGEST} characters, none of them a control character");
        problems.push(FieldError::new(format!("workers.{n}.{field}"), message));
    }
    for (field, names) in [("queues", &note.queues), ("handlers", &note.handlers)] {
        if names.len() > MOST_TASKS || names.iter().any(|name| !is_name(name)) {
            let message = format!("at most {MOST_TASKS} names (A-Z a-z 0-9 . _ - /)");
            problems.push(FieldError::new(format!("workers.{n}.{field}"), message));
        }
    }
    problems
}
