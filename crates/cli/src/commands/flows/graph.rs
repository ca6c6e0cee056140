//! `orchestrator flows graph`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::flow::{graph, source};
use crate::session::{Missing, Session};
use clap::{Args, ValueEnum};
use orchestrator_store::Catalog;

/// Arguments of `flows graph`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator flows graph examples/flows/diamond.yaml
  orchestrator flows graph dataset-build@3 --format dot | dot -Tsvg > flow.svg")]
pub struct GraphArgs {
    /// A file, or the name of an applied flow
    flow: String,
    /// How to draw it: text, mermaid or dot
    #[arg(long, value_enum, default_value_t = Drawing::Text, hide_possible_values = true, value_name = "FORMAT")]
    format: Drawing,
}

/// How a flow is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Drawing {
    Text,
    Mermaid,
    Dot,
}

/// Draws a flow.
pub async fn run(args: &GraphArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let flow = if source::means_file(&args.flow) {
        source::find(&args.flow, None).await?
    } else {
        let store = session.open(Missing::Fail).await?;
        let flow = source::find(&args.flow, Some(&*store as &dyn Catalog)).await;
        store.close().await;
        flow?
    };
    let out = session.out;
    if !out.is_table() {
        out.json(&graph::as_json(&flow.plan))?;
        return Ok(Exit::Ok);
    }
    out.data(&match args.format {
        Drawing::Text => graph::text(&flow.plan),
        Drawing::Mermaid => graph::mermaid(&flow.plan),
        Drawing::Dot => graph::dot(&flow.plan),
    })?;
    Ok(Exit::Ok)
}
