//! `orchestrator serve`

use crate::cli::Globals;
use crate::config::Flag;
use crate::error::CliResult;
use crate::service::{self, Service};
use crate::session::Session;
use clap::Args;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator serve --db postgres://orchestrator@db.internal/orchestrator
  orchestrator serve --listen 127.0.0.1:9000 --workers",
    after_help = "Serves the API, sweeps for all and removes what is old. Tasks are run by workers elsewhere, or here with --workers.
SIGHUP reads the configuration anew: docs/configuration.md lists what is taken up.
SIGTERM and Ctrl-C: nothing new is taken in, what is under way may finish. Twice: stop at once."
)]
pub struct ServeArgs {
    /// Where to listen [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Run tasks here, too
    #[arg(long)]
    workers: bool,
    /// Listen on an address that others can reach, although nobody has to show a key
    #[arg(long)]
    allow_unauthenticated: bool,
}

impl ServeArgs {
    fn flags(&self) -> Vec<Flag> {
        let listen = self.listen.iter();
        listen.map(|value| Flag { key: "server.listen", name: "--listen", value: value.clone() }).collect()
    }
}

/// Serves until a signal comes.
pub async fn run(args: ServeArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, args.flags())?.on_database();
    let service = Service {
        workers: args.workers,
        metrics_port: true,
        allow_unauthenticated: args.allow_unauthenticated,
    };
    service::run(&session, service, |_, _| {}).await
}
