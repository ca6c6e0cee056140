//! `orchestrator demo`: a first run that needs nothing. A real flow and real jobs, real retries, a
//! real limit.

use super::queue::serve::{Ended, Plan, serve};
use super::run::{End, Terms, work_on};
use crate::cli::Globals;
use crate::config::Flag;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::flow::source::refused;
use crate::intake::{Intake, JobFields};
use crate::jobs::find;
use crate::jobs::submit::{apply, submit};
use crate::live::{Live, report};
use crate::session::{Missing, Session};
use crate::signals::Signal;
use clap::Args;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{Json, LimitRule, Millis, NewJob};
use orchestrator_engine::Engine;
use orchestrator_flowfile::{FlowFile, Format};
use orchestrator_store::Store;
use orchestrator_store::Submitted;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The flow that it runs.
const FLOW: &str = include_str!("flow.yaml");

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator demo
  orchestrator demo --keep ./demo && orchestrator --db ./demo/orchestrator.db queue stats")]
pub struct DemoArgs {
    /// Keep the database in this directory, to look at it later [default: a scratch directory]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Runs the flow, then the jobs, and says what to try next.
pub async fn run(args: DemoArgs, globals: &Globals) -> CliResult {
    let scratch = match args.keep {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|error| CliError::io(&std::env::temp_dir(), &error))?),
    };
    let dir = match (&args.keep, &scratch) {
        (Some(dir), _) => dir.clone(),
        (None, Some(scratch)) => scratch.path().to_owned(),
        (None, None) => PathBuf::from("."),
    };
    std::fs::create_dir_all(&dir).map_err(|error| CliError::io(&dir, &error))?;
    let db = dir.join("orchestrator.db");
    let session = session(globals, &db)?;
    let store = session.open(Missing::Create).await?;
    let result = show(&session, &store, &dir, &db, args.keep.is_some()).await;
    store.close().await;
    result
}

async fn show(session: &Session, store: &Arc<dyn Store>, dir: &Path, db: &Path, kept: bool) -> CliResult {
    let out = session.out;
    if run_flow(session, store, dir).await? == Exit::Interrupted {
        return Ok(Exit::Interrupted);
    }
    let (created, duplicates) = submit_jobs(session, &session.engine(store.clone()), dir).await?;
    out.note(format!(
        "\nput in {created} single jobs, {duplicates} of the lines named a job that was there already\n"
    ));
    let plan = Plan { queues: vec![DEFAULT_QUEUE.into()], drain: true, service: false };
    let (report, ended) = serve(session, store.clone(), plan).await?;
    report.tell(out)?;
    if ended == Ended::Asked(Signal::Interrupt) {
        return Ok(Exit::Interrupted);
    }
    if out.is_table() {
        out.note(format!("\n{}", next_steps(kept, db)));
    }
    Ok(Exit::Ok)
}

/// Runs the flow with the live view.
async fn run_flow(session: &Session, store: &Arc<dyn Store>, dir: &Path) -> CliResult {
    let file = FlowFile::from_text("flow.yaml", FLOW, Format::Yaml);
    let plan = Arc::new(file.and_then(|file| file.plan()).map_err(|report| refused(&report))?);
    apply(&**store, &plan).await?;
    let dir = dir.canonicalize().map_err(|error| CliError::io(dir, &error))?;
    let job = NewJob::of_flow(plan).payload(json!({ "dir": dir }).into());
    let id = submit(&session.engine(store.clone()), job).await?.id();
    let job = find::job(&**store, &id.to_string()).await?;
    let mut live = Live::start(session.out, false);
    let terms = Terms { patience: None, lease_ttl: Millis::secs(10) };
    let ended = work_on(session, store, &job, terms, &mut live).await;
    live.finish();
    match ended? {
        End::Job(job) if session.out.is_table() => report(session.out, &job),
        End::Job(job) => session.out.event(&json!({ "event": "flow", "job": job })).map(|()| Exit::Ok),
        End::Patience(_) | End::Asked => Ok(Exit::Interrupted),
    }
}

/// Settings that show much in little time: short waits, and a limit that is felt.
fn session(globals: &Globals, db: &Path) -> CliResult<Session> {
    let quick = [
        ("retry.initial", "500ms"),
        ("retry.max", "1s"),
        ("retry.max_retries", "2"),
        ("queue.max_workers", "8"),
    ];
    let mut flags: Vec<_> =
        quick.into_iter().map(|(key, value)| Flag { key, name: "demo", value: value.to_owned() }).collect();
    flags.push(Flag { key: "store.db", name: "demo", value: db.display().to_string() });
    let globals = Globals { db: None, ..globals.clone() };
    let session = Session::start(&globals, flags)?;
    let mut config = session.config.clone();
    let key = "host:slow.example"
        .parse()
        .map_err(|error| CliError::new(Exit::Error, "invalid", format!("{error}")))?;
    config.limits.insert(key, LimitRule::at_most(2));
    Ok(session.with_config(config).on_database())
}

async fn submit_jobs(session: &Session, engine: &Engine, dir: &Path) -> CliResult<(usize, usize)> {
    let mut intake = Intake::new(&session.config, session.registry(), false);
    let jobs = jobs(dir).into_iter().map(|fields| intake.job(fields)).collect::<Result<Vec<_>, _>>();
    let jobs = jobs.map_err(|problems| CliError::fields("a job of the demo was not taken in", &problems))?;
    let answers =
        engine.submit(jobs).await.map_err(|error| CliError::new(Exit::Error, "submit", error.to_string()))?;
    let created = answers.iter().filter(|answer| matches!(answer, Submitted::Created { .. })).count();
    Ok((created, answers.len() - created))
}

fn jobs(dir: &Path) -> Vec<JobFields> {
    let job = |id: &str, handler: &str, payload: Value| JobFields {
        artifact_id: Some(id.to_owned()),
        handler: Some(handler.to_owned()),
        payload: Some(Json::from(payload)),
        ..JobFields::default()
    };
    let shell = |script: &str| json!({ "run": ["sh", "-c", script], "cwd": dir });
    let mut jobs = vec![];
    for n in 1..=8 {
        jobs.push(job(&format!("nap-{n}"), "sleep", json!({ "for": format!("{}ms", 200 + 100 * (n % 4)) })));
    }
    for n in 1..=6 {
        jobs.push(job(
            &format!("hash-{n}"),
            "command",
            shell(&format!("sleep 0.{n}; echo '{{\"n\": {n}}}'")),
        ));
    }
    for n in 1..=6 {
        let mut slow = job(&format!("slow-host-{n}"), "sleep", json!({ "for": "500ms" }));
        slow.limits = BTreeMap::from([("host".to_owned(), "slow.example".to_owned())]);
        jobs.push(slow);
    }
    // The duplicate: the same id and payload as the first nap.
    jobs.push(jobs[0].clone());
    // 75 asks for another attempt; the second one finds the file and works.
    jobs.push(job(
        "flaky",
        "command",
        shell("test -e second-try || { touch second-try; echo 'not yet' >&2; exit 75; }"),
    ));
    jobs.push(job("nothing-to-do", "command", shell("echo '\"already there\"'; exit 3")));
    jobs.push(job("broken", "command", shell("echo 'this one never works' >&2; exit 1")));
    jobs.push(JobFields { priority: Some("high".to_owned()), ..job("urgent", "noop", Value::Null) });
    jobs
}

fn next_steps(kept: bool, db: &Path) -> String {
    let mut lines = vec![
        "What you saw: a flow with a retry, a part per text, and a part that failed without harm; then jobs"
            .to_owned(),
        "of which a duplicate joined its job, a host was held to 2 at once, one was retried, and one ended"
            .to_owned(),
        "in the dead letters. Try next:".to_owned(),
    ];
    if kept {
        let db = db.display();
        lines.push(format!("  orchestrator --db {db} jobs list"));
        lines.push(format!("  orchestrator --db {db} dead-letter list"));
    }
    lines.push("  orchestrator run examples/flows/dataset-build.yaml".to_owned());
    lines.push("  orchestrator flows graph examples/flows/optional-branch.yaml".to_owned());
    lines.push("  orchestrator queue import --help".to_owned());
    lines.join("\n")
}
