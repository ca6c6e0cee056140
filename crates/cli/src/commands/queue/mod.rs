//! `orchestrator queue ...`

pub mod enqueue;
pub mod import;
pub mod lines;
pub mod options;
mod progress;
mod report;
pub mod retry_failed;
pub mod run;
pub mod serve;
pub mod stats;
mod watch;

use crate::cli::Globals;
use crate::error::CliResult;
use clap::Subcommand;

/// `queue ...`
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// Put one job in
    Enqueue(Box<enqueue::EnqueueArgs>),
    /// Put many jobs in, from a file with one JSON object per line
    Import(import::ImportArgs),
    /// Run jobs, until they are through (--drain) or until a signal
    Run(run::RunArgs),
    /// Count jobs by state
    Stats(stats::StatsArgs),
    /// Run jobs again that ended in the dead letters
    RetryFailed(retry_failed::RetryFailedArgs),
}

/// Runs a `queue` command.
pub async fn run(command: QueueCommand, globals: &Globals) -> CliResult {
    match command {
        QueueCommand::Enqueue(args) => enqueue::run(*args, globals).await,
        QueueCommand::Import(args) => import::run(args, globals).await,
        QueueCommand::Run(args) => run::run(args, globals).await,
        QueueCommand::Stats(args) => stats::run(args, globals).await,
        QueueCommand::RetryFailed(args) => retry_failed::run(args, globals).await,
    }
}
