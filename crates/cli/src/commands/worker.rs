//! `orchestrator worker`

use super::queue::options::ServeArgs;
use super::queue::serve::{Ended, Plan, run_until};
use crate::cli::Globals;
use crate::config::Flag;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::session::Session;
use clap::Args;

/// Arguments of `worker`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator worker --db postgres://orchestrator@db.internal/orchestrator
  orchestrator worker --server http://orchestrator.internal:8000 --queue papers --max-workers 32",
    after_help = "Start as many as you like on one database or server: limits and rates hold over all of them, and one of them sweeps for all.
SIGHUP reads the configuration anew: docs/configuration.md lists what is taken up.
SIGTERM and Ctrl-C: running jobs may finish (--grace), the rest is given back at no cost. Twice: stop at once.
Without a database at the start it ends with 8. A server is waited for, and so is a database that goes away later."
)]
pub struct WorkerArgs {
    #[command(flatten)]
    serve: ServeArgs,
    /// Show metrics at this address or port [default: nowhere]
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<String>,
}

impl WorkerArgs {
    fn flags(&self) -> Vec<Flag> {
        let address = self.metrics_listen.iter();
        let address = address.map(|value| Flag {
            key: "worker.metrics_listen",
            name: "--metrics-listen",
            value: value.clone(),
        });
        self.serve.flags().into_iter().chain(address).collect()
    }
}

/// Runs jobs until a signal comes.
pub async fn run(args: WorkerArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, args.flags())?;
    args.serve.check(&session)?;
    let queues = args.serve.queues();
    Ok(match run_until(&session, Plan { queues, drain: false, service: true }).await? {
        (_, Ended::Asked(signal)) => signal.exit(),
        (_, Ended::Drained) => Exit::Ok,
    })
}
