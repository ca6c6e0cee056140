//! `orchestrator flows validate`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::flow::source::{self, Flow};
use crate::output::Paint;
use crate::session::Session;
use clap::Args;
use orchestrator_flowfile::{Finding, Report};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `flows validate`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator flows validate flows/*.yaml
  orchestrator flows validate dataset-build.yaml --json",
    after_help = "Exit code: 0 if all are sound, 1 if not. A handler that this program does not have is only a
warning: another program may serve it."
)]
pub struct ValidateArgs {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// What was found in one file.
struct Checked {
    flow: Option<Flow>,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

/// Checks the files.
pub fn run(args: &ValidateArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let out = session.out;
    let registry = session.registry();
    let mut sound = true;
    let mut documents = vec![];
    for path in &args.files {
        let checked = match source::load(path) {
            Err(report) => Checked { flow: None, errors: findings(Some(report)), warnings: vec![] },
            Ok(flow) => {
                let misfits = flow.misfits(&registry);
                Checked {
                    errors: findings(misfits.wrong),
                    warnings: findings(misfits.unknown),
                    flow: Some(flow),
                }
            }
        };
        sound &= checked.errors.is_empty();
        let name = path.display().to_string();
        if !out.is_table() {
            let flow = checked.flow.as_ref();
            documents.push(json!({
                "file": name, "ok": checked.errors.is_empty(), "flow": flow.map(|flow| flow.plan.name().clone()),
                "tasks": flow.map(|flow| flow.plan.tasks().len()), "hash": flow.map(|flow| flow.plan.hash().clone()),
                "errors": checked.errors, "warnings": checked.warnings,
            }));
            continue;
        }
        for error in &checked.errors {
            out.line(error.to_string())?;
        }
        for warning in &checked.warnings {
            out.note(format!("{} {warning}", out.paint_err(Paint::Yellow, "warning:")));
        }
        if let (Some(flow), true) = (&checked.flow, checked.errors.is_empty()) {
            let tasks = flow.plan.tasks().len();
            let tasks = if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") };
            out.line(format!("{name}  {}  {}, {tasks}", out.paint(Paint::Green, "ok"), flow.plan.name()))?;
        }
    }
    if !out.is_table() {
        out.json_list(&documents)?;
    }
    Ok(if sound { Exit::Ok } else { Exit::Error })
}

fn findings(report: Option<Report>) -> Vec<Finding> {
    report.map(|report| report.findings().to_vec()).unwrap_or_default()
}
