//! `orchestrator jobs prune`

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::{Output, count};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{Millis, human};
use orchestrator_engine::{Pruned, Retention};
use serde_json::json;
use std::path::PathBuf;

/// After so many jobs it is told how far it is.
const STEP: u64 = 10_000;

/// Arguments of `jobs prune`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator jobs prune --older-than 30d --dry-run
  orchestrator jobs prune --older-than 90d --failed --archive old-jobs",
    after_help = "Without --failed and --dead-letters only jobs that completed are removed. A job that is removed frees its
key, so a submit with the same key runs anew. [retention] in the configuration does the same by itself."
)]
pub struct PruneArgs {
    /// Remove jobs that ended longer ago than this, such as 12h or 30d
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span, allow_hyphen_values = true)]
    older_than: Millis,
    /// Also those that failed, timed out or were cancelled
    #[arg(long)]
    failed: bool,
    /// Also those with a dead letter on which nobody has decided
    #[arg(long)]
    dead_letters: bool,
    /// Write them as JSON lines into this directory before they go [default: retention.archive]
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// Only count them
    #[arg(long)]
    dry_run: bool,
}

/// Removes old jobs.
pub async fn run(args: &PruneArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let archive = args.archive.clone().or(session.retention().archive);
    if let Some(file) = archive.as_ref().filter(|path| path.exists() && !path.is_dir()) {
        return Err(CliError::usage("the archive is a file, not a directory")
            .at(file.display().to_string())
            .hint("--archive DIR names a directory, which is made where there is none"));
    }
    let retention = Retention {
        completed: Some(args.older_than),
        failed: args.failed.then_some(args.older_than),
        dead_letters: args.dead_letters.then_some(args.older_than),
        archive,
        // Somebody waits for it.
        rest: 1,
        ..Retention::default()
    };
    let store = session.open(Missing::Fail).await?;
    let engine = session.engine(store.clone());
    let out = session.out;
    let pruned = if args.dry_run {
        engine.prunable(&retention).await
    } else {
        let mut next = STEP;
        let told = |so_far: &Pruned| {
            if so_far.jobs >= next {
                out.note(format!("{} jobs so far", count(so_far.jobs)));
                next = so_far.jobs + STEP;
            }
        };
        engine.prune(&retention, told).await
    };
    store.close().await;
    report(out, args, &retention, &pruned?)?;
    Ok(Exit::Ok)
}

fn report(out: Output, args: &PruneArgs, retention: &Retention, pruned: &Pruned) -> CliResult<()> {
    let Pruned { jobs, tasks, archived, .. } = *pruned;
    if !out.is_table() {
        let archive = retention.archive.as_ref().filter(|_| archived > 0);
        return out.json(&json!({
            "jobs": jobs, "tasks": tasks, "archived": archived, "archive": archive, "dry_run": args.dry_run,
        }));
    }
    let noun = |n: u64, one: &str| format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" });
    let what = format!("{} with {}", noun(jobs, "job"), noun(tasks, "task"));
    match &retention.archive {
        _ if args.dry_run => out.line(format!("would remove {what}")),
        Some(dir) if archived > 0 => out.line(format!("removed {what}, archived in {}", dir.display())),
        _ => out.line(format!("removed {what}")),
    }
}
