//! `orchestrator flows apply`

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::flow::source::{self, Flow};
use crate::output::Paint;
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_store::{FlowChange, FlowChanged};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `flows apply`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator flows apply dataset-build.yaml
  orchestrator flows apply flows/*.yaml --json")]
pub struct ApplyArgs {
    /// The files; all of them, or none if one is wrong
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Applies the files.
pub async fn run(args: &ApplyArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let out = session.out;
    let flows = load(&args.files)?;
    let registry = session.registry();
    for flow in &flows {
        let misfits = flow.misfits(&registry);
        if let Some(wrong) = &misfits.wrong {
            return Err(source::refused(wrong));
        }
        for warning in misfits.unknown.iter().flat_map(|report| report.findings()) {
            out.note(format!("{} {warning}", out.paint_err(Paint::Yellow, "warning:")));
        }
    }
    let store = session.open(Missing::Create).await?;
    let changes = flows.iter().map(|flow| FlowChange::Apply(flow.plan.clone())).collect();
    let answers = store.change_flows(changes).await?;
    store.close().await;
    let mut documents = vec![];
    for (flow, answer) in flows.iter().zip(answers) {
        let (version, result) = match answer {
            FlowChanged::Created(version) => (version, "created"),
            FlowChanged::Restored(version) => (version, "restored"),
            FlowChanged::Unchanged(version) => (version, "unchanged"),
            FlowChanged::Retired | FlowChanged::NotFound => {
                return Err(CliError::new(Exit::Error, "store", "the store answered something else"));
            }
        };
        if out.is_table() {
            out.line(format!("{}@{version}  {result}", flow.plan.name()))?;
        } else {
            documents.push(json!({
                "flow": flow.plan.name(), "version": version, "result": result, "hash": flow.plan.hash(),
            }));
        }
    }
    if !out.is_table() {
        out.json_list(&documents)?;
    }
    Ok(Exit::Ok)
}

/// All files, or everything that is wrong with them.
fn load(files: &[PathBuf]) -> CliResult<Vec<Flow>> {
    let (mut flows, mut wrong) = (vec![], vec![]);
    for path in files {
        match source::load(path) {
            Ok(flow) => flows.push(flow),
            Err(report) => wrong.push(source::refused(&report)),
        }
    }
    if wrong.len() <= 1 {
        return wrong.pop().map_or(Ok(flows), Err);
    }
    let error = CliError::new(
        Exit::Usage,
        "invalid_flow",
        format!("{} files are wrong; nothing was applied", wrong.len()),
    );
    Err(CliError { details: wrong.into_iter().flat_map(|error| error.details).collect(), ..error })
}
