//! `orchestrator queue run`

use super::options::ServeArgs;
use super::serve::{Ended, Plan, run_until};
use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::count;
use crate::session::Session;
use clap::Args;

/// Arguments of `queue run`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator queue run --drain
  orchestrator queue run --queue papers --queue default --max-workers 32",
    after_help = "Ctrl-C once: running jobs may finish (--grace), the rest is given back at no cost. Twice: stop at once.
SIGTERM does the same as the first Ctrl-C and ends with 0.
With --drain the exit code is 6 if a job failed for good. With --json, stdout has one event per line."
)]
pub struct RunArgs {
    /// End when nothing is ready, parked, running or retrying; what is scheduled for later stays
    #[arg(long)]
    drain: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

fn failed_text(failed: u64) -> String {
    if failed == 1 {
        "1 job failed for good".to_owned()
    } else {
        format!("{} jobs failed for good", count(failed))
    }
}

/// Runs jobs.
pub async fn run(args: RunArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, args.serve.flags())?;
    args.serve.check(&session)?;
    let plan = Plan { queues: args.serve.queues(), drain: args.drain, service: false };
    let (report, ended) = run_until(&session, plan).await?;
    match ended {
        Ended::Asked(signal) => Ok(signal.exit()),
        Ended::Drained if report.failed > 0 => {
            Err(CliError::new(Exit::WorkFailed, "work_failed", failed_text(report.failed))
                .hint("`orchestrator queue retry-failed` runs them again"))
        }
        Ended::Drained => Ok(Exit::Ok),
    }
}
