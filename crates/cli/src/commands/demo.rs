//! `orchestrator demo`: a first run that needs nothing. Real jobs, real retries, a real limit.

use super::queue::serve::{Plan, serve};
use crate::cli::Globals;
use crate::config::Flag;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::intake::{Intake, JobFields};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{Json, LimitRule};
use orchestrator_engine::Engine;
use orchestrator_store::Submitted;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

/// Puts the jobs in, runs them, and says what to try next.
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
    let store = session.open(Missing::Create)?;
    let (created, duplicates) = submit(&session, &session.engine(store.clone()), &dir).await?;
    let out = session.out;
    out.note(format!(
        "put in {created} jobs, {duplicates} of the lines named a job that was there already\n"
    ));
    let served =
        serve(&session, store.clone(), Plan { queues: vec![DEFAULT_QUEUE.into()], drain: true }).await;
    store.close();
    let (report, _) = served?;
    report.tell(out)?;
    if out.is_table() {
        out.note(format!("\n{}", next_steps(args.keep.is_some(), &db)));
    }
    Ok(Exit::Ok)
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
    flags.push(Flag { key: "store.path", name: "demo", value: db.display().to_string() });
    let globals = Globals { db: None, ..globals.clone() };
    let session = Session::start(&globals, flags)?;
    let mut config = session.config.clone();
    let key = "host:slow.example"
        .parse()
        .map_err(|error| CliError::new(Exit::Error, "invalid", format!("{error}")))?;
    config.limits.insert(key, LimitRule::at_most(2));
    Ok(session.with_config(config))
}

async fn submit(session: &Session, engine: &Engine, dir: &Path) -> CliResult<(usize, usize)> {
    let mut intake = Intake::new(session.config.clone(), session.registry(), false);
    let jobs = jobs(dir).into_iter().map(|fields| intake.job(fields)).collect::<Result<Vec<_>, _>>();
    let jobs = jobs.map_err(|problems| CliError::fields("a job of the demo was not taken in", &problems))?;
    let answers =
        engine.submit(jobs).await.map_err(|error| CliError::new(Exit::Error, "submit", error.to_string()))?;
    let created = answers.iter().filter(|answer| matches!(answer, Submitted::Created { .. })).count();
    Ok((created, answers.len() - created))
}

fn jobs(dir: &Path) -> Vec<JobFields> {
    let job = |id: &str, handler: &str, payload: Value| JobFields {
        artifact_id: id.to_owned(),
        handler: handler.to_owned(),
        payload: Json::from(payload),
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
        "What you saw: a duplicate joined its job, a host was held to 2 at once, one job failed once and"
            .to_owned(),
        "was retried, one ended in the dead letters. Try next:".to_owned(),
    ];
    if kept {
        let db = db.display();
        lines.push(format!("  orchestrator --db {db} queue stats"));
        lines.push(format!("  orchestrator --db {db} queue retry-failed --dry-run"));
    }
    lines.push(
        "  orchestrator queue enqueue --artifact-id hello --handler sleep --payload '{\"for\": \"1s\"}'"
            .to_owned(),
    );
    lines.push("  orchestrator queue run --drain".to_owned());
    lines.push("  orchestrator queue import --help".to_owned());
    lines.join("\n")
}
