//! The server's clock.

use crate::app::Shared;
use crate::openapi::tag;
use axum::Json;
use axum::extract::State;
use orchestrator_api::time::ServerTime;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(time))
}

/// Tells the time
///
/// Where the jobs are kept: what moments and ages in answers are reckoned from.
#[utoipa::path(
    get, path = "/time", operation_id = "time", tag = tag::SERVER,
    responses((status = 200, description = "The time.", body = ServerTime)),
)]
async fn time(State(app): State<Shared>) -> Json<ServerTime> {
    Json(ServerTime { now: app.engine.store().now() })
}
