//! What a caller submits.

use crate::flow::Plan;
use crate::flow::template::TemplateError;
use crate::id::JobId;
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

/// A job as it is submitted.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Whose job it is.
    pub tenant: Arc<str>,
    /// What makes the submit safe to repeat.
    pub key: Option<Key>,
    /// What is to be done.
    pub work: Work,
    /// What the handler gets, or the flow's input.
    pub payload: Json,
    /// How urgent it is.
    pub priority: Priority,
    /// Not before this moment.
    pub run_at: Option<Timestamp>,
    /// Not before these jobs have completed. Where one ends badly, this one is cancelled.
    pub after: Vec<JobId>,
    /// The job that this one repeats.
    pub rerun_of: Option<JobId>,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Work {
    /// One task.
    Task {
        /// How it is run; jobs of a batch share it.
        spec: Arc<TaskSpec>,
        /// The limits under which it runs.
        limits: Limits,
    },
    /// The tasks of a flow.
    Flow(Arc<Plan>),
}

impl Work {
    /// What idempotency keys are unique in, beside the tenant: the handler, or the flow.
    pub fn key_scope(&self) -> Arc<str> {
        match self {
            Work::Task { spec, .. } => spec.handler.clone(),
            Work::Flow(plan) => plan.key_scope(),
        }
    }
}

/// The most jobs that one job may wait for.
pub const MAX_AFTER: usize = 100;

impl NewJob {
    /// A job for a handler, with the defaults for the rest.
    pub fn new(handler: &str) -> Self {
        NewJob::with_spec(Arc::new(TaskSpec::new(handler)))
    }

    /// A job of one task that runs under `spec`.
    pub fn with_spec(spec: Arc<TaskSpec>) -> Self {
        NewJob::of(Work::Task { spec, limits: Limits::none() })
    }

    /// A job of a flow. Its key is the one that the flow makes of the input, see [`NewJob::derive_key`].
    pub fn of_flow(plan: Arc<Plan>) -> Self {
        let priority = plan.def().priority.unwrap_or_default();
        NewJob { priority, ..NewJob::of(Work::Flow(plan)) }
    }

    fn of(work: Work) -> Self {
        NewJob {
            tenant: DEFAULT_TENANT.into(),
            key: None,
            work,
            payload: Json::null(),
            priority: Priority::Normal,
            run_at: None,
            after: vec![],
            rerun_of: None,
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

    /// Under limits. The tasks of a flow have theirs in its definition.
    pub fn limits(mut self, limits: Limits) -> Self {
        if let Work::Task { limits: own, .. } = &mut self.work {
            *own = limits;
        }
        self
    }

    /// Not before a job has completed.
    pub fn after(mut self, job: JobId) -> Self {
        self.after.push(job);
        self
    }

    /// As a repetition of a job.
    pub fn rerun_of(mut self, job: JobId) -> Self {
        self.rerun_of = Some(job);
        self
    }

    /// The name that people see: the handler, or the flow.
    pub fn name(&self) -> &str {
        match &self.work {
            Work::Task { spec, .. } => &spec.handler,
            Work::Flow(plan) => plan.name(),
        }
    }

    /// Takes the key that the flow makes of the input, unless the caller gave one.
    pub fn derive_key(&mut self) -> Result<(), TemplateError> {
        if let (None, Work::Flow(plan)) = (&self.key, &self.work) {
            self.key = plan.derive_key(&self.payload)?;
        }
        Ok(())
    }

    /// Not before a moment.
    pub fn run_at(mut self, at: Timestamp) -> Self {
        self.run_at = Some(at);
        self
    }

    /// Everything that is wrong with it, all at once.
    pub fn problems(&self, max_payload: usize) -> Vec<FieldError> {
        let mut found = vec![];
        let spec = match &self.work {
            Work::Task { spec, .. } => Some(spec),
            Work::Flow(_) => None,
        };
        let names = [
            ("tenant", Some(&self.tenant)),
            ("queue", spec.map(|spec| &spec.queue)),
            ("handler", spec.map(|spec| &spec.handler)),
        ];
        for (field, name) in names.into_iter().filter_map(|(field, name)| Some((field, name?))) {
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
        if self.payload.is_too_deep() {
            let message = format!("nested deeper than {} levels: nothing could read it", Json::MAX_DEPTH);
            found.push(FieldError::new("payload", message));
        }
        if self.after.len() > MAX_AFTER {
            found.push(FieldError::new(
                "after",
                format!("at most {MAX_AFTER} jobs, not {}", self.after.len()),
            ));
        }
        match &self.work {
            Work::Task { spec, .. } => {
                if spec.timeout.is_some_and(|timeout| timeout.0 == 0) {
                    found.push(FieldError::new("timeout", "must be longer than zero".to_owned()));
                }
                if spec.retry.base == 0 {
                    found.push(FieldError::new("retry.base", "must be at least 1".to_owned()));
                }
            }
            Work::Flow(plan) => found.extend(plan.check_input(&self.payload)),
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

    #[test]
    fn a_payload_that_nothing_could_read_is_refused() {
        // As a part of a larger document it is taken over without a look inside.
        let nested = |depth: usize| -> Vec<Json> {
            serde_json::from_str(&format!("[{}{}]", "[".repeat(depth), "]".repeat(depth))).unwrap()
        };
        let problems =
            |depth| NewJob::new("noop").payload(nested(depth)[0].clone()).problems(DEFAULT_MAX_PAYLOAD);
        assert_eq!(problems(Json::MAX_DEPTH), []);
        for depth in [Json::MAX_DEPTH + 1, 10_000] {
            let message = "nested deeper than 100 levels: nothing could read it";
            assert_eq!(problems(depth), [FieldError::new("payload", message)]);
        }
    }
}
