//! `orchestrator jobs status`

use super::progress;
use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::jobs::{find, shown};
use crate::output::{Output, Paint, age, took};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{JobState, TaskState, Timestamp};
use orchestrator_store::{Catalog, JobView, TaskView};
use serde_json::json;

/// So many failed items are shown.
const SHOWN_ITEMS: usize = 20;

/// Arguments of `jobs status`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator jobs status 019a8f00
  orchestrator jobs status 019a8f00 --failed")]
pub struct StatusArgs {
    /// The job: its id, or the start of it
    job: String,
    /// Only how far it is
    #[arg(long, conflicts_with = "failed")]
    progress: bool,
    /// Only what went wrong, items too
    #[arg(long)]
    failed: bool,
}

/// Shows a job.
pub async fn run(args: &StatusArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let job = find::job(&*store, &args.job).await?;
    let out = session.out;
    if args.progress {
        let engine = session.engine(store.clone());
        progress::show(out, &engine, &job).await?;
    } else if args.failed {
        failed(out, &*store, &job).await?;
    } else if out.is_table() {
        table(out, &job, store.now())?;
    } else {
        out.json(&job)?;
    }
    store.close().await;
    Ok(Exit::Ok)
}

fn table(out: Output, job: &JobView, now: Timestamp) -> CliResult<()> {
    let word = out.paint(shown::job_paint(job.state), job.state.as_str());
    out.line(format!("{}  {word}", out.paint(Paint::Bold, &job.id.to_string())))?;
    let mut facts = vec![("flow", shown::work(job))];
    facts.extend(job.key.iter().map(|key| ("key", key.to_string())));
    facts.push(("created", format!("{} ({} ago)", shown::moment(job.created), age(now.since(job.created)))));
    facts.extend(shown::job_took(job, now).map(|span| ("took", took(span))));
    let live = !job.state.is_terminal();
    facts.extend(job.deadline.filter(|_| live).map(|at| ("deadline", format!("in {}", age(at.since(now))))));
    facts.extend(job.previous.map(|id| ("previous", id.to_string())));
    facts.extend(job.waits_for.iter().map(|id| ("waits for", id.to_string())));
    if job.recoveries > 0 {
        facts.push(("recoveries", format!("{} of {}", job.recoveries, job.max_recoveries)));
    }
    facts.extend(job.reason.iter().map(|reason| ("reason", reason.clone())));
    for (name, value) in facts {
        out.line(format!("  {name:<10} {value}"))?;
    }
    out.line("")?;
    out.data(&shown::task_table(out, job, &job.tasks, now))?;
    if let Some(output) = job.output.as_ref().filter(|_| job.state == JobState::Completed) {
        out.line(format!("\noutput\n{}", shown::pretty(output)))?;
    }
    if job.is_recoverable() {
        out.note(format!("`orchestrator jobs recover {}` takes it up again", job.id));
    }
    Ok(())
}

/// Whether a task went wrong.
fn is_bad(task: &TaskView) -> bool {
    matches!(task.state, TaskState::Failed | TaskState::TimedOut)
}

async fn failed(out: Output, store: &dyn Catalog, job: &JobView) -> CliResult<()> {
    let mut tasks: Vec<TaskView> = vec![];
    for task in job.tasks.iter().filter(|task| is_bad(task)) {
        tasks.push(task.clone());
        let items = find::items(store, job.id, task).await?;
        tasks.extend(items.into_iter().filter(is_bad));
    }
    if !out.is_table() {
        return out.json(&json!({ "job": job.id, "state": job.state, "reason": job.reason, "tasks": tasks }));
    }
    if tasks.is_empty() {
        out.note(format!("nothing failed; the job is {}", job.state));
        return Ok(());
    }
    for task in tasks.iter().take(SHOWN_ITEMS) {
        let head = format!("{} {}", shown::icon(task.state), task.name);
        out.line(format!("{}  {}", out.paint(Paint::Red, &head), task.state))?;
        for record in &task.history {
            match record.attempt {
                0 => out.line(format!("  before any attempt: {}", record.message))?,
                attempt => out.line(format!("  attempt {attempt}: {}", record.message))?,
            }
        }
    }
    if tasks.len() > SHOWN_ITEMS {
        out.line(format!("... and {} more", tasks.len() - SHOWN_ITEMS))?;
    }
    Ok(())
}
