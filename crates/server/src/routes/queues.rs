//! Queues: what waits in them, and pauses.

use crate::app::Shared;
use crate::openapi::answers::{BadRequest, NotFound, Unavailable};
use crate::openapi::tag;
use crate::path::Path;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use orchestrator_api::queues::{QueueList, QueueView};
use orchestrator_core::schema::Name;
use orchestrator_core::spec::is_name;
use orchestrator_store::QueueChange;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(one))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// Lists queues
///
/// Every queue that ever had work or is paused, with the number of its tasks in each state.
#[utoipa::path(
    get, path = "/queues", operation_id = "list_queues", tag = tag::QUEUES,
    responses((status = 200, description = "The queues, in order of their names.", body = QueueList), Unavailable),
)]
async fn list(State(app): State<Shared>) -> Result<Json<QueueList>, Problem> {
    Ok(Json(QueueList { queues: all(&app).await?.into_values().collect() }))
}

/// Shows a queue
#[utoipa::path(
    get, path = "/queues/{queue}", operation_id = "get_queue", tag = tag::QUEUES,
    params(("queue" = Name, Path, description = "Its name.")),
    responses((status = 200, description = "The queue.", body = QueueView), BadRequest, NotFound, Unavailable),
)]
async fn one(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<QueueView>, Problem> {
    look(&app, &name).await
}

/// Pauses a queue
///
/// Nothing of it is handed out any more; what runs may finish.
#[utoipa::path(
    post, path = "/queues/{queue}/pause", operation_id = "pause_queue", tag = tag::QUEUES,
    params(("queue" = Name, Path, description = "Its name.")),
    responses((status = 200, description = "The queue, which is paused now.", body = QueueView), BadRequest, Unavailable),
)]
async fn pause(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<QueueView>, Problem> {
    change(&app, &name, true).await
}

/// Resumes a queue
///
/// Its tasks are handed out again.
#[utoipa::path(
    post, path = "/queues/{queue}/resume", operation_id = "resume_queue", tag = tag::QUEUES,
    params(("queue" = Name, Path, description = "Its name.")),
    responses((status = 200, description = "The queue, which is not paused any more.", body = QueueView), BadRequest, Unavailable),
)]
async fn resume(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<QueueView>, Problem> {
    change(&app, &name, false).await
}

async fn change(app: &Shared, name: &str, paused: bool) -> Result<Json<QueueView>, Problem> {
    if !is_name(name) {
        return Err(Problem::parameter("queue", "is not a name (A-Z a-z 0-9 . _ - /)"));
    }
    app.engine.store().set_queues(vec![QueueChange { queue: name.into(), paused }]).await?;
    let view = all(app).await?.remove(name);
    Ok(Json(view.unwrap_or_else(|| QueueView { queue: name.into(), paused: None, handlers: vec![] })))
}

async fn look(app: &Shared, name: &str) -> Result<Json<QueueView>, Problem> {
    let shown: String = name.chars().take(60).collect();
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "no_queue", format!("queue {shown:?} never had work"));
    all(app).await?.remove(name).map(Json).ok_or_else(unknown)
}

async fn all(app: &Shared) -> Result<BTreeMap<Arc<str>, QueueView>, Problem> {
    let store = app.engine.store();
    let mut queues: BTreeMap<Arc<str>, QueueView> = BTreeMap::new();
    let empty = |queue: &Arc<str>| QueueView { queue: queue.clone(), paused: None, handlers: vec![] };
    for line in store.stats().await?.lines {
        queues.entry(line.queue.clone()).or_insert_with(|| empty(&line.queue)).handlers.push(line);
    }
    for paused in store.paused_queues().await? {
        queues.entry(paused.queue.clone()).or_insert_with(|| empty(&paused.queue)).paused =
            Some(paused.since);
    }
    Ok(queues)
}
