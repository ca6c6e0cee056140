//! What went wrong as an answer: every error of the store and the engine has its status and its code here.

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use orchestrator_api::problem::{Field, Problem as Body};
use orchestrator_core::FieldError;
use orchestrator_engine::{FlowError, JobError, SubmitError, WaitError};
use orchestrator_store::StoreError;
use orchestrator_worker::SourceError;

/// The media type.
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
/// How long to wait before a request is repeated that the database could not serve, in seconds.
const AGAIN_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Why a request was not carried out. Rare beside what goes well, so it stands aside.
#[derive(Clone, Debug)]
pub struct Problem(pub Box<Body>);

impl Problem {
    /// A problem.
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Problem(Box::new(Body {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: detail.into(),
            errors: vec![],
            retryable: false,
            request_id: None,
        }))
    }

    /// With every field that is wrong.
    pub fn with_errors(mut self, errors: Vec<Field>) -> Self {
        self.0.errors = errors;
        self
    }

    /// A request that is wrong in some fields, all of which are told.
    pub fn fields(problems: &[FieldError]) -> Self {
        let fields = problems.iter().map(|problem| Field {
            pointer: format!("/{}", problem.field.replace('.', "/")),
            message: problem.message.clone(),
        });
        let errors: Vec<Field> = fields.collect();
        let detail = match problems {
            [one] => one.to_string(),
            many => format!("{} fields are wrong", many.len()),
        };
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).with_errors(errors)
    }

    /// A parameter that is wrong.
    pub fn parameter(name: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let detail = format!("{name}: {message}");
        let errors = vec![Field { pointer: name.to_owned(), message }];
        Problem::new(StatusCode::BAD_REQUEST, "bad_parameter", detail).with_errors(errors)
    }

    /// With the id of the request.
    pub fn with_request_id(mut self, id: String) -> Self {
        self.0.request_id = Some(id);
        self
    }

    fn retryable(mut self) -> Self {
        self.0.retryable = true;
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let waits = self.0.retryable && status == StatusCode::SERVICE_UNAVAILABLE;
        let mut response = (status, Json(&self.0)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, PROBLEM_JSON);
        if waits {
            response.headers_mut().insert(RETRY_AFTER, AGAIN_AFTER);
        }
        // For the layer that writes the request's id into it, and for the log.
        response.extensions_mut().insert(self);
        response
    }
}

/// What the database could not do is not the caller's fault: 503 where it may work later, without a false answer.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (status, detail) = match &error {
            StoreError::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
            StoreError::Closed => (StatusCode::SERVICE_UNAVAILABLE, "the server is stopping".to_owned()),
            _ if error.is_transient() => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        };
        let problem = Problem::new(status, error.code(), detail);
        if status == StatusCode::SERVICE_UNAVAILABLE { problem.retryable() } else { problem }
    }
}

impl From<SourceError> for Problem {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Store(error) => error.into(),
            SourceError::Remote { source, .. } => {
                Problem::new(StatusCode::BAD_GATEWAY, "remote", source.to_string())
            }
        }
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Invalid { problems, .. } => Problem::fields(&problems),
            SubmitError::Store(error) => error.into(),
        }
    }
}

impl From<WaitError> for Problem {
    fn from(error: WaitError) -> Self {
        JobError::from(error).into()
    }
}

impl From<FlowError> for Problem {
    fn from(error: FlowError) -> Self {
        match error {
            FlowError::Store(error) => error.into(),
            FlowError::NotFound(_) | FlowError::NoSuchVersion(..) => {
                Problem::new(StatusCode::NOT_FOUND, "no_flow", error.to_string())
            }
            FlowError::Unreadable { .. } => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable_flow", error.to_string())
            }
        }
    }
}

impl From<JobError> for Problem {
    fn from(error: JobError) -> Self {
        let (code, detail) = (error.code(), error.to_string());
        let status = match error {
            JobError::NotFound(_) => StatusCode::NOT_FOUND,
            JobError::NoSuchTask { .. } => StatusCode::NOT_FOUND,
            JobError::Conflict { .. } | JobError::Refused { .. } | JobError::Superseded { .. } => {
                StatusCode::CONFLICT
            }
            JobError::NoRecovery { .. } => StatusCode::CONFLICT,
            JobError::Changed { .. } => StatusCode::PRECONDITION_FAILED,
            JobError::Invalid { problems } => return Problem::fields(&problems),
            JobError::Flow(error) => return error.into(),
            JobError::Store(error) => return error.into(),
        };
        Problem::new(status, code, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_may_heal_is_no_fault_of_the_caller() {
        let away = StoreError::NotWritable { source: "disk full".into() };
        let response = Problem::from(away).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    }

    #[test]
    fn every_field_is_pointed_at() {
        let problem = Problem::fields(&[
            FieldError::new("payload.for", "no span"),
            FieldError::new("queue", "no name"),
        ]);
        let pointers: Vec<_> = problem.0.errors.iter().map(|field| field.pointer.as_str()).collect();
        assert_eq!((problem.0.status, pointers), (422, vec!["/payload/for", "/queue"]));
    }
}
