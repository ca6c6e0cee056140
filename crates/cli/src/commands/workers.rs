//! `orchestrator workers`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::output::{age, columns, cut};
use crate::session::{Missing, Session};
use clap::Subcommand;
use orchestrator_core::{Millis, Timestamp};
use orchestrator_store::WorkerView;
use std::sync::Arc;

/// A worker that has said nothing for so long is shown as silent: it missed two of its words.
const SILENT: Millis = Millis::secs(90);
/// So much of a list of names stands in the table.
const SHOWN: usize = 40;

/// The `workers` commands.
#[derive(Debug, Subcommand)]
pub enum WorkersCommand {
    /// List the workers that said something within the last day
    #[command(
        before_help = "Examples:
  orchestrator workers list
  orchestrator workers list --server http://127.0.0.1:8000 --json",
        after_help = "Every process that runs tasks says so when it starts, every 30 s, and when it ends. A worker in another language
does the same with POST /work/register, or is not listed."
    )]
    List,
}

/// Runs a `workers` command.
pub async fn run(command: WorkersCommand, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    match command {
        WorkersCommand::List => list(&session).await,
    }
}

async fn list(session: &Session) -> CliResult {
    let store = session.open(Missing::Fail).await?;
    let (workers, now) = (store.workers().await?, store.now());
    store.close().await;
    let out = session.out;
    if !out.is_table() {
        out.json_list(&workers)?;
        return Ok(Exit::Ok);
    }
    if workers.is_empty() {
        out.note("no worker has said anything within the last day; `orchestrator worker` starts one");
        return Ok(Exit::Ok);
    }
    let names = |names: &[Arc<str>]| cut(&names.join(","), SHOWN);
    let rows = workers.iter().map(|worker| {
        vec![
            worker.note.name.to_string(),
            standing(worker, now).to_owned(),
            format!("{}/{}", worker.running, worker.note.slots),
            names(&worker.note.queues),
            names(&worker.note.handlers),
            age(now.since(worker.last_seen)),
            worker.note.version.to_string(),
        ]
    });
    out.data(&columns(
        &["WORKER", "STATE", "RUNNING", "QUEUES", "HANDLERS", "SEEN", "VERSION"],
        &[],
        rows.collect(),
    ))?;
    Ok(Exit::Ok)
}

fn standing(worker: &WorkerView, now: Timestamp) -> &'static str {
    match worker {
        _ if worker.note.gone => "gone",
        _ if now.since(worker.last_seen) >= SILENT => "silent",
        _ => "working",
    }
}
