//! `orchestrator migrate ...`: schemas, and the way from a file to a server.

mod copy;
mod reopen;
mod status;
mod up;

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use clap::Subcommand;
use std::path::Path;

/// `migrate ...`
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Say which schema the database has, and whether it was moved
    #[command(before_help = "Examples:
  orchestrator migrate status
  orchestrator migrate status --db postgres://me@host/jobs --json")]
    Status,
    /// Bring the schema up to date
    #[command(before_help = "Examples:
  orchestrator migrate up
  orchestrator migrate up --db postgres://me@host/jobs")]
    Up,
    /// Move everything from a SQLite file to PostgreSQL, jobs in flight included
    Copy(copy::CopyArgs),
    /// Use a file again that was moved
    Reopen(reopen::ReopenArgs),
}

/// Runs a `migrate` command.
pub async fn run(command: MigrateCommand, globals: &Globals) -> CliResult {
    match command {
        MigrateCommand::Status => status::run(globals).await,
        MigrateCommand::Up => up::run(globals).await,
        MigrateCommand::Copy(args) => copy::run(&args, globals).await,
        MigrateCommand::Reopen(args) => reopen::run(&args, globals),
    }
}

/// A database file that must be there.
fn existing(path: &str) -> CliResult<&Path> {
    let file = Path::new(path);
    if file.exists() {
        return Ok(file);
    }
    Err(CliError::new(Exit::NotFound, "not_found", "there is no such database").at(path))
}

/// What to say where others have a file open that is wanted alone.
fn in_use(path: &str) -> CliError {
    CliError::new(Exit::Conflict, "in_use", "another process has this database open")
        .at(path)
        .hint("stop it first: workers, imports and open views; then run the command again")
}
