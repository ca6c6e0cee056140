//! Turns the fields of a job, as a line of a file or as flags give them, into a job that is checked
//! whole: names, spans, limits, and the payload by its handler or its flow.

use crate::config::{Config, near};
use crate::flow::current::{self, Current};
use orchestrator_core::{
    FieldError, Json, Key, LimitKey, Limits, Millis, NewJob, Priority, TaskSpec, Timestamp,
};
use orchestrator_store::StoreError;
use orchestrator_worker::Registry;
use orchestrator_worker::builtin;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A job as people write it. Only `artifact_id` and one of `handler` and `flow` are required.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFields {
    /// The caller's own id of the work: the same one twice is the same job.
    pub artifact_id: String,
    /// Who runs it; empty where it is a job of a flow.
    #[serde(default)]
    pub handler: String,
    /// What the handler gets.
    #[serde(default)]
    pub payload: Json,
    /// The flow that it runs, instead of a handler.
    pub flow: Option<String>,
    /// What the flow gets.
    pub input: Option<Json>,
    /// The line in which it waits.
    pub queue: Option<String>,
    /// `critical`, `high`, `normal` or `low`.
    pub priority: Option<String>,
    /// Not before this moment (RFC 3339).
    pub run_at: Option<String>,
    /// How often a failed attempt is repeated.
    pub max_retries: Option<u32>,
    /// The longest that one attempt may take.
    pub timeout: Option<Millis>,
    /// Names by kind: `{"resolver": "unpaywall", "host": "example.org"}`.
    #[serde(default)]
    pub limits: BTreeMap<String, String>,
    /// Whose job it is.
    pub tenant: Option<String>,
    /// How long `artifact_id` holds.
    pub window: Option<Millis>,
}

/// Checks jobs before they are submitted.
pub struct Intake {
    config: Config,
    registry: Registry,
    allow_unknown_handler: bool,
    /// Jobs with equal rules share them.
    specs: HashMap<TaskSpec, Arc<TaskSpec>>,
    flows: Option<Current>,
}

/// So many different rules are remembered at most.
const MAX_SPECS: usize = 1024;

impl Intake {
    /// Checks against a configuration and the handlers that there are.
    pub fn new(config: Config, registry: Registry, allow_unknown_handler: bool) -> Self {
        Intake { config, registry, allow_unknown_handler, specs: HashMap::new(), flows: None }
    }

    /// Takes jobs of flows, too.
    pub fn with_flows(mut self, flows: Option<Current>) -> Self {
        self.flows = flows;
        self
    }

    /// Begins a new batch, which gets the flows as they are now.
    pub fn begin_batch(&mut self) {
        if let Some(flows) = &mut self.flows {
            flows.renew();
        }
    }

    /// Why the store could not be asked for a flow, if it could not: no job was wrong then.
    pub fn trouble(&mut self) -> Option<StoreError> {
        self.flows.as_mut().and_then(Current::trouble)
    }

    /// The longest line that can hold a job: its payload, and room for the other fields.
    pub fn max_line(&self) -> usize {
        self.max_payload().saturating_add(64 << 10)
    }

    fn max_payload(&self) -> usize {
        usize::try_from(self.config.queue.max_payload.0).unwrap_or(usize::MAX)
    }

    /// Reads a line of JSON.
    pub fn line(&mut self, text: &str) -> Result<NewJob, Vec<FieldError>> {
        let fields: JobFields = serde_json::from_str(text).map_err(|error| vec![unreadable(text, &error)])?;
        self.job(fields)
    }

    /// Makes the job, or says everything that is wrong with it.
    pub fn job(&mut self, mut fields: JobFields) -> Result<NewJob, Vec<FieldError>> {
        if let Some(flow) = fields.flow.take() {
            return self.job_of_flow(&flow, fields);
        }
        let mut problems = vec![];
        if fields.handler.is_empty() {
            problems.push(FieldError::new("handler", "name a handler, or a flow"));
            return Err(problems);
        }
        if fields.input.is_some() {
            problems.push(FieldError::new("input", "is for a flow; a handler gets a payload"));
        }
        let limits = self.limits(&fields, &mut problems);
        let spec = self.spec(&fields);
        let handler = spec.handler.clone();
        let job = NewJob::with_spec(spec).payload(std::mem::take(&mut fields.payload)).limits(limits);
        let job = complete(job, fields, &mut problems);
        problems.extend(job.problems(self.max_payload()));
        match self.registry.get(&handler) {
            Some(handler) if problems.is_empty() => problems.extend(handler.check(&job.payload)),
            None if !self.allow_unknown_handler => {
                problems.insert(0, FieldError::new("handler", unknown_handler(&self.registry, &handler)))
            }
            Some(_) | None => {}
        }
        if problems.is_empty() { Ok(job) } else { Err(problems) }
    }

    /// A job of a flow; what the flow itself defines, a line cannot.
    fn job_of_flow(&mut self, flow: &str, mut fields: JobFields) -> Result<NewJob, Vec<FieldError>> {
        let mut problems: Vec<_> = own_of_flow(&fields)
            .map(|field| FieldError::new(field, "is for a handler; a flow has its own"))
            .collect();
        let plan = match &mut self.flows {
            Some(flows) => flows.find(flow),
            None => Err(current::unknown(flow)),
        };
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
        problems.extend(job.problems(self.max_payload()));
        if problems.is_empty() { Ok(job) } else { Err(problems) }
    }

    fn spec(&mut self, fields: &JobFields) -> Arc<TaskSpec> {
        let mut spec = TaskSpec::new(fields.handler.as_str()).with_retry(self.config.retry);
        spec.timeout = Some(fields.timeout.unwrap_or(self.config.task.timeout));
        spec.max_crashes = self.config.task.max_crashes;
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

    /// The limits that the fields name, and those that follow from the payload: a download starts
    /// under its first source, a call under its host.
    fn limits(&self, fields: &JobFields, problems: &mut Vec<FieldError>) -> Limits {
        let mut keys = vec![];
        for (kind, name) in &fields.limits {
            match LimitKey::new(kind, name) {
                Ok(key) => keys.push(key),
                Err(error) => problems.push(FieldError::new("limits", error.to_string())),
            }
        }
        match fields.handler.as_str() {
            "download" => {
                if let Some(first) = builtin::first_limits(&fields.payload) {
                    keys.retain(|key| !matches!(key.kind(), "host" | "resolver"));
                    keys.extend(first.keys().iter().cloned());
                }
            }
            "http" if !fields.limits.contains_key("host") => keys.extend(host_of_call(&fields.payload)),
            _ => {}
        }
        Limits::new(keys).unwrap_or_else(|error| {
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
        ("handler", !fields.handler.is_empty()),
        ("payload", fields.payload != Json::null()),
        ("queue", fields.queue.is_some()),
        ("max_retries", fields.max_retries.is_some()),
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
    job.run_at = read(problems, "run_at", fields.run_at.as_deref(), parse_moment);
    if let Some(tenant) = fields.tenant {
        job = job.tenant(tenant);
    }
    job.key(match fields.window {
        Some(window) => Key::within(fields.artifact_id, window),
        None => Key::new(fields.artifact_id),
    })
}

fn host_of_call(payload: &Json) -> Option<LimitKey> {
    #[derive(Deserialize)]
    struct Call {
        url: String,
    }
    let call: Call = payload.read().ok()?;
    LimitKey::new("host", &builtin::host_key(&call.url)?).ok()
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

fn parse_moment(text: &str) -> Result<Timestamp, String> {
    text.parse::<jiff::Timestamp>()
        .map(|moment| Timestamp::from_millis(moment.as_millisecond()))
        .map_err(|_| format!("{text:?} is not a moment; write it as 2026-11-15T06:00:00Z"))
}

/// Names the field where serde does; the line number is always 1 and says nothing.
fn unreadable(text: &str, error: &serde_json::Error) -> FieldError {
    let message = error.to_string().replace(" at line 1 column ", ", column ");
    let field = if error.is_data() && text.trim_start().starts_with('{') { "fields" } else { "json" };
    FieldError::new(field, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};
    use orchestrator_core::Work;
    use orchestrator_worker::builtin::{BuiltinConfig, registry};

    fn intake() -> Intake {
        let sources = Sources {
            env: vec![("ORCHESTRATOR_MAX_PAYLOAD".to_owned(), "1KB".to_owned())],
            ..Sources::default()
        };
        Intake::new(load(&sources).unwrap().config, registry(BuiltinConfig::default()), false)
    }

    fn task(job: &NewJob) -> (&Arc<TaskSpec>, &Limits) {
        match &job.work {
            Work::Task { spec, limits } => (spec, limits),
            Work::Flow(_) => panic!("a line is a job of one task"),
        }
    }

    fn problems(text: &str) -> String {
        let found = intake().line(text).err().unwrap_or_default();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_whole_line_is_understood() {
        let mut intake = intake();
        let line = r#"{"artifact_id": "doi:10.1/x", "handler": "sleep", "payload": {"for": "1s"}, "queue": "papers",
            "priority": "high", "run_at": "2026-11-15T06:00:00Z", "max_retries": 5, "timeout": "90s", "tenant": "lab",
            "window": "24h", "limits": {"resolver": "unpaywall", "host": "example.org"}}"#;
        let job = intake.line(line).unwrap();
        let (spec, limits) = task(&job);
        assert_eq!(job.key, Some(Key::within("doi:10.1/x", Millis::hours(24))));
        assert_eq!((&*spec.queue, &*spec.handler, &*job.tenant), ("papers", "sleep", "lab"));
        assert_eq!((spec.retry.max_retries, spec.timeout), (5, Some(Millis::secs(90))));
        assert_eq!(
            (job.priority, job.run_at),
            (Priority::High, Some(Timestamp::from_millis(1_794_722_400_000)))
        );
        let keys: Vec<_> = limits.keys().iter().map(LimitKey::as_str).collect();
        assert_eq!(keys, ["host:example.org", "resolver:unpaywall"]);
        assert!(Arc::ptr_eq(task(&intake.line(line).unwrap()).0, spec), "equal rules are shared");
    }

    #[test]
    fn only_id_and_handler_are_required() {
        let job = intake().line(r#"{"artifact_id": "a", "handler": "noop"}"#).unwrap();
        assert_eq!(
            (job.payload.as_str(), &*task(&job).0.queue, job.priority),
            ("null", "default", Priority::Normal)
        );
        assert!(problems(r#"{"handler": "noop"}"#).contains("missing field `artifact_id`"));
        assert_eq!(problems(r#"{"artifact_id": "a"}"#), "handler: name a handler, or a flow");
    }

    #[test]
    fn a_flow_has_an_input_and_its_own_rules() {
        let found = problems(r#"{"artifact_id": "a", "flow": "x", "payload": 1, "queue": "q", "input": {}}"#);
        for part in ["flow: there is no flow \"x\"", "payload: is for a handler", "queue: is for a handler"] {
            assert!(found.contains(part), "{part} not in\n{found}");
        }
        let found = problems(r#"{"artifact_id": "a", "handler": "noop", "input": {}}"#);
        assert_eq!(found, "input: is for a flow; a handler gets a payload");
    }

    #[test]
    fn everything_wrong_with_a_line_is_told() {
        let found = problems(
            r#"{"artifact_id": "", "handler": "slep", "queue": "a b", "priority": "urgent", "run_at": "soon", "limits": {"HOST": "x"}}"#,
        );
        for part in [
            "handler: \"slep\" is not known here",
            "did you mean sleep?",
            "queue:",
            "priority:",
            "run_at:",
            "limits:",
            "artifact_id:",
        ] {
            assert!(found.contains(part), "{part} not in\n{found}");
        }
    }

    #[test]
    fn broken_lines_say_how() {
        assert!(problems("{\"artifact_id\": }").starts_with("json: expected value, column 17"));
        assert!(problems("7").starts_with("json: invalid type"));
        assert!(
            problems(r#"{"artifact_id":"a","handler":"noop","colour":1}"#).contains("unknown field `colour`")
        );
        assert!(
            problems(r#"{"artifact_id":"a","handler":"sleep","payload":{"for":"soon"}}"#)
                .starts_with("payload.for:")
        );
        let fat = format!(r#"{{"artifact_id":"a","handler":"noop","payload":"{}"}}"#, "x".repeat(1000));
        assert!(problems(&fat).contains("payload: 1002 bytes is over the limit of 1000"));
    }

    #[test]
    fn downloads_and_calls_get_their_limits_from_the_payload() {
        let keys = |text: &str| -> Vec<String> {
            task(&intake().line(text).unwrap()).1.keys().iter().map(ToString::to_string).collect()
        };
        let download = r#"{"artifact_id":"a","handler":"download","limits":{"lab":"x"},
            "payload":{"sources":[{"resolver":"unpaywall","url":"https://A.example/x.pdf"}]}}"#;
        assert_eq!(keys(download), ["host:a.example", "lab:x", "resolver:unpaywall"]);
        assert_eq!(
            keys(r#"{"artifact_id":"a","handler":"http","payload":{"url":"https://b.example/"}}"#),
            ["host:b.example"]
        );
    }
}
