//! Bodies of requests: bounded in size and in time, and never unpacked.

use crate::problem::Problem;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use orchestrator_api::problem::Field;
use orchestrator_core::Millis;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// How long a client may take for its body.
#[derive(Clone, Copy, Debug)]
pub struct Patience(pub Duration);

impl Patience {
    /// What a request is under.
    pub fn of(request: &Request) -> Self {
        request.extensions().get().copied().unwrap_or_default()
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience(Duration::from_secs(30))
    }
}

/// A whole body.
pub struct Body(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        plain(request.headers())?;
        let patience = Patience::of(&request);
        let bytes = in_time(patience, Bytes::from_request(request, state)).await?;
        bytes.map(Body).map_err(|error| unreadable(error.status(), &error.body_text()))
    }
}

/// A whole body of JSON; one that is empty needs no media type.
pub struct JsonBody(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let given = media_type(request.headers()).to_owned();
        let Body(body) = Body::from_request(request, state).await?;
        if body.is_empty() || given.eq_ignore_ascii_case("application/json") {
            return Ok(JsonBody(body));
        }
        let detail = format!("send the body as application/json, not as {given:?}");
        Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail))
    }
}

/// What a body is, without parameters such as its charset; empty where that is not told.
pub fn media_type(headers: &HeaderMap) -> &str {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim()
}

/// Refuses bodies that are packed: unpacked, a small one may fill the memory.
pub fn plain(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(CONTENT_ENCODING) {
        Some(packed) if packed != "identity" => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "packed_body",
            "send the body without Content-Encoding",
        )),
        _ => Ok(()),
    }
}

/// Waits for a body, but not for ever.
pub async fn in_time<T>(patience: Patience, reading: impl Future<Output = T>) -> Result<T, Problem> {
    let late = |_| {
        let detail = format!("the body did not arrive within {}", Millis::from(patience.0));
        Problem::new(StatusCode::REQUEST_TIMEOUT, "slow_body", detail)
    };
    timeout(patience.0, reading).await.map_err(late)
}

/// A body that could not be read.
pub fn unreadable(status: StatusCode, text: &str) -> Problem {
    let (code, detail) = match status {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ("too_large", "the body is larger than this server takes (server.max_body)")
        }
        _ => ("unreadable_body", text),
    };
    Problem::new(status, code, detail)
}

/// Reads a body of JSON, an object. Where it does not fit, the problem points at the field.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // The fields of a struct would also be taken as a list without their names.
    if body.trim_ascii_start().starts_with(b"[") {
        let errors = vec![Field { pointer: String::new(), message: "must be an object".to_owned() }];
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", "the body must be an object");
        return Err(problem.with_errors(errors));
    }
    let mut input = serde_json::Deserializer::from_slice(body);
    let broken =
        |error: &serde_json::Error| Problem::new(StatusCode::BAD_REQUEST, "broken_json", error.to_string());
    let value = serde_path_to_error::deserialize(&mut input).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if !inner.is_data() {
            return broken(&inner);
        }
        let pointer = if path == "." {
            String::new()
        } else {
            format!("/{}", path.replace(['.', '['], "/").replace(']', ""))
        };
        let message = inner.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
        let problem =
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", format!("{pointer}: {message}"));
        problem.with_errors(vec![Field { pointer, message }])
    })?;
    input.end().map_err(|error| broken(&error))?;
    Ok(value)
}

/// Reads a body that may be left out.
pub fn read_or_default<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Problem> {
    if body.trim_ascii().is_empty() { Ok(T::default()) } else { read(body) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct Ask {
        #[serde(rename = "held")]
        _held: Vec<u32>,
    }

    #[test]
    fn a_field_that_does_not_fit_is_pointed_at() {
        let problem = read::<Ask>(br#"{"held": [1, "x"]}"#).unwrap_err();
        assert_eq!((problem.0.status, problem.0.errors[0].pointer.as_str()), (422, "/held/1"));
        assert_eq!(read::<Ask>(br#"{"held": [1"#).unwrap_err().0.code, "broken_json");
        assert_eq!(read::<Ask>(br#"{"held": []} x"#).unwrap_err().0.code, "broken_json");
    }
}
