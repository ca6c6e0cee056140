//! The metrics page.

use crate::observe::Scrape;
use crate::openapi::answers::NotFound;
use crate::openapi::tag;
use crate::problem::Problem;
use axum::Extension;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The text format of Prometheus.
const TEXT_FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Shows the metrics
///
/// In the text format of Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = tag::SERVER,
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain"), NotFound),
)]
async fn metrics(scrape: Option<Extension<Scrape>>) -> Result<Response, Problem> {
    let Some(Extension(scrape)) = scrape else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "no_metrics", "metrics are off (server.metrics)"));
    };
    Ok(([(CONTENT_TYPE, TEXT_FORMAT)], scrape().await).into_response())
}
