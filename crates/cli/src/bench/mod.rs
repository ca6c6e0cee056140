//! `orchestrator bench`: what the queue does on this machine, and what the bare database would.
//!
//! Timings are noisy, so whatever is compared is measured in one run, one after the other, on the
//! same disk; a ratio means more than a rate.

mod queue;
mod raw;
mod report;
mod scenarios;

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use clap::{Args, Subcommand, ValueEnum};
use report::Report;
use std::path::PathBuf;

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
    /// Submit, lease, run and settle for real, beside the bare database
    #[command(before_help = "Examples:
  orchestrator bench queue
  orchestrator bench queue --keys random --history 5000000 --json")]
    Queue(QueueArgs),
    /// The bare database, writing the same rows with nothing around it
    #[command(before_help = "Examples:
  orchestrator bench raw
  orchestrator bench raw --jobs 100000 --json")]
    Raw(LoadArgs),
}

/// The load.
#[derive(Clone, Debug, Args)]
pub struct LoadArgs {
    /// How many jobs
    #[arg(long, default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub jobs: u64,
    /// The size of a payload in bytes
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(16..=1_000_000))]
    pub payload: u64,
    /// Jobs per submit
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub batch: u64,
    /// Concurrent callers that submit one job per call
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub callers: u64,
    /// A directory on the disk to measure; the files in it are removed again
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
}

/// Arguments of `bench queue`.
#[derive(Clone, Debug, Args)]
pub struct QueueArgs {
    #[command(flatten)]
    pub load: LoadArgs,
    /// Workers
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub workers: u64,
    /// The idempotency keys of the jobs
    #[arg(long, value_enum, default_value_t = Keys::None)]
    pub keys: Keys,
    /// Also measure leases while this many jobs are queued
    #[arg(long, value_name = "JOBS")]
    pub queued: Option<u64>,
    /// Also measure beside this many jobs that wait behind one full key
    #[arg(long, value_name = "JOBS")]
    pub parked: Option<u64>,
    /// Also measure after this many jobs have ended in the file
    #[arg(long, value_name = "JOBS")]
    pub history: Option<u64>,
    /// Leave the bare database out
    #[arg(long)]
    pub no_raw: bool,
}

/// What idempotency keys a load has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Keys {
    /// No keys.
    None,
    /// Keys that rise, such as numbered documents.
    Sequential,
    /// Keys without order, such as hashes.
    Random,
}

/// Runs a benchmark.
pub async fn run(args: BenchArgs, globals: &Globals) -> CliResult {
    let out = globals.output();
    if cfg!(debug_assertions) {
        out.note(
            "note: this is a debug build; its figures mean nothing. Use `cargo run --release -- bench ...`",
        );
    }
    let mut report = Report::new();
    match args.command {
        BenchCommand::Queue(args) => {
            let dir = scratch(&args.load)?;
            scenarios::run(&args, dir.path(), &out, &mut report).await?;
        }
        BenchCommand::Raw(load) => {
            let dir = scratch(&load)?;
            raw::run(&load, dir.path(), &out, &mut report).await?;
        }
    }
    report.show(&out)?;
    Ok(Exit::Ok)
}

fn scratch(load: &LoadArgs) -> CliResult<tempfile::TempDir> {
    tempfile::Builder::new().prefix(".orchestrator-bench-").tempdir_in(&load.dir).map_err(|error| {
        CliError::new(Exit::Error, "io", format!("cannot write to {}: {error}", load.dir.display()))
            .hint("name a directory on the disk to measure with --dir")
    })
}
