//! The tasks of a job, and the items that they were expanded into.

use crate::app::{App, Shared};
use crate::openapi::answers::{BadRequest, NotFound, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::path::{OfJob, Path};
use crate::problem::Problem;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use orchestrator_api::tasks::TaskList;
use orchestrator_core::TaskId;
use orchestrator_store::{JobView, TaskView};

/// How many items a page has unless it is asked for more or fewer.
const USUAL: u32 = 50;
/// The most.
const MOST: u32 = 500;

/// Lists the tasks of a job
///
/// Those of its flow, in order. Items of a `for_each` are told apart.
#[utoipa::path(
    get, path = "/jobs/{id}/tasks", operation_id = "list_tasks", tag = tag::JOBS,
    params(OfJob),
    responses((status = 200, description = "The tasks.", body = TaskList), BadRequest, NotFound, Unavailable),
)]
pub async fn list(State(app): State<Shared>, OfJob(id): OfJob) -> Result<Json<TaskList>, Problem> {
    let job = app.engine.handle(id).view().await?;
    Ok(Json(TaskList { tasks: job.tasks, next: None }))
}

/// Shows a task
///
/// By its name, by `name[3]` for an item, or by its number.
#[utoipa::path(
    get, path = "/jobs/{id}/tasks/{task}", operation_id = "get_task", tag = tag::JOBS,
    params(
        OfJob,
        ("task" = String, Path, description = "The task.", min_length = 1, example = "main"),
    ),
    responses((status = 200, description = "The task.", body = TaskView), BadRequest, NotFound, Unavailable),
)]
pub async fn one(
    State(app): State<Shared>,
    OfJob(id): OfJob,
    Path((_, task)): Path<(String, String)>,
) -> Result<Json<TaskView>, Problem> {
    let job = app.engine.handle(id).view().await?;
    Ok(Json(find(&app, &job, &task).await?))
}

/// Lists the items of a task
///
/// What a `for_each` was expanded into, in order.
#[utoipa::path(
    get, path = "/jobs/{id}/tasks/{task}/items", operation_id = "list_items", tag = tag::JOBS,
    params(
        OfJob,
        ("task" = String, Path, description = "The task.", min_length = 1, example = "label"),
        ("after" = Option<u32>, Query, description = "Go on after this number, the `next` of the page before."),
        ("limit" = Option<u32>, Query, description = "How many, 50 unless given.", minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "The items.", body = TaskList), BadRequest, NotFound, Unavailable),
)]
pub async fn items(
    State(app): State<Shared>,
    OfJob(id): OfJob,
    Path((_, task)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Json<TaskList>, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let after: Option<u32> = parameters.one("after");
    let limit: u32 = parameters.one("limit").unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        parameters.wrong("limit", format!("from 1 to {MOST}"));
    }
    parameters.done()?;
    let job = app.engine.handle(id).view().await?;
    let group = TaskId { job: id, index: find(&app, &job, &task).await?.index };
    let tasks = app.engine.store().items(group, after, limit).await?;
    let next = (tasks.len() == limit as usize).then(|| tasks.last().map(|task| task.index)).flatten();
    Ok(Json(TaskList { tasks, next }))
}

async fn find(app: &App, job: &JobView, text: &str) -> Result<TaskView, Problem> {
    if let Some(task) = job.task_named(text) {
        return Ok(task.clone());
    }
    if let Some(index) = job.index_of(text)
        && let Some(task) = app.engine.store().task(TaskId { job: job.id, index }).await?
    {
        return Ok(task);
    }
    let shown: String = text.chars().take(60).collect();
    let detail = format!("job {} has no task {shown:?}", job.id);
    Err(Problem::new(StatusCode::NOT_FOUND, "no_such_task", detail))
}
