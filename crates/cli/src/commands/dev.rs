//! `orchestrator dev`

use crate::cli::Globals;
use crate::config::Flag;
use crate::error::{CliError, CliResult};
use crate::output::{Output, Paint};
use crate::service::{self, Service};
use crate::session::Session;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Arguments of `dev`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator dev
  orchestrator dev --port 9000 --dir /tmp/try",
    after_help = "Everything in one process, on this machine alone: the API, workers, and a database in a directory that is kept. Stop it as you
like, also with kill -9, and start it again: work goes on where it was."
)]
pub struct DevArgs {
    /// The port to listen on, at 127.0.0.1
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = ".orchestrator")]
    dir: PathBuf,
}

/// Serves until a signal comes.
pub async fn run(args: DevArgs, globals: &Globals) -> CliResult {
    std::fs::create_dir_all(&args.dir).map_err(|error| CliError::io(&args.dir, &error))?;
    let flag = |key, value: String| Flag { key, name: "dev", value };
    let mut flags = vec![flag("server.listen", format!("127.0.0.1:{}", args.port))];
    if globals.db.is_none() {
        flags.push(flag("store.db", args.dir.join("orchestrator.db").display().to_string()));
    }
    flags.push(flag("download.dir", args.dir.join("downloads").display().to_string()));
    let session = Session::start(globals, flags)?.on_database();
    let service = Service { workers: true, metrics_port: false, allow_unauthenticated: false };
    service::run(&session, service, greet).await
}

/// Says where everything is, and what to try.
fn greet(out: Output, address: SocketAddr) {
    let bold = |text: String| out.paint_err(Paint::Bold, &text);
    out.note(format!("API        {}", bold(format!("http://{address}"))));
    out.note(format!("its docs   http://{address}/docs"));
    out.note(format!("health     http://{address}/health"));
    out.note(format!("metrics    http://{address}/metrics"));
    out.note("");
    out.note("Try, in another terminal:");
    out.note(format!(
        "  curl -s http://{address}/jobs -H 'content-type: application/json' -d '{{\"handler\": \"sleep\", \"payload\": {{\"for\": \"2s\"}}}}'"
    ));
    out.note(format!("  orchestrator jobs list --server http://{address}"));
    out.note(format!("  orchestrator workers list --server http://{address}"));
    out.note(format!("  curl -N 'http://{address}/events?after=0'"));
    out.note("");
    out.note("Ctrl-C ends it; what is under way goes on at the next start.");
}
