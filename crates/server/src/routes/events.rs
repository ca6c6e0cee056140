//! Live events (SSE): what changes, as it changes, and what changed before.

use crate::app::Shared;
use crate::events::Filter;
use crate::openapi::answers::{BadRequest, Gone, NotFound, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use orchestrator_core::JobId;
use orchestrator_engine::JobError;
use orchestrator_store::{BadEventId, EventId, JournalRange};
use std::str::FromStr;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Keeps nginx from holding events back.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// The most jobs, and the most flows, that a listener may choose.
const MOST: usize = 100;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(events))
}

/// From where to listen.
enum After {
    /// The oldest that is kept: `0`.
    All,
    /// What comes after an event.
    Event(EventId),
}

impl FromStr for After {
    type Err = BadEventId;
    fn from_str(text: &str) -> Result<Self, BadEventId> {
        if text == "0" { Ok(After::All) } else { text.parse().map(After::Event) }
    }
}

/// Listens to events
///
/// Server-Sent Events: what changes, as it changes, from now on or from after the event that the client saw last. Each has an id; a client
/// that comes back with the last one it saw misses nothing and gets nothing twice.
#[utoipa::path(
    get, path = "/events", operation_id = "listen", tag = tag::EVENTS,
    params(
        ("job" = Option<Vec<JobId>>, Query, description = "Only of these jobs, at most 100.", max_items = 100),
        ("flow" = Option<Vec<String>>, Query, description = "Only of jobs of these flows, at most 100.", max_items = 100),
        ("after" = Option<String>, Query, description = "From after this event; `0` is from the oldest that is kept.", pattern = "^(0|[0-9]{1,9}[.][0-9]{1,9})$", example = "0"),
        ("Last-Event-ID" = Option<String>, Header, description = "The same, as browsers send it; it wins over `after`.", pattern = "^(0|[0-9]{1,9}[.][0-9]{1,9})$", example = "17.0"),
    ),
    responses(
        (status = 200, description = "Events, until the client hangs up.", body = String, content_type = "text/event-stream"),
        BadRequest, NotFound, Gone, Unavailable,
    ),
)]
async fn events(
    State(app): State<Shared>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let jobs: Vec<JobId> = parameters.list("job");
    let flows: Vec<String> = parameters.list("flow");
    for (name, number) in [("job", jobs.len()), ("flow", flows.len())] {
        if number > MOST {
            parameters.wrong(name, format!("at most {MOST}"));
        }
    }
    let after: Option<After> = parameters.one("after");
    parameters.done()?;
    // A browser that comes back asks for the same URL, so the header is the newer word.
    let after = last_seen(&headers)?.or(after);
    for job in &jobs {
        if app.engine.store().job(*job).await?.is_none() {
            return Err(JobError::NotFound(*job).into());
        }
    }
    let range = app.engine.store().journal_range().await?;
    let after = place(after, range)?;
    let filter =
        Filter { jobs: jobs.into_iter().collect(), flows: flows.into_iter().map(Arc::from).collect() };
    let headers =
        [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store"), (X_ACCEL_BUFFERING, "no")];
    Ok((headers, Body::from_stream(app.events.listen(after, filter).stream())).into_response())
}

/// What the client saw last, if it says.
fn last_seen(headers: &HeaderMap) -> Result<Option<After>, Problem> {
    let Some(value) = headers.get(&LAST_EVENT_ID).filter(|value| !value.is_empty()) else { return Ok(None) };
    let wrong = |message: String| Problem::parameter(LAST_EVENT_ID.as_str(), message);
    let text = value.to_str().map_err(|_| wrong("only visible ASCII".to_owned()))?;
    text.trim().parse().map(Some).map_err(|error: BadEventId| wrong(error.to_string()))
}

/// Where a listener begins, if all that came after that is kept.
fn place(after: Option<After>, range: JournalRange) -> Result<EventId, Problem> {
    let oldest = EventId::before(range.oldest);
    let after = match after {
        None => return Ok(range.newest),
        Some(After::All) => return Ok(oldest),
        Some(After::Event(after)) => after,
    };
    let again = "listen without an id, or from the oldest that is kept with ?after=0, and look at the jobs for where they stand now";
    let gone = |why: String| Problem::new(StatusCode::GONE, "events_gone", format!("{why}: {again}"));
    if after < oldest {
        Err(gone(format!("events after {after} were removed, those from {}.0 on are kept", range.oldest)))
    } else if after > range.newest.max(oldest) {
        Err(gone(format!("{after} is not of this database, whose newest event is {}", range.newest)))
    } else {
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, oldest: i64) -> Result<EventId, u16> {
        let range = JournalRange { oldest, newest: EventId { entry: 9, index: 2 } };
        place(Some(text.parse().unwrap()), range).map_err(|problem| problem.0.status)
    }

    #[test]
    fn who_may_have_missed_something_is_told() {
        for text in ["5.0", "8.7", "9.2", &EventId::before(5).to_string()] {
            assert_eq!(answer(text, 5), Ok(text.parse().unwrap()));
        }
        for text in ["0.0", "4.9", "1.0", "9.3", "10.0"] {
            assert_eq!(answer(text, 5), Err(410), "{text}");
        }
    }

    #[test]
    fn the_oldest_is_where_everything_begins() {
        assert_eq!(answer("0", 5), Ok(EventId::before(5)));
        assert_eq!((answer("0", 1), answer("0.0", 1)), (Ok(EventId::START), Ok(EventId::START)));
        let empty = place(Some(After::Event(EventId::START)), JournalRange::default());
        assert_eq!(empty.ok(), Some(EventId::START));
    }
}
