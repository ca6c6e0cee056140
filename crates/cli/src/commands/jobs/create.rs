//! `orchestrator jobs create`

use super::watch;
use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::flow::source;
use crate::intake::{Intake, JobFields};
use crate::jobs::submit::{SubmitArgs, apply, submit};
use crate::live::report;
use crate::output::{Output, Paint};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{JobState, Millis, NewJob, human};
use orchestrator_store::{Catalog, Store, Submitted};
use serde_json::json;
use std::sync::Arc;

/// Arguments of `jobs create`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator jobs create dataset-build --input '{\"source\": \"https://example.org\"}'
  orchestrator jobs create --handler sleep --input '{\"for\": \"1s\"}' --after 019a8f00 --wait",
    after_help = "Puts the job in and does not run it: `orchestrator run --resume JOB` or `orchestrator queue run` does."
)]
pub struct CreateArgs {
    /// The flow: a file, or the name of an applied flow
    #[arg(required_unless_present = "handler")]
    flow: Option<String>,
    /// One task of this handler, instead of a flow
    #[arg(long, value_name = "HANDLER", conflicts_with = "flow")]
    handler: Option<String>,
    /// The queue of that one task [default: default]
    #[arg(long, value_name = "QUEUE", requires = "handler")]
    queue: Option<String>,
    /// What the job gets.
    #[command(flatten)]
    submit: SubmitArgs,
    /// Not before this span has passed, such as 5m
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span)]
    delay: Option<Millis>,
    /// Wait until the job has ended, at most this long; somebody must run it
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, value_parser = human::parse_span)]
    wait: Option<Option<Millis>>,
}

/// Puts the job in.
pub async fn run(args: CreateArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let out = session.out;
    let (store, job) = match (&args.handler, &args.flow) {
        (Some(handler), _) => {
            let store = session.open(Missing::Create).await?;
            let job = of_handler(&session, handler, &args, &*store).await?;
            (store, job)
        }
        (None, Some(flow)) => {
            let (store, job) = of_flow(&session, flow).await?;
            let job = args.submit.complete(job, &session, &*store).await?;
            (store, job)
        }
        (None, None) => return Err(CliError::usage("name a flow, or a handler with --handler")),
    };
    let job = match args.delay {
        Some(delay) => job.run_at(store.now() + delay),
        None => job,
    };
    let engine = session.engine(store.clone());
    let answer = submit(&engine, job).await?;
    let exit = match args.wait {
        None => tell(out, &answer),
        Some(limit) => {
            if out.is_table() {
                tell(out, &answer)?;
            }
            let job = watch::wait(out, &engine, answer.id(), limit).await?;
            report(out, &job)
        }
    };
    store.close().await;
    exit
}

async fn of_flow(session: &Session, text: &str) -> CliResult<(Arc<dyn Store>, NewJob)> {
    let loaded = if source::means_file(text) { Some(source::find(text, None).await?) } else { None };
    let store = session.open(if loaded.is_some() { Missing::Create } else { Missing::Fail }).await?;
    let flow = match loaded {
        Some(flow) => {
            apply(&*store as &dyn Store, &flow.plan).await?;
            flow
        }
        None => source::find(text, Some(&*store)).await?,
    };
    let misfits = flow.misfits(&session.registry());
    if let Some(wrong) = &misfits.wrong {
        return Err(source::refused(wrong));
    }
    let out = session.out;
    for warning in misfits.unknown.iter().flat_map(|report| report.findings()) {
        out.note(format!("{} {warning}", out.paint_err(Paint::Yellow, "warning:")));
    }
    Ok((store, NewJob::of_flow(flow.plan)))
}

/// A job of one task. It is checked like one of the queue, but needs no key.
async fn of_handler(
    session: &Session,
    handler: &str,
    args: &CreateArgs,
    store: &dyn Catalog,
) -> CliResult<NewJob> {
    let mut intake = Intake::new(&session.config, session.registry(), false);
    let fields = JobFields {
        handler: Some(handler.to_owned()),
        payload: Some(args.submit.input.read(None, session.max_payload())?),
        queue: args.queue.clone(),
        ..JobFields::default()
    };
    let job =
        intake.job(fields).map_err(|problems| CliError::fields("the job was not taken in", &problems))?;
    args.submit.complete(job, session, store).await
}

fn tell(out: Output, answer: &Submitted) -> CliResult {
    let (result, state, previous) = match answer {
        Submitted::Created { previous, .. } => ("created", JobState::Pending, *previous),
        Submitted::Existing { state, .. } => ("existing", *state, None),
        Submitted::Conflict { .. } => ("conflict", JobState::Pending, None),
    };
    if !out.is_table() {
        out.json(&json!({ "result": result, "job": answer.id(), "state": state, "previous": previous }))?;
        return Ok(Exit::Ok);
    }
    match previous {
        Some(previous) => {
            out.line(format!("{result}, job {}, after job {previous} that ended badly", answer.id()))?
        }
        None => out.line(format!("{result}, job {} {state}", answer.id()))?,
    }
    if state == JobState::Pending {
        out.note(format!("`orchestrator run --resume {}` runs it", answer.id()));
    }
    Ok(Exit::Ok)
}
