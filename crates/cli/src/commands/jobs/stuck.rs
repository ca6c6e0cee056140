//! `orchestrator jobs stuck`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::jobs::shown;
use crate::output::{age, columns, cut};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{Millis, human};
use serde_json::json;

/// So much of a reason stands in the table.
const SHOWN_REASON: usize = 110;

/// Arguments of `jobs stuck`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator jobs stuck
  orchestrator jobs stuck --older-than 1m --json")]
pub struct StuckArgs {
    /// How long nothing must have moved
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = human::parse_span)]
    older_than: Millis,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// Lists the jobs.
pub async fn run(args: &StuckArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let stuck = session.engine(store.clone()).stuck(args.older_than, args.limit).await?;
    store.close().await;
    let out = session.out;
    if !out.is_table() {
        let documents = stuck.iter().map(|stuck| {
            let mut document = shown::summary(&stuck.job);
            document["idle_ms"] = json!(stuck.idle.0);
            document["reasons"] = json!(stuck.reasons);
            document
        });
        out.json_list(&documents.collect::<Vec<_>>())?;
        return Ok(Exit::Ok);
    }
    if stuck.is_empty() {
        out.note(format!("everything moves: no live job has been still for {}", args.older_than));
        return Ok(Exit::Ok);
    }
    let rows = stuck.iter().flat_map(|stuck| {
        stuck.reasons.iter().map(|why| {
            let task = why.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
            vec![
                stuck.job.id.to_string(),
                cut(&shown::work(&stuck.job), 24),
                age(stuck.idle),
                cut(&format!("{task}{}", why.reason), SHOWN_REASON),
            ]
        })
    });
    out.data(&columns(&["JOB", "FLOW", "STILL FOR", "WHY"], &[], rows.collect()))?;
    Ok(Exit::Ok)
}
