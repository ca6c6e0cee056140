//! What a caller submits.

use crate::idempotency::{self, Key};
use crate::json::Json;
use crate::limit::Limits;
use crate::order::Priority;
use crate::spec::{MAX_NAME, TaskSpec, is_name};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The tenant of jobs that name none.
pub const DEFAULT_TENANT: &str = "default";

/// The largest payload that is accepted unless the configuration says otherwise.
pub const DEFAULT_MAX_PAYLOAD: usize = 1 << 20;

/// A job of one task, as it is submitted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Whose job it is.
    pub tenant: Arc<str>,
    /// What makes the submit safe to repeat.
    pub key: Option<Key>,
    /// How the task is run; jobs of a batch share it.
    pub spec: Arc<TaskSpec>,
    /// What the handler gets.
    pub payload: Json,
    /// How urgent it is.
    pub priority: Priority,
    /// The limits under which it runs.
    pub limits: Limits,
    /// Not before this moment.
    pub run_at: Option<Timestamp>,
}

impl NewJob {
    /// A job for a handler, with the defaults for the rest.
    pub fn new(handler: &str) -> Self {
        NewJob::with_spec(Arc::new(TaskSpec::new(handler)))
    }

    /// A job that runs under `spec`.
    pub fn with_spec(spec: Arc<TaskSpec>) -> Self {
        NewJob {
            tenant: DEFAULT_TENANT.into(),
            key: None,
            spec,
            payload: Json::null(),
            priority: Priority::Normal,
            limits: Limits::none(),
            run_at: None,
        }
    }

    /// With a payload.
    pub fn payload(mut self, payload: Json) -> Self {
        self.payload = payload;
        self
    }

    /// With an idempotency key.
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// For a tenant.
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// With a priority.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Under limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Not before a moment.
    pub fn run_at(mut self, at: Timestamp) -> Self {
        self.run_at = Some(at);
        self
    }

    /// Everything that is wrong with it, all at once.
    pub fn problems(&self, max_payload: usize) -> Vec<FieldError> {
        let mut found = vec![];
        for (field, name) in
            [("tenant", &self.tenant), ("queue", &self.spec.queue), ("handler", &self.spec.handler)]
        {
            if !is_name(name) {
                let shown: String = name.chars().take(40).collect();
                found.push(FieldError::new(
                    field,
                    format!("{shown:?} is not a name (1 to {MAX_NAME} of A-Z a-z 0-9 . _ - /)"),
                ));
            }
        }
        if let Some(key) = &self.key {
            if key.text.is_empty() || key.text.len() > idempotency::MAX_KEY_LEN {
                found.push(FieldError::new(
                    "artifact_id",
                    format!("must have 1 to {} bytes, has {}", idempotency::MAX_KEY_LEN, key.text.len()),
                ));
            }
            if key.window.is_some_and(|window| window.0 == 0) {
                found.push(FieldError::new("window", "must be longer than zero".to_owned()));
            }
        }
        if self.payload.size() > max_payload {
            found.push(FieldError::new(
                "payload",
                format!("{} bytes is over the limit of {max_payload}", self.payload.size()),
            ));
        }
        if self.spec.timeout.is_some_and(|timeout| timeout.0 == 0) {
            found.push(FieldError::new("timeout", "must be longer than zero".to_owned()));
        }
        if self.spec.retry.base == 0 {
            found.push(FieldError::new("retry.base", "must be at least 1".to_owned()));
        }
        found
    }
}

/// One thing that is wrong with an input, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The field's name.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl FieldError {
    /// A problem with a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        FieldError { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_named_at_once() {
        let job = NewJob::new("no spaces please")
            .key(Key::new(""))
            .tenant("")
            .payload(Json::parse("\"0123456789\"").unwrap());
        let fields: Vec<_> = job.problems(5).into_iter().map(|p| p.field).collect();
        assert_eq!(fields, ["tenant", "handler", "artifact_id", "payload"]);
        assert_eq!(NewJob::new("noop").problems(DEFAULT_MAX_PAYLOAD), []);
    }
}
