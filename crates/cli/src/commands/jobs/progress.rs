//! `orchestrator jobs progress`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::jobs::{find, shown};
use crate::output::{Output, age};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_engine::Engine;
use orchestrator_store::JobView;

/// Arguments of `jobs progress`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator jobs progress 019a8f00
  orchestrator jobs progress 019a8f00 --json")]
pub struct ProgressArgs {
    /// The job: its id, or the start of it
    job: String,
}

/// Tells how far a job is.
pub async fn run(args: &ProgressArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let job = find::job(&*store, &args.job).await?;
    let engine = session.engine(store.clone());
    show(session.out, &engine, &job).await?;
    store.close().await;
    Ok(Exit::Ok)
}

/// Writes the progress of a job.
pub async fn show(out: Output, engine: &Engine, job: &JobView) -> CliResult<()> {
    let progress = engine.handle(job.id).progress().await?;
    if !out.is_table() {
        return out.json(&progress);
    }
    let eta = progress.eta.map(|eta| format!("  eta {}", age(eta))).unwrap_or_default();
    out.line(format!(
        "{}%  {}  {} of {} tasks completed, {} running, {} failed{eta}",
        progress.progress,
        progress.status,
        progress.completed_tasks,
        progress.total_steps,
        progress.running_tasks,
        progress.failed_tasks,
    ))?;
    out.data(&shown::task_table(out, job, &job.tasks, engine.store().now()))
}
