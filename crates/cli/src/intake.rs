//! Jobs as a line of a file or flags give them: read, and made with the rules of the configuration.

use crate::config::Config;
use crate::flow::current::{self, Current};
use orchestrator_core::{FieldError, NewJob};
pub use orchestrator_engine::JobFields;
use orchestrator_engine::Rules;
use orchestrator_store::StoreError;
use orchestrator_worker::Registry;

/// What the configuration says of jobs that say nothing else.
pub fn rules(config: &Config) -> Rules {
    Rules {
        retry: config.retry,
        timeout: config.task.timeout,
        max_crashes: config.task.max_crashes,
        max_payload: usize::try_from(config.queue.max_payload.0).unwrap_or(usize::MAX),
    }
}

/// Checks jobs before they are submitted.
pub struct Intake {
    jobs: orchestrator_engine::Intake,
    flows: Option<Current>,
}

impl Intake {
    /// Checks against a configuration and the handlers that there are.
    pub fn new(config: &Config, registry: Registry, allow_unknown_handler: bool) -> Self {
        let jobs = orchestrator_engine::Intake::new(rules(config), registry, allow_unknown_handler);
        Intake { jobs, flows: None }
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
        self.jobs.max_payload().saturating_add(64 << 10)
    }

    /// Reads a line of JSON. It must name its job, so that importing a file twice is safe.
    pub fn line(&mut self, text: &str) -> Result<NewJob, Vec<FieldError>> {
        let mut fields = JobFields::parse(text).map_err(|problem| vec![problem])?;
        if fields.artifact_id.is_none() && !fields.wrong.iter().any(|wrong| wrong.field == "artifact_id") {
            fields.wrong.push(FieldError::new("artifact_id", "is missing: a line must name its job"));
        }
        self.job(fields)
    }

    /// Makes the job, or says everything that is wrong with it.
    pub fn job(&mut self, fields: JobFields) -> Result<NewJob, Vec<FieldError>> {
        let flows = &mut self.flows;
        self.jobs.job(fields, |flow| match flows {
            Some(flows) => flows.find(flow),
            None => Err(current::unknown(flow)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};
    use orchestrator_core::{Key, LimitKey, Limits, Millis, Priority, TaskSpec, Timestamp, Work};
    use orchestrator_worker::builtin::{BuiltinConfig, registry};
    use std::sync::Arc;

    fn intake() -> Intake {
        let sources = Sources {
            env: vec![("ORCHESTRATOR_MAX_PAYLOAD".to_owned(), "1KB".to_owned())],
            ..Sources::default()
        };
        Intake::new(&load(&sources).unwrap().config, registry(BuiltinConfig::default()), false)
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
        assert!(problems(r#"{"handler": "noop"}"#).contains("artifact_id: is missing"));
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
            problems(r#"{"artifact_id":"a","handler":"noop","colour":1}"#)
                .contains("colour: there is no such field")
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
