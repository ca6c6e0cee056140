//! Whether the server is alive, whether it takes work, and how it is.

use crate::app::Shared;
use crate::openapi::tag;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use orchestrator_api::health::{Health, Status, StoreHealth};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready)).routes(routes!(health))
}

/// Is it alive?
///
/// It is as long as it answers.
#[utoipa::path(
    get, path = "/live", operation_id = "live", tag = tag::SERVER,
    responses((status = 204, description = "It is.")),
)]
async fn live() -> StatusCode {
    StatusCode::NO_CONTENT
}

/// Does it take work?
///
/// For load balancers: 200 where it does, or 503 with the reason.
#[utoipa::path(
    get, path = "/ready", operation_id = "ready", tag = tag::SERVER,
    responses(
        (status = 200, description = "It takes work.", body = Health),
        (status = 503, description = "It does not: it is stopping, or the store takes no writes.", body = Health),
    ),
)]
async fn ready(State(app): State<Shared>) -> Response {
    let health = look(&app).await;
    let status = if health.status == Status::Ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}

/// How is it?
///
/// Answers with 503 where the store takes no writes, so that a simple check sees it.
#[utoipa::path(
    get, path = "/health", operation_id = "health", tag = tag::SERVER,
    responses(
        (status = 200, description = "It is well, or stopping.", body = Health),
        (status = 503, description = "The store takes no writes.", body = Health),
    ),
)]
async fn health(State(app): State<Shared>) -> Response {
    let health = look(&app).await;
    let bad = health.status == Status::Unavailable;
    let status = if bad { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (status, Json(health)).into_response()
}

async fn look(app: &Shared) -> Health {
    let finding = app.probe.look().await;
    let status = match &finding.trouble {
        Some(_) => Status::Unavailable,
        None if app.stopping.is_cancelled() => Status::Draining,
        None => Status::Ok,
    };
    let (code, detail) = finding.trouble.unzip();
    Health {
        status,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: app.started.elapsed().as_secs(),
        store: StoreHealth {
            writable: code.is_none(),
            write_ms: (finding.took.as_secs_f64() * 1e6).round() / 1e3,
            code: code.map(str::to_owned),
            detail,
        },
    }
}
