//! The description of the API: for programs, and as a page for people. The page is served from here whole and loads
//! nothing from elsewhere.

use crate::app::Shared;
use crate::openapi::{self, tag};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use bytes::Bytes;
use std::sync::LazyLock;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The page may load and ask only what comes from this server, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The same for the whole life of the program.
static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| openapi::document().to_string().into());

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(document))
        .routes(routes!(page))
        .routes(routes!(script))
        .routes(routes!(style))
}

/// This description
///
/// As OpenAPI 3.1, made from the code of the server.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = tag::SERVER,
    responses((status = 200, description = "The document.", body = Object)),
)]
async fn document() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.clone())
}

/// A page that shows this description
#[utoipa::path(
    get, path = "/docs", operation_id = "docs", tag = tag::SERVER,
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")),
)]
async fn page() -> impl IntoResponse {
    asset("text/html; charset=utf-8", include_str!("../../assets/docs.html"))
}

/// The page's script
#[utoipa::path(
    get, path = "/docs/docs.js", operation_id = "docs_script", tag = tag::SERVER,
    responses((status = 200, description = "The script.", body = String, content_type = "text/javascript")),
)]
async fn script() -> impl IntoResponse {
    asset("text/javascript; charset=utf-8", include_str!("../../assets/docs.js"))
}

/// The page's style
#[utoipa::path(
    get, path = "/docs/docs.css", operation_id = "docs_style", tag = tag::SERVER,
    responses((status = 200, description = "The style.", body = String, content_type = "text/css")),
)]
async fn style() -> impl IntoResponse {
    asset("text/css; charset=utf-8", include_str!("../../assets/docs.css"))
}

fn asset(media_type: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // It comes with the program and may change with its version.
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}
