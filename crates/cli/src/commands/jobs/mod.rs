//! `orchestrator jobs ...`: jobs of flows and of queues, looked at and steered.

pub mod control;
mod create;
mod list;
mod progress;
mod prune;
mod rerun;
mod stats;
mod status;
mod stuck;
mod watch;

use crate::cli::Globals;
use crate::error::CliResult;
use clap::Subcommand;

/// `jobs ...`
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// List jobs, newest first
    List(list::ListArgs),
    /// Show a job and its tasks
    Status(status::StatusArgs),
    /// Tell how far a job is
    Progress(progress::ProgressArgs),
    /// Watch a job until it has ended
    Watch(watch::WatchArgs),
    /// Put a job in without running it
    Create(Box<create::CreateArgs>),
    /// Start nothing new of jobs; what runs may finish
    #[command(before_help = "Examples:
  orchestrator jobs pause 019a8f00
  orchestrator jobs pause 019a8f00 019a8f11 --json")]
    Pause(control::IdsArgs),
    /// Let paused jobs go on
    #[command(before_help = "Examples:
  orchestrator jobs resume 019a8f00
  orchestrator jobs resume 019a8f00 && orchestrator run --resume 019a8f00")]
    Resume(control::IdsArgs),
    /// End jobs now; what runs is stopped
    #[command(before_help = "Examples:
  orchestrator jobs cancel 019a8f00
  orchestrator jobs cancel 019a8f00 019a8f11 --json")]
    Cancel(control::IdsArgs),
    /// Take up again a job that failed or timed out: what went wrong and all after it, or from a task on
    Recover(control::RecoverArgs),
    /// Run again what failed in jobs, without counting it as a recovery
    #[command(before_help = "Examples:
  orchestrator jobs retry 019a8f00
  orchestrator jobs retry 019a8f00 --json")]
    Retry(control::IdsArgs),
    /// Make a new job of an old one, with the same input or another
    Rerun(rerun::RerunArgs),
    /// Count jobs by state and flow
    Stats(stats::StatsArgs),
    /// List live jobs in which nothing has moved for a while, and why
    Stuck(stuck::StuckArgs),
    /// Remove jobs that ended long ago
    Prune(prune::PruneArgs),
}

/// Runs a `jobs` command.
pub async fn run(command: JobsCommand, globals: &Globals) -> CliResult {
    use control::Verb;
    match command {
        JobsCommand::List(args) => list::run(&args, globals).await,
        JobsCommand::Status(args) => status::run(&args, globals).await,
        JobsCommand::Progress(args) => progress::run(&args, globals).await,
        JobsCommand::Watch(args) => watch::run(&args, globals).await,
        JobsCommand::Create(args) => create::run(*args, globals).await,
        JobsCommand::Pause(args) => control::run(Verb::Pause, &args, globals).await,
        JobsCommand::Resume(args) => control::run(Verb::Resume, &args, globals).await,
        JobsCommand::Cancel(args) => control::run(Verb::Cancel, &args, globals).await,
        JobsCommand::Retry(args) => control::run(Verb::Retry, &args, globals).await,
        JobsCommand::Recover(args) => control::recover(&args, globals).await,
        JobsCommand::Rerun(args) => rerun::run(&args, globals).await,
        JobsCommand::Stats(args) => stats::run(&args, globals).await,
        JobsCommand::Stuck(args) => stuck::run(&args, globals).await,
        JobsCommand::Prune(args) => prune::run(&args, globals).await,
    }
}
