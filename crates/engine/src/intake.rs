//! Jobs as people write them: a line of a file, flags, the body of a request. They become jobs that are checked whole:
//! names, spans, limits, and the payload by its handler or its flow.

use crate::document::DocumentFields;
use orchestrator_core::flow::Plan;
use orchestrator_core::human::near;
use orchestrator_core::{
    FieldError, JobId, Json, Key, LimitKey, Limits, Millis, NewJob, Priority, RetryPolicy, TaskSpec,
    Timestamp,
};
use orchestrator_worker::Registry;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A job as people write it. Only one of `handler` and `flow` is required.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JobFields {
    /// The caller's own id of the work: the same one twice is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(min_length = 1, max_length = 512))]
    pub artifact_id: Option<String>,
    /// Who runs it, where it is no job of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<orchestrator_core::schema::Name>))]
    pub handler: Option<String>,
    /// What the handler gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// The flow that it runs, instead of a handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<orchestrator_core::schema::Name>))]
    pub flow: Option<String>,
    /// What the flow gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The line in which it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<orchestrator_core::schema::Name>))]
    pub queue: Option<String>,
    /// `critical`, `high`, `normal` or `low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Priority>))]
    pub priority: Option<String>,
    /// Not before this moment (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Timestamp>))]
    pub run_at: Option<String>,
    /// How often a failed attempt is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The longest that one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(schema_with = orchestrator_core::schema::some_span))]
    pub timeout: Option<Millis>,
    /// Names by kind: `{"resolver": "unpaywall", "host": "example.org"}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// Whose job it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<orchestrator_core::schema::Name>))]
    pub tenant: Option<String>,
    /// How long `artifact_id` holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(schema_with = orchestrator_core::schema::some_span))]
    pub window: Option<Millis>,
    /// Not before these jobs have completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(max_items = 100))]
    pub after: Vec<JobId>,
    /// The caller's own facts, an object; jobs are found by its fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub context: Option<Json>,
    /// What ties it to other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(min_length = 1, max_length = 255))]
    pub correlation_id: Option<String>,
    /// The trace that it belongs to, as W3C writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How failed attempts are repeated, in full; `max_retries` is put into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// How many crashes make it a poison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_crashes: Option<u32>,
    /// The job that it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_of: Option<JobId>,
    /// A document that is kept with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentFields>,
    /// What could not be read of it. It is told with all else that is wrong when the job is made.
    #[serde(skip)]
    pub wrong: Vec<FieldError>,
}

impl JobFields {
    /// Reads a JSON object. Fields that cannot be read, and those that there are not, are noted in [`JobFields::wrong`], so
    /// that the rest can be checked, too. Where the text as a whole is no object, only that is told.
    pub fn parse(text: &str) -> Result<JobFields, FieldError> {
        // Mostly all is well, and then one pass does.
        serde_json::from_str(text).or_else(|error| field_by_field(text, &error))
    }
}

/// Reads each field alone.
fn field_by_field(text: &str, error: &serde_json::Error) -> Result<JobFields, FieldError> {
    let message = |error: &serde_json::Error| error.to_string().replace(" at line 1 column ", ", column ");
    let Ok(mut given) = serde_json::from_str::<BTreeMap<String, Json>>(text) else {
        return Err(FieldError::new("json", message(error)));
    };
    let (mut fields, mut problems) = (JobFields::default(), vec![]);
    macro_rules! check {
        ($($field:ident: $type:ty),* $(,)?) => {{
            $(match given.remove(stringify!($field)).map(|json| json.read::<$type>()) {
                Some(Ok(value)) => fields.$field = value,
                Some(Err(error)) => {
                    let text = error.to_string();
                    let text = text.split(" at line ").next().unwrap_or(&text);
                    problems.push(FieldError::new(stringify!($field), text));
                }
                None => {}
            })*
            [$(stringify!($field)),*]
        }};
    }
    let known = check!(
        artifact_id: Option<String>, handler: Option<String>, payload: Option<Json>, flow: Option<String>,
        input: Option<Json>, queue: Option<String>, priority: Option<String>, run_at: Option<String>,
        max_retries: Option<u32>, timeout: Option<Millis>, limits: BTreeMap<String, String>, tenant: Option<String>,
        window: Option<Millis>, after: Vec<JobId>, context: Option<Json>, correlation_id: Option<String>,
        traceparent: Option<String>, user: Option<String>, retry: Option<RetryPolicy>, max_crashes: Option<u32>,
        rerun_of: Option<JobId>, document: Option<DocumentFields>,
    );
    for name in given.keys() {
        let meant = near(name, known).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        problems.push(FieldError::new(name.as_str(), format!("there is no such field{meant}")));
    }
    if problems.is_empty() {
        // Such as a field that is given twice.
        return Err(FieldError::new("json", message(error)));
    }
    Ok(JobFields { wrong: problems, ..fields })
}

/// What holds for jobs that say nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How failed attempts are repeated.
    pub retry: RetryPolicy,
    /// The longest that one attempt may take.
    pub timeout: Millis,
    /// How many crashes make a task a poison.
    pub max_crashes: u32,
    /// The largest payload, in bytes.
    pub max_payload: usize,
}

/// Makes jobs, which are checked before they are submitted.
pub struct Intake {
    rules: Rules,
    registry: Registry,
    allow_unknown_handler: bool,
    /// Jobs with equal rules share them.
    specs: HashMap<TaskSpec, Arc<TaskSpec>>,
}

/// So many different rules are remembered at most.
const MAX_SPECS: usize = 1024;

impl Intake {
    /// Checks against rules and the handlers that there are. Where handlers that are not known are allowed, workers
    /// elsewhere have them.
    pub fn new(rules: Rules, registry: Registry, allow_unknown_handler: bool) -> Self {
        Intake { rules, registry, allow_unknown_handler, specs: HashMap::new() }
    }

    /// The largest payload, in bytes.
    pub fn max_payload(&self) -> usize {
        self.rules.max_payload
    }

    /// Makes the job, or says everything that is wrong with it. `find` gives the flow of a name, or says why not.
    pub fn job(
        &mut self,
        mut fields: JobFields,
        find: impl FnOnce(&str) -> Result<Arc<Plan>, String>,
    ) -> Result<NewJob, Vec<FieldError>> {
        if let Some(flow) = fields.flow.take() {
            return self.job_of_flow(find(&flow), fields);
        }
        let mut problems = std::mem::take(&mut fields.wrong);
        let Some(handler) = fields.handler.take().filter(|handler| !handler.is_empty()) else {
            // One that could not be read, or was misspelt, is told already.
            if !problems
                .iter()
                .any(|problem| problem.field == "handler" || problem.message.ends_with("handler?"))
            {
                problems.push(FieldError::new("handler", "name a handler, or a flow"));
            }
            return Err(problems);
        };
        if fields.input.is_some() {
            problems.push(FieldError::new("input", "is for a flow; a handler gets a payload"));
        }
        let spec = self.spec(&handler, &fields);
        let payload = fields.payload.take().unwrap_or_default();
        let limits = self.limits(&handler, &payload, &fields.limits, &mut problems);
        let job = NewJob::with_spec(spec).payload(payload).limits(limits);
        let job = complete(job, fields, &mut problems);
        problems.extend(job.problems(self.rules.max_payload));
        match self.registry.get(&handler) {
            Some(handler) if problems.is_empty() => problems.extend(handler.check(&job.payload)),
            None if !self.allow_unknown_handler => {
                problems.insert(0, FieldError::new("handler", unknown_handler(&self.registry, &handler)))
            }
            Some(_) | None => {}
        }
        if problems.is_empty() { Ok(job) } else { Err(problems) }
    }

    /// A job of a flow; what the flow itself defines, the fields cannot.
    fn job_of_flow(
        &mut self,
        plan: Result<Arc<Plan>, String>,
        mut fields: JobFields,
    ) -> Result<NewJob, Vec<FieldError>> {
        let mut problems = std::mem::take(&mut fields.wrong);
        let own =
            own_of_flow(&fields).map(|field| FieldError::new(field, "is for a handler; a flow has its own"));
        problems.extend(own);
        let plan = match plan {
            Ok(plan) => plan,
            Err(message) => {
                problems.insert(0, FieldError::new("flow", message));
                return Err(problems);
            }
        };
        // An input without fields, so that what is missing is told by name.
        let input = fields.input.take().unwrap_or_else(|| Json::trusted("{}"));
        let job = complete(NewJob::of_flow(plan).payload(input), fields, &mut problems);
        problems.extend(job.problems(self.rules.max_payload));
        if problems.is_empty() { Ok(job) } else { Err(problems) }
    }

    fn spec(&mut self, handler: &str, fields: &JobFields) -> Arc<TaskSpec> {
        let mut spec = TaskSpec::new(handler).with_retry(fields.retry.unwrap_or(self.rules.retry));
        spec.timeout = Some(fields.timeout.unwrap_or(self.rules.timeout));
        spec.max_crashes = fields.max_crashes.unwrap_or(self.rules.max_crashes);
        if let Some(queue) = &fields.queue {
            spec = spec.on_queue(queue.as_str());
        }
        if let Some(max_retries) = fields.max_retries {
            spec.retry.max_retries = max_retries;
        }
        if let Some(known) = self.specs.get(&spec) {
            return known.clone();
        }
        if self.specs.len() >= MAX_SPECS {
            self.specs.clear();
        }
        let shared = Arc::new(spec.clone());
        self.specs.insert(spec, shared.clone());
        shared
    }

    /// The limits that the fields name, and those that the handler knows to follow from the payload.
    fn limits(
        &self,
        handler: &str,
        payload: &Json,
        named: &BTreeMap<String, String>,
        problems: &mut Vec<FieldError>,
    ) -> Limits {
        let mut keys = vec![];
        for (kind, name) in named {
            match LimitKey::new(kind, name) {
                Ok(key) => keys.push(key),
                Err(error) => problems.push(FieldError::new("limits", error.to_string())),
            }
        }
        let limits = Limits::new(keys).and_then(|named| match self.registry.get(handler) {
            Some(handler) => handler.limits(payload, named),
            None => Ok(named),
        });
        limits.unwrap_or_else(|error| {
            problems.push(FieldError::new("limits", error.to_string()));
            Limits::none()
        })
    }
}

/// What is said of a handler that this program does not have.
pub fn unknown_handler(registry: &Registry, name: &str) -> String {
    let known: Vec<&str> = registry.names().map(|name| &**name).collect();
    let shown: String = name.chars().take(60).collect();
    let meant =
        near(name, known.iter().copied()).map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
    format!("{shown:?} is not known here; there are {}{meant}", known.join(", "))
}

/// The fields given that make no sense beside a flow.
fn own_of_flow(fields: &JobFields) -> impl Iterator<Item = &'static str> {
    let given = [
        ("handler", fields.handler.as_ref().is_some_and(|handler| !handler.is_empty())),
        ("payload", fields.payload.is_some()),
        ("queue", fields.queue.is_some()),
        ("max_retries", fields.max_retries.is_some()),
        ("retry", fields.retry.is_some()),
        ("max_crashes", fields.max_crashes.is_some()),
        ("timeout", fields.timeout.is_some()),
        ("limits", !fields.limits.is_empty()),
    ];
    given.into_iter().filter(|(_, given)| *given).map(|(field, _)| field)
}

/// Adds what jobs of handlers and of flows have alike.
fn complete(mut job: NewJob, fields: JobFields, problems: &mut Vec<FieldError>) -> NewJob {
    let priority = read(problems, "priority", fields.priority.as_deref(), |text| {
        text.parse::<Priority>().map_err(|error| error.to_string())
    });
    job.priority = priority.unwrap_or(job.priority);
    job.run_at = read(problems, "run_at", fields.run_at.as_deref(), |text| {
        text.parse::<Timestamp>().map_err(|error| error.to_string())
    });
    if let Some(tenant) = fields.tenant {
        job = job.tenant(tenant);
    }
    job.after = fields.after;
    job.meta.context = fields.context;
    job.meta.correlation_id = fields.correlation_id.map(Into::into);
    job.meta.traceparent = fields.traceparent.map(Into::into);
    job.meta.user = fields.user.map(Into::into);
    job.rerun_of = fields.rerun_of;
    job.document = fields.document.and_then(|document| match document.read() {
        Ok(document) => Some(document),
        Err(message) => {
            problems.push(FieldError::new("document.content", message));
            None
        }
    });
    match (fields.artifact_id, fields.window) {
        (Some(id), Some(window)) => job.key(Key::within(id, window)),
        (Some(id), None) => job.key(Key::new(id)),
        (None, Some(_)) => {
            problems.push(FieldError::new("window", "is the time for which an artifact_id holds: give one"));
            job
        }
        (None, None) => job,
    }
}

fn read<T>(
    problems: &mut Vec<FieldError>,
    field: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    match parse(text?) {
        Ok(value) => Some(value),
        Err(message) => {
            problems.push(FieldError::new(field, message));
            None
        }
    }
}
