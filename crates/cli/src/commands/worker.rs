//! `orchestrator worker`

use super::queue::options::ServeArgs;
use super::queue::serve::{Ended, run_until};
use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use clap::Args;

/// Arguments of `worker`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator worker --db postgres://orchestrator@db.internal/orchestrator
  orchestrator worker --queue papers --max-workers 32 --lease-ttl 30s --heartbeat 5s",
    after_help = "Start as many as you like on one database: limits and rates hold over all of them, and one of them sweeps for all.
SIGTERM and Ctrl-C: running jobs may finish (--grace), the rest is given back at no cost. Twice: stop at once.
Without a database at the start it ends with 8; one that goes away later is waited for."
)]
pub struct WorkerArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

/// Runs jobs until a signal comes.
pub async fn run(args: WorkerArgs, globals: &Globals) -> CliResult {
    Ok(match run_until(&args.serve, false, globals).await? {
        (_, Ended::Asked(signal)) => signal.exit(),
        (_, Ended::Drained) => Exit::Ok,
    })
}
