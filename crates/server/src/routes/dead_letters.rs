//! Failed tasks that wait for somebody's decision.

use crate::app::Shared;
use crate::openapi::answers::{BadRequest, Conflict, NotFound, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::path::{OfTask, Path};
use crate::problem::Problem;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use orchestrator_api::dead_letters::DeadLetterPage;
use orchestrator_core::TaskId;
use orchestrator_core::schema::Name;
use orchestrator_engine::JobError;
use orchestrator_store::{Command, Controlled, LineFilter};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many letters a page has unless it is asked for more or fewer.
const USUAL: u32 = 50;
/// The most.
const MOST: u32 = 500;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(requeue)).routes(routes!(discard))
}

/// Lists dead letters
///
/// Tasks that failed for good and wait for somebody's decision, those of the oldest jobs first.
#[utoipa::path(
    get, path = "/dead-letters", operation_id = "list_dead_letters", tag = tag::DEAD_LETTERS,
    params(
        ("queue" = Option<Name>, Query, description = "Only of this queue."),
        ("handler" = Option<Name>, Query, description = "Only of this handler."),
        ("limit" = Option<u32>, Query, description = "How many at most, 50 unless given.", minimum = 1, maximum = 500),
        ("cursor" = Option<TaskId>, Query, description = "The `next` of the page before."),
    ),
    responses((status = 200, description = "A page.", body = DeadLetterPage), BadRequest, Unavailable),
)]
async fn list(State(app): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<DeadLetterPage>, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let filter = LineFilter { queue: parameters.name("queue"), handler: parameters.name("handler") };
    let limit: u32 = parameters.one("limit").unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        parameters.wrong("limit", format!("from 1 to {MOST}"));
    }
    let after: Option<TaskId> = parameters.one("cursor");
    parameters.done()?;
    let dead_letters = app.engine.store().dead_letters(filter, after, limit).await?;
    let next = (dead_letters.len() == limit as usize)
        .then(|| dead_letters.last().map(|letter| letter.task))
        .flatten();
    Ok(Json(DeadLetterPage { dead_letters, next }))
}

/// Runs a dead letter again
///
/// And what comes after it.
#[utoipa::path(
    post, path = "/dead-letters/{job}/{index}/requeue", operation_id = "requeue_dead_letter", tag = tag::DEAD_LETTERS,
    params(OfTask),
    responses((status = 204, description = "It is in line again."), BadRequest, NotFound, Conflict, Unavailable),
)]
async fn requeue(State(app): State<Shared>, Path(letter): Path<OfTask>) -> Result<StatusCode, Problem> {
    decide(&app, letter, Command::Requeue).await
}

/// Discards a dead letter
///
/// The task is taken out of the dead letters, and stays failed.
#[utoipa::path(
    delete, path = "/dead-letters/{job}/{index}", operation_id = "discard_dead_letter", tag = tag::DEAD_LETTERS,
    params(OfTask),
    responses((status = 204, description = "It is gone."), BadRequest, NotFound, Conflict, Unavailable),
)]
async fn discard(State(app): State<Shared>, Path(letter): Path<OfTask>) -> Result<StatusCode, Problem> {
    decide(&app, letter, Command::Discard).await
}

async fn decide(
    app: &Shared,
    OfTask { job, index }: OfTask,
    command: fn(TaskId) -> Command,
) -> Result<StatusCode, Problem> {
    let task = TaskId { job, index };
    match app.engine.control(vec![command(task)]).await?.pop() {
        Some(Controlled::Done(_)) => Ok(StatusCode::NO_CONTENT),
        Some(Controlled::Superseded(by)) => Err(JobError::Superseded { job, by }.into()),
        Some(Controlled::NoRecovery(why)) => Err(JobError::NoRecovery { job, why }.into()),
        Some(Controlled::Refused(state) | Controlled::Changed(state)) => Err(Problem::new(
            StatusCode::CONFLICT,
            "wrong_state",
            format!("job {job} is {state}: its dead letters cannot be decided on now"),
        )),
        Some(Controlled::NotFound | Controlled::NoSuchTask) | None => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "no_dead_letter",
            format!("task {task} is not in the dead letters"),
        )),
    }
}
