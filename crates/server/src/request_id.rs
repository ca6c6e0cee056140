//! Every request has an id: the caller's, or one that is made here. It stands in the answer, in problems and in the log.

use crate::observe::{Place, is_polled};
use crate::problem::Problem;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use uuid::Uuid;

/// The header.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header of what ties work together.
pub const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
/// The longest id that is taken from a caller.
const LONGEST: usize = 128;

/// The id of a request.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

impl RequestId {
    /// The caller's id, if it has one that can stand in a log, or a new one.
    fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(&REQUEST_ID).and_then(|value| value.to_str().ok());
        RequestId(
            given
                .filter(|text| is_visible(text))
                .map_or_else(|| Uuid::now_v7().simple().to_string(), str::to_owned),
        )
    }
}

/// Whether a text of a caller can stand in a log.
fn is_visible(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Gives the request its id, runs it inside a span that names it, and says how it was answered.
pub async fn layer(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    let span = span(&request, &id);
    request.extensions_mut().insert(id.clone());
    let polled = request.extensions().get::<MatchedPath>().is_some_and(|path| is_polled(path.as_str()));
    let started = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, took_ms) = (response.status().as_u16(), started.elapsed().as_millis() as u64);
    span.record("status", status);
    span.in_scope(|| match status {
        500.. => tracing::warn!(took_ms, "answered"),
        _ if polled => tracing::debug!(took_ms, "answered"),
        _ => tracing::info!(took_ms, "answered"),
    });
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let headers = std::mem::take(response.headers_mut());
        response = problem.with_request_id(id.0.clone()).into_response();
        for (name, value) in
            headers.iter().filter(|(name, _)| !matches!(name.as_str(), "content-type" | "content-length"))
        {
            response.headers_mut().insert(name.clone(), value.clone());
        }
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// The span of a request. A query is left out: it may hold what is nobody's business.
fn span(request: &Request, id: &RequestId) -> Span {
    let span = tracing::info_span!(
        "request",
        request_id = %id.0,
        method = %request.method(),
        path = request.uri().path(),
        route = Empty,
        status = Empty,
        correlation_id = Empty,
        trace_id = Empty,
        span_id = Empty,
        parent_id = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(route) = request.extensions().get::<MatchedPath>() {
        span.record("route", route.as_str());
    }
    let given = request.headers().get(&CORRELATION_ID).and_then(|value| value.to_str().ok());
    if let Some(given) = given.filter(|text| is_visible(text)) {
        span.record("correlation_id", given);
    }
    if let Some(place) = Place::of(request.extensions()) {
        span.record("trace_id", place.own.trace_id());
        if place.kept {
            span.record("span_id", place.own.span_id());
            if let Some(parent) = place.parent {
                span.record("parent_id", parent.span_id());
            }
        }
    }
    span
}
