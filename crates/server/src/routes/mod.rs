//! Where requests go.

mod dead_letters;
mod docs;
mod events;
mod flows;
mod health;
mod jobs;
mod limits;
mod metrics;
mod queues;
mod stats;
mod time;
mod work;
mod workers;

use crate::app::Shared;
use crate::observe::Scrape;
use crate::openapi;
use crate::problem::Problem;
use crate::request_id;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::{Extension, Router};
use utoipa_axum::router::OpenApiRouter;

/// All routes of a server.
pub fn router(app: Shared, max_document: usize) -> Router {
    let max_body = app.max_body;
    let (routes, _) = described(max_body.max(max_document)).split_for_parts();
    routes
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(max_body))
        .layer(middleware::from_fn(request_id::layer))
        .with_state(app)
}

/// What is shown on a port of its own, to those who watch: health and metrics.
pub fn side(app: Shared, scrape: Scrape) -> Router {
    let (health, _) = health::routes().split_for_parts();
    health.with_state(app).merge(metrics_page(scrape)).fallback(no_such_path)
}

/// The metrics page alone.
pub fn metrics_page(scrape: Scrape) -> Router {
    metrics::routes().split_for_parts().0.layer(Extension(scrape))
}

/// Every route with its description. A route exists only so.
pub fn described(max_document: usize) -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(openapi::frame())
        .merge(jobs::routes(max_document))
        .merge(flows::routes())
        .merge(queues::routes())
        .merge(limits::routes())
        .merge(dead_letters::routes())
        .merge(work::routes())
        .merge(workers::routes())
        .merge(events::routes())
        .merge(stats::routes())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(time::routes())
        .merge(docs::routes())
}

async fn no_such_path() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no_such_path", "there is nothing here; /docs tells what there is")
}

async fn no_such_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "no_such_method",
        "this path does not take this method; /docs tells which it takes",
    )
}
