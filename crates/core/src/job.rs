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
    /// What it carries along beside its payload.
    pub meta: Meta,
    /// A document that is kept with it.
    pub document: Option<Document>,
}

/// What a job carries along, for those who look for it or follow it. No task needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The caller's own facts, an object. Jobs are found by its fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Json>,
    /// What ties it to other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
    /// The trace that it belongs to, as W3C writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Arc<str>>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Arc<str>>,
}

impl Meta {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Meta::default()
    }

    /// The text as which it is kept; none where there is nothing. A context stands first in it.
    pub fn text(&self) -> Option<String> {
        // Texts and JSON are what JSON can hold.
        (!self.is_empty()).then(|| serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads it back from what was kept.
    pub fn from_text(text: Option<&str>) -> Result<Meta, serde_json::Error> {
        text.map_or(Ok(Meta::default()), serde_json::from_str)
    }

    /// Whether the context has a field with a value.
    pub fn has_context(&self, field: &str, value: &Json) -> bool {
        let context = self.context.as_ref().map(Json::value);
        context.as_ref().and_then(|context| context.get(field)).is_some_and(|found| *found == value.value())
    }

    fn problems(&self) -> Vec<FieldError> {
        let mut found = vec![];
        if let Some(context) = &self.context {
            if !context.as_str().trim_start().starts_with('{') {
                found.push(FieldError::new("context", "must be an object"));
            } else if context.size() > MAX_CONTEXT {
                found.push(FieldError::new(
                    "context",
                    format!("{} bytes is over the limit of {MAX_CONTEXT}", context.size()),
                ));
            } else if context.is_too_deep() {
                found.push(FieldError::new(
                    "context",
                    format!("nested deeper than {} levels", Json::MAX_DEPTH),
                ));
            }
        }
        let words = [
            ("correlation_id", &self.correlation_id),
            ("traceparent", &self.traceparent),
            ("user", &self.user),
        ];
        for (field, word) in words.into_iter().filter_map(|(field, word)| Some((field, word.as_ref()?))) {
            if !is_word(word) {
                found.push(bad_word(field));
            }
        }
        found
    }
}

/// The largest context, in bytes.
pub const MAX_CONTEXT: usize = 64 << 10;
/// The longest correlation id or user, in bytes.
pub const MAX_WORD: usize = 255;

/// A document that is kept with a job.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    name: Arc<str>,
    media_type: Arc<str>,
    content: Arc<[u8]>,
    sha256: Arc<str>,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {} bytes)", self.name, self.media_type, self.content.len())
    }
}

impl Document {
    /// A document by the name that the caller gives it, and what it is, such as `application/pdf`.
    pub fn new(
        name: impl Into<Arc<str>>,
        media_type: impl Into<Arc<str>>,
        content: impl Into<Arc<[u8]>>,
    ) -> Self {
        use sha2::Digest;
        let content = content.into();
        let sha256: String =
            sha2::Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        Document { name: name.into(), media_type: media_type.into(), content, sha256: sha256.into() }
    }

    /// Its name, as the caller calls it.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it is.
    pub fn media_type(&self) -> &Arc<str> {
        &self.media_type
    }

    /// It.
    pub fn content(&self) -> &Arc<[u8]> {
        &self.content
    }

    /// The SHA-256 of the content, in hexadecimal. Made once, when the document was.
    pub fn sha256(&self) -> &Arc<str> {
        &self.sha256
    }

    fn problems(&self) -> Vec<FieldError> {
        let given = [("document.name", &self.name), ("document.media_type", &self.media_type)];
        given.into_iter().filter(|(_, text)| !is_word(text)).map(|(field, _)| bad_word(field)).collect()
    }
}

/// Whether a text is short and can be shown on a line.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_WORD && !text.chars().any(char::is_control)
}

fn bad_word(field: &str) -> FieldError {
    FieldError::new(field, format!("must have 1 to {MAX_WORD} bytes without control characters"))
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
            meta: Meta::default(),
            document: None,
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

    /// With what it carries along.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = meta;
        self
    }

    /// With a document.
    pub fn document(mut self, document: Document) -> Self {
        self.document = Some(document);
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
            if key.text.contains('\0') {
                found.push(FieldError::new("artifact_id", "must not hold the character zero".to_owned()));
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
        found.extend(self.meta.problems());
        found.extend(self.document.iter().flat_map(Document::problems));
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
    fn what_a_job_carries_along_is_checked_too() {
        let meta = Meta {
            context: Some(Json::parse("[1]").unwrap()),
            correlation_id: Some("a\nb".into()),
            traceparent: Some("".into()),
            user: Some("u".repeat(256).into()),
        };
        let job = NewJob::new("noop").meta(meta).document(Document::new("", "text/plain", *b"x"));
        let fields: Vec<_> = job.problems(DEFAULT_MAX_PAYLOAD).into_iter().map(|p| p.field).collect();
        assert_eq!(fields, ["context", "correlation_id", "traceparent", "user", "document.name"]);
        let large = Json::of(&serde_json::json!({ "a": "x".repeat(MAX_CONTEXT) })).unwrap();
        let job = NewJob::new("noop").meta(Meta { context: Some(large), ..Meta::default() });
        assert_eq!(job.problems(DEFAULT_MAX_PAYLOAD).len(), 1);
    }

    #[test]
    fn what_a_job_carries_along_reads_back() {
        assert_eq!(Meta::default().text(), None);
        assert_eq!(Meta::from_text(None).unwrap(), Meta::default());
        let context = Json::parse(r#"{"b": 1.50, "a": null}"#).unwrap();
        let meta = Meta { context: Some(context), user: Some("ann".into()), ..Meta::default() };
        let text = meta.text().unwrap();
        assert_eq!(text, r#"{"context":{"b": 1.50, "a": null},"user":"ann"}"#);
        assert_eq!(Meta::from_text(Some(&text)).unwrap(), meta);
        assert!(meta.has_context("a", &Json::null()) && meta.has_context("b", &Json::parse("1.5").unwrap()));
        assert!(!meta.has_context("b", &Json::parse("1").unwrap()) && !meta.has_context("c", &Json::null()));
    }

    #[test]
    fn a_document_knows_its_digest() {
        let document = Document::new("a.txt", "text/plain", *b"abc");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(&**document.sha256(), expected);
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
