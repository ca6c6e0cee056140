//! `orchestrator flows list`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::output::{age, columns, cut};
use crate::session::{Missing, Session};
use clap::Args;

/// Arguments of `flows list`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator flows list
  orchestrator flows list --json")]
pub struct ListArgs {}

/// Lists the flows.
pub async fn run(_: &ListArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let (views, now) = (store.flows(None).await?, store.now());
    store.close().await;
    if !session.out.is_table() {
        session.out.json_list(&views)?;
        return Ok(Exit::Ok);
    }
    let rows = views.iter().map(|view| {
        let definition = view.definition.value();
        let tasks = definition["tasks"].as_object().map_or(0, serde_json::Map::len);
        vec![
            view.flow.name.to_string(),
            view.flow.version.to_string(),
            tasks.to_string(),
            age(now.since(view.created)),
            cut(definition["description"].as_str().unwrap_or_default(), 50),
        ]
    });
    session.out.data(&columns(
        &["FLOW", "VERSION", "TASKS", "AGE", "DESCRIPTION"],
        &[1, 2],
        rows.collect(),
    ))?;
    if views.is_empty() {
        session.out.note("none yet; `orchestrator flows apply FILE` puts one in");
    }
    Ok(Exit::Ok)
}
