//! `orchestrator bench`: what queue and flows do on this machine, and what the bare database would.
//!
//! Timings are noisy, so whatever is compared is measured in one run on the same disk, mostly in turn; a ratio means more
//! than a rate.

mod child;
mod events;
mod flows;
mod load;
mod place;
mod queue;
mod raw;
mod report;
mod scenarios;
mod server;
mod turns;

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use clap::{Args, Subcommand, ValueEnum};
use place::Place;
use report::Report;
use std::path::{Path, PathBuf};

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
  orchestrator bench queue --keys random --history 5000000 --json
  orchestrator bench queue --db postgres://me@localhost/bench --soak 300 --hosts 1000")]
    Queue(QueueArgs),
    /// Run jobs of many tasks for real: chains, diamonds and fan-outs
    #[command(before_help = "Examples:
  orchestrator bench flows
  orchestrator bench flows --only chain,idle --plain --json")]
    Flows(FlowsArgs),
    /// Requests to a server process, and workers that work for it, beside a bare endpoint that stores as durably
    #[command(before_help = "Examples:
  orchestrator bench server
  orchestrator bench server --only post --seconds 30 --json
  orchestrator bench server --db postgres://me@localhost/bench")]
    Server(server::ServerArgs),
    /// The bare endpoint of `bench server`
    #[command(
        hide = true,
        before_help = "Examples:
  orchestrator bench endpoint bare.db
  orchestrator bench endpoint /tmp/bare.db"
    )]
    Endpoint {
        /// Its file.
        file: PathBuf,
    },
    /// Listen to events of a server with many clients, and measure how soon they arrive
    #[command(before_help = "Examples:
  orchestrator bench events
  orchestrator bench events --clients 5000 --jobs 100 --json --db postgres://me@localhost/bench")]
    Events(EventsArgs),
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
    /// How they are sent.
    #[command(flatten)]
    pub send: SendArgs,
    /// Concurrent callers that submit one job per call
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub callers: u64,
}

/// How jobs are sent, and to which disk.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// The size of a payload in bytes
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(16..=1_000_000))]
    pub payload: u64,
    /// Jobs per submit
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub batch: u64,
    /// A directory on the disk to measure, where --db is no URL; the files in it are removed again
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
    /// Also measure while jobs are removed as soon as they have ended
    #[arg(long)]
    pub retention: bool,
    /// Also measure cycles over and over for so long, beside the bare database run as long
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub soak: Option<u64>,
    /// Also measure with two limit keys per job, over so many hosts, beside jobs without
    #[arg(long, value_name = "HOSTS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub hosts: Option<u64>,
    /// Also measure cycles for so long while a transaction is held open elsewhere in the database, beside
    /// cycles for so long without (PostgreSQL only)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub held_open: Option<u64>,
    /// Leave the bare database out
    #[arg(long)]
    pub no_raw: bool,
    /// Leave the cycle, the callers and the idle jobs out: only what is asked for with the flags above
    #[arg(long)]
    pub only_extra: bool,
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

/// Arguments of `bench events`.
#[derive(Clone, Debug, Args)]
pub struct EventsArgs {
    /// How many clients listen
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    pub clients: u64,
    /// How many jobs are submitted; each is one event
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub jobs: u64,
    /// The pause between two of them, in milliseconds
    #[arg(long, default_value_t = 100, value_name = "MS")]
    pub every: u64,
    /// A directory for the server's file, where --db is no URL; it is removed again
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub dir: PathBuf,
}

/// Arguments of `bench flows`.
#[derive(Clone, Debug, Args)]
pub struct FlowsArgs {
    /// How many jobs of the chain, and of the diamond
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub jobs: u64,
    /// How they are sent.
    #[command(flatten)]
    pub send: SendArgs,
    /// Workers
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub workers: u64,
    /// The sizes of the fan-outs; the first is measured beside independent jobs
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000], value_name = "ITEMS",
        value_parser = clap::value_parser!(u64).range(1..=500_000))]
    pub items: Vec<u64>,
    /// Tasks of chains and diamonds get the job's input as it is, without templates
    #[arg(long)]
    pub plain: bool,
    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SCENARIO")]
    pub only: Vec<Scenario>,
    /// Leave the bare database out
    #[arg(long)]
    pub no_raw: bool,
}

/// What `bench flows` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Jobs of three tasks, one after the other.
    Chain,
    /// Jobs of four tasks, two of them side by side.
    Diamond,
    /// One job of very many tasks, and one that joins them.
    FanOut,
    /// One chain at a time.
    Idle,
}

/// Runs a benchmark.
pub async fn run(args: BenchArgs, globals: &Globals) -> CliResult {
    let out = globals.output();
    if cfg!(debug_assertions) {
        out.note(
            "note: this is a debug build; its figures mean nothing. Use `cargo run --release -- bench ...`",
        );
    }
    match &args.command {
        BenchCommand::Queue(args) => {
            let measure =
                async |place: &Place, report: &mut Report| scenarios::run(args, place, &out, report).await;
            on_a_place(globals, &args.load.send.dir, measure).await?.show(&out)?;
        }
        BenchCommand::Flows(args) => {
            let measure =
                async |place: &Place, report: &mut Report| flows::run(args, place, &out, report).await;
            on_a_place(globals, &args.send.dir, measure).await?.show(&out)?;
        }
        BenchCommand::Raw(load) => {
            let measure =
                async |place: &Place, report: &mut Report| raw::run(load, place, &out, report).await;
            on_a_place(globals, &load.send.dir, measure).await?.show(&out)?;
        }
        BenchCommand::Server(args) => {
            let measure =
                async |place: &Place, report: &mut Report| server::run(args, place, &out, report).await;
            on_a_place(globals, &args.send.dir, measure).await?.show(&out)?;
        }
        BenchCommand::Endpoint { file } => return server::bare::serve(file, &out).await,
        BenchCommand::Events(args) => {
            let measure =
                async |place: &Place, report: &mut Report| events::run(args, place, &out, report).await;
            on_a_place(globals, &args.dir, measure).await?.show(&out)?;
        }
    }
    Ok(Exit::Ok)
}

/// Measures on a disk or in a database, and leaves nothing behind.
async fn on_a_place(
    globals: &Globals,
    dir: &Path,
    measure: impl AsyncFnOnce(&Place, &mut Report) -> CliResult<()>,
) -> CliResult<Report> {
    let place = Place::new(globals, dir)?;
    let mut report = Report::new(place.about().await?);
    let done = measure(&place, &mut report).await;
    place.clean().await.and(done)?;
    Ok(report)
}
