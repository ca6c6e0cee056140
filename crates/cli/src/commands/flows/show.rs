//! `orchestrator flows show`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::flow::graph;
use crate::flow::source::{compile, registered};
use crate::jobs::shown;
use crate::output::{Paint, columns};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_store::FlowView;

/// Arguments of `flows show`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator flows show dataset-build
  orchestrator flows show dataset-build@3 --json")]
pub struct ShowArgs {
    /// Its name, or name@version
    name: String,
    /// List its versions
    #[arg(long)]
    versions: bool,
}

/// Shows a flow.
pub async fn run(args: &ShowArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let out = session.out;
    if args.versions {
        let name = args.name.split('@').next().unwrap_or(&args.name);
        let views = store.flows(Some(name.into())).await?;
        if views.is_empty() {
            registered(name, Some(&*store)).await?;
        }
        store.close().await;
        if out.is_table() {
            out.data(&version_table(&views))?;
        } else {
            out.json_list(&views)?;
        }
        return Ok(Exit::Ok);
    }
    let view = registered(&args.name, Some(&*store)).await?;
    store.close().await;
    if !out.is_table() {
        out.json(&view)?;
        return Ok(Exit::Ok);
    }
    let current = if view.current { "current" } else { "not current" };
    let title = format!("{}@{}", view.flow.name, view.flow.version);
    out.line(format!(
        "{}  {current}, {}, {}",
        out.paint(Paint::Bold, &title),
        shown::moment(view.created),
        short(&view)
    ))?;
    let plan = compile(&view)?;
    if let Some(description) = &plan.def().description {
        out.line(description)?;
    }
    out.line("")?;
    out.data(&graph::text(&plan))?;
    out.line("")?;
    out.line(shown::pretty(&view.definition))?;
    Ok(Exit::Ok)
}

fn version_table(views: &[FlowView]) -> String {
    let rows = views.iter().map(|view| {
        vec![
            view.flow.version.to_string(),
            if view.current { "current" } else { "" }.to_owned(),
            shown::moment(view.created),
            short(view),
        ]
    });
    columns(&["VERSION", "", "CREATED", "HASH"], &[0], rows.collect())
}

/// The start of the hash: enough to tell versions apart.
fn short(view: &FlowView) -> String {
    view.flow.hash.chars().take(12).collect()
}
