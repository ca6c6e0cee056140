//! `orchestrator jobs rerun`

use super::watch;
use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::flow::source::{compile, registered};
use crate::jobs::input::{InputArgs, parse};
use crate::jobs::submit::submit;
use crate::jobs::{find, shown};
use crate::live::report;
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{Json, Millis, NewJob, human};
use orchestrator_store::{Catalog, JobView};
use serde_json::json;
use std::io::IsTerminal;
use std::process::Command;
use std::sync::Arc;

/// Arguments of `jobs rerun`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator jobs rerun 019a8f00 --input-field source=https://example.org/other
  orchestrator jobs rerun 019a8f00 --edit --latest")]
pub struct RerunArgs {
    /// The job: its id, or the start of it
    job: String,
    /// Another input, or other fields of the old one.
    #[command(flatten)]
    input: InputArgs,
    /// Edit the old input first, with $VISUAL or $EDITOR
    #[arg(long, conflicts_with_all = ["input", "input_field"])]
    edit: bool,
    /// Run the current version of the flow, and not that of the old job
    #[arg(long)]
    latest: bool,
    /// Wait until the job has ended, at most this long; somebody must run it
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, value_parser = human::parse_span)]
    wait: Option<Option<Millis>>,
}

/// Makes a new job.
pub async fn run(args: &RerunArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let out = session.out;
    let store = session.open(Missing::Fail).await?;
    let old = find::job(&*store, &args.job).await?;
    let input = match args.edit {
        true => edit(&old.payload)?,
        false => args.input.read(Some(&old.payload), session.max_payload())?,
    };
    let new = again(&*store, &old, args.latest).await?;
    let new = new.payload(input).tenant(old.tenant.clone()).priority(old.priority).rerun_of(old.id);
    let engine = session.engine(store.clone());
    let id = submit(&engine, new).await?.id();
    let exit = match args.wait {
        Some(limit) => {
            out.note(format!("job {id}"));
            let job = watch::wait(out, &engine, id, limit).await?;
            report(out, &job)
        }
        None if out.is_table() => {
            out.note(format!("`orchestrator run --resume {id}` runs it"));
            out.line(format!("created, job {id}, again {}", old.id)).map(|()| Exit::Ok)
        }
        None => out.json(&json!({ "result": "created", "job": id, "previous": old.id })).map(|()| Exit::Ok),
    };
    store.close().await;
    exit
}

/// The same work as that of a job.
async fn again(store: &dyn Catalog, job: &JobView, latest: bool) -> CliResult<NewJob> {
    let Some(flow) = &job.flow else {
        let task = job.task();
        return Ok(NewJob::with_spec(task.spec.clone()).limits(task.limits.clone()));
    };
    let name = match latest {
        true => flow.name.to_string(),
        false => format!("{}@{}", flow.name, flow.version),
    };
    let view = registered(&name, Some(store)).await?;
    Ok(NewJob::of_flow(Arc::new(compile(&view)?)))
}

/// Lets a person change an input.
fn edit(input: &Json) -> CliResult<Json> {
    let chosen =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|e| !e.is_empty()));
    if chosen.is_none() && !std::io::stdin().is_terminal() {
        return Err(CliError::usage("there is no terminal to edit on").hint("give --input or --input-field"));
    }
    let editor = chosen.unwrap_or_else(|| "vi".to_owned());
    let dir = tempfile::tempdir().map_err(|error| CliError::io(&std::env::temp_dir(), &error))?;
    let path = dir.path().join("input.json");
    std::fs::write(&path, shown::pretty(input) + "\n").map_err(|error| CliError::io(&path, &error))?;
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let failed = |why: String| CliError::new(Exit::Error, "editor", format!("{editor}: {why}"));
    let status =
        Command::new(program).args(words).arg(&path).status().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("ended with {status}; nothing was submitted")));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| CliError::io(&path, &error))?;
    parse(&text, "the edited input")
}
