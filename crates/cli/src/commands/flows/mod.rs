//! `orchestrator flows ...`: definitions, in files and in the registry.

mod apply;
mod graph;
mod list;
mod show;
mod validate;

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::session::{Missing, Session};
use clap::{Args, Subcommand};
use orchestrator_store::{FlowChange, FlowChanged};
use serde_json::json;

/// `flows ...`
#[derive(Debug, Subcommand)]
pub enum FlowsCommand {
    /// Check flow files and tell everything that is wrong, with file, line and column
    Validate(validate::ValidateArgs),
    /// Put flows into the registry, each as a new version unless nothing changed
    Apply(apply::ApplyArgs),
    /// List the flows of the registry
    List(list::ListArgs),
    /// Show a flow of the registry
    Show(show::ShowArgs),
    /// Draw a flow
    Graph(graph::GraphArgs),
    /// Take a flow out of the registry; its jobs go on
    Delete(DeleteArgs),
    /// Write the JSON Schema of flow files, for editors
    #[command(before_help = "Examples:
  orchestrator flows schema > flow.schema.json
  orchestrator flows schema | jq .properties")]
    Schema,
}

/// Arguments of `flows delete`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator flows delete dataset-build
  orchestrator flows delete dataset-build --json")]
pub struct DeleteArgs {
    /// Its name
    name: String,
}

/// Runs a `flows` command.
pub async fn run(command: FlowsCommand, globals: &Globals) -> CliResult {
    match command {
        FlowsCommand::Validate(args) => validate::run(&args, globals),
        FlowsCommand::Apply(args) => apply::run(&args, globals).await,
        FlowsCommand::List(args) => list::run(&args, globals).await,
        FlowsCommand::Show(args) => show::run(&args, globals).await,
        FlowsCommand::Graph(args) => graph::run(&args, globals).await,
        FlowsCommand::Delete(args) => delete(&args, globals).await,
        FlowsCommand::Schema => {
            globals.output().json(&orchestrator_flowfile::json_schema())?;
            Ok(Exit::Ok)
        }
    }
}

async fn delete(args: &DeleteArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let answers = store.change_flows(vec![FlowChange::Retire(args.name.as_str().into())]).await?;
    store.close().await;
    if answers.first() != Some(&FlowChanged::Retired) {
        return Err(CliError::new(Exit::NotFound, "not_found", format!("there is no flow {:?}", args.name))
            .hint("`orchestrator flows list` shows what there is"));
    }
    if session.out.is_table() {
        session.out.line(format!("{}  deleted; its jobs go on", args.name))?;
    } else {
        session.out.json(&json!({ "flow": args.name, "result": "deleted" }))?;
    }
    Ok(Exit::Ok)
}
