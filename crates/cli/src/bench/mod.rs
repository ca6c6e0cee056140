//! `orchestrator bench`.

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use clap::{Args, Subcommand};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to measure.
    #[command(subcommand)]
    pub command: BenchCommand,
}

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Submit, lease, run and settle for real
    #[command(before_help = "Examples:
  orchestrator bench queue
  orchestrator bench queue --json")]
    Queue,
    /// The bare database, writing the same rows
    #[command(before_help = "Examples:
  orchestrator bench raw
  orchestrator bench raw --json")]
    Raw,
}

/// Runs a benchmark.
pub async fn run(_args: BenchArgs, _globals: &Globals) -> CliResult {
    Err(CliError::new(Exit::Error, "not_built", "not built yet"))
}
