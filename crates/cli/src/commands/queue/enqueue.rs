//! `orchestrator queue enqueue`: one job, from flags.

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::intake::{Intake, JobFields};
use crate::output::{Output, Paint};
use crate::session::{Missing, Session};
use crate::signals::Signals;
use clap::Args;
use orchestrator_core::{FieldError, JobId, JobState, Json, Millis, Priority, human};
use orchestrator_engine::{Engine, SubmitError, WaitError, Waited};
use orchestrator_store::{JobView, Submitted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Arguments of `queue enqueue`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator queue enqueue --artifact-id a1 --handler sleep --payload '{\"for\": \"2s\"}' --wait
  orchestrator queue enqueue --artifact-id a2 --handler command --payload-file job.json --delay 5m")]
pub struct EnqueueArgs {
    /// Your own id of the work: enqueued twice, it is the same job
    #[arg(long, value_name = "ID")]
    artifact_id: String,
    /// Who runs it: noop, sleep, command, http or download
    #[arg(long, value_name = "HANDLER")]
    handler: String,
    /// What the handler gets, as JSON
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// The same from a file; - reads stdin
    #[arg(long, value_name = "FILE")]
    payload_file: Option<PathBuf>,
    /// The queue in which it waits [default: default]
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// critical, high, normal or low
    #[arg(long, value_name = "PRIORITY", default_value_t = Priority::Normal)]
    priority: Priority,
    /// Not before this moment, such as 2026-11-15T06:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    run_at: Option<String>,
    /// Not before this span has passed, such as 5m
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span)]
    delay: Option<Millis>,
    /// How often a failed attempt is repeated [default: retry.max_retries]
    #[arg(long, value_name = "N")]
    max_retries: Option<u32>,
    /// The longest that one attempt may take [default: task.timeout]
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span)]
    timeout: Option<Millis>,
    /// A limit under which it runs, such as resolver=unpaywall; may be repeated
    #[arg(long, value_name = "KIND=NAME", value_parser = limit)]
    limit: Vec<(String, String)>,
    /// Whose job it is [default: default]
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// How long the artifact id holds, such as 24h [default: for ever]
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span)]
    window: Option<Millis>,
    /// Wait until the job has ended, at most this long; some `queue run` must be at work
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, value_parser = human::parse_span)]
    wait: Option<Option<Millis>>,
    /// Take a handler that this program does not have: another program serves it
    #[arg(long)]
    allow_unknown_handler: bool,
}

fn limit(text: &str) -> Result<(String, String), String> {
    match text.split_once(['=', ':']) {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok((kind.to_owned(), name.to_owned())),
        _ => Err("write it as kind=name, such as host=example.org".to_owned()),
    }
}

/// Puts the job in, and waits for it where asked to.
pub async fn run(args: EnqueueArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let mut intake = Intake::new(&session.config, session.registry(), args.allow_unknown_handler);
    let (delay, wait) = (args.delay, args.wait);
    let mut job = intake.job(args.fields(intake.max_line())?).map_err(|problems| refused(&problems))?;
    let store = session.open(Missing::Create).await?;
    if let Some(delay) = delay {
        job = job.run_at(store.now() + delay);
    }
    let engine = session.engine(store.clone());
    let answers = engine.submit(vec![job]).await.map_err(|error| match error {
        SubmitError::Invalid { problems, .. } => refused(&problems),
        SubmitError::Store(error) => error.into(),
    })?;
    let answer =
        answers.first().ok_or_else(|| CliError::new(Exit::Error, "store", "the store did not answer"))?;
    if let Submitted::Conflict { id } = answer {
        return Err(CliError::new(
            Exit::Conflict,
            "conflict",
            "this artifact id has a job with another payload",
        )
        .at(format!("job {id}"))
        .hint("enqueue it with the same payload, under another --artifact-id, or with a --window"));
    }
    let exit = match wait {
        None => {
            tell(session.out, answer, None)?;
            Exit::Ok
        }
        Some(longest) => {
            if session.out.is_table() {
                tell(session.out, answer, None)?;
            }
            let job = wait_for(&engine, answer.id(), longest).await?;
            tell_end(session.out, answer, &job)?
        }
    };
    store.close().await;
    Ok(exit)
}

impl EnqueueArgs {
    fn fields(self, max_payload: usize) -> CliResult<JobFields> {
        let payload = match (self.payload, &self.payload_file) {
            (Some(text), _) => parse(text, "--payload")?,
            (None, Some(path)) => parse(read_payload(path, max_payload)?, &path.display().to_string())?,
            (None, None) => Json::null(),
        };
        Ok(JobFields {
            artifact_id: Some(self.artifact_id),
            handler: Some(self.handler),
            payload: Some(payload),
            queue: self.queue,
            priority: Some(self.priority.to_string()),
            run_at: self.run_at,
            max_retries: self.max_retries,
            timeout: self.timeout,
            limits: BTreeMap::from_iter(self.limit),
            tenant: self.tenant,
            window: self.window,
            ..JobFields::default()
        })
    }
}

fn parse(text: String, place: &str) -> CliResult<Json> {
    Json::parse(text.trim()).map_err(|error| {
        CliError::new(Exit::Usage, "broken_json", format!("the payload is not JSON: {error}"))
            .at(place)
            .hint("quote it for the shell: --payload '{\"for\": \"1s\"}', or use --payload-file")
    })
}

/// Reads no more than one byte too many: enough to know that it is too large.
fn read_payload(path: &Path, max: usize) -> CliResult<String> {
    let failed = |error: std::io::Error| CliError::io(path, &error);
    let mut text = String::new();
    let limit = max as u64 + 1;
    if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_string(&mut text).map_err(failed)?;
    } else {
        std::fs::File::open(path).map_err(failed)?.take(limit).read_to_string(&mut text).map_err(failed)?;
    }
    if text.len() > max {
        return Err(CliError::usage("the payload is over the limit")
            .at(path.display().to_string())
            .hint("queue.max_payload sets it"));
    }
    Ok(text)
}

fn refused(problems: &[FieldError]) -> CliError {
    let error = CliError::fields("the job was not taken in", problems);
    if problems.iter().any(|problem| problem.field == "handler") {
        return error.hint("--allow-unknown-handler takes it for another program to serve");
    }
    error
}

/// Says what came of the submit.
fn tell(out: Output, answer: &Submitted, job: Option<&JobView>) -> CliResult<()> {
    if !out.is_table() {
        return out.json(&as_json(answer, job));
    }
    out.line(match answer {
        Submitted::Created { id, previous: None } => format!("enqueued, job {id}"),
        Submitted::Created { id, previous: Some(previous) } => {
            format!("enqueued, job {id}, after job {previous} that ended badly")
        }
        Submitted::Existing { id, state } => format!("duplicate, job {id} {state}"),
        Submitted::Conflict { id } => format!("conflict, job {id}"),
    })
}

fn as_json(answer: &Submitted, job: Option<&JobView>) -> Value {
    let (result, state, previous) = match answer {
        Submitted::Created { previous, .. } => ("enqueued", JobState::Pending, *previous),
        Submitted::Existing { state, .. } => ("duplicate", *state, None),
        Submitted::Conflict { .. } => ("conflict", JobState::Pending, None),
    };
    let mut value = json!({ "result": result, "job": answer.id(), "state": job.map_or(state, |job| job.state), "previous": previous });
    if let Some(job) = job {
        let task = job.task();
        value["failures"] = json!(task.counters.failures);
        value["output"] = json!(task.output);
        value["error"] = json!(task.history.last().map(|attempt| &attempt.message));
    }
    value
}

async fn wait_for(engine: &Engine, id: JobId, longest: Option<Millis>) -> CliResult<JobView> {
    let mut signals = Signals::listen()?;
    let waited = tokio::select! {
        waited = engine.wait(id, longest.map(Into::into)) => waited,
        _ = signals.next() => return Err(CliError::new(Exit::Interrupted, "interrupted", format!("stopped waiting for job {id}, which goes on"))),
    };
    match waited {
        Ok(Waited::Ended(job)) => Ok(job),
        Ok(Waited::TimedOut(job)) => Err(CliError::new(
            Exit::TimedOut,
            "wait_timed_out",
            format!("the job has not ended: it is {}", job.task().state),
        )
        .at(format!("job {id}"))
        .hint("it goes on without you; `orchestrator queue run` must be at work")),
        Err(WaitError::NotFound(id)) => {
            Err(CliError::new(Exit::NotFound, "not_found", format!("there is no job {id}")))
        }
        Err(WaitError::Store(error)) => Err(error.into()),
    }
}

/// Says how the awaited job ended.
fn tell_end(out: Output, answer: &Submitted, job: &JobView) -> CliResult {
    let well = job.state == JobState::Completed;
    if out.is_table() {
        let word = out.paint(if well { Paint::Green } else { Paint::Red }, job.task().state.as_str());
        let detail = match (&job.task().output, job.task().history.last()) {
            (Some(output), _) if well && output.as_str() != "null" => format!(" {output}"),
            (_, Some(attempt)) if !well => format!(": {}", attempt.message),
            _ => String::new(),
        };
        out.line(format!("{word}{detail}"))?;
    } else {
        tell(out, answer, Some(job))?;
    }
    Ok(if well { Exit::Ok } else { Exit::WorkFailed })
}
