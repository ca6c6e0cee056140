//! The command line.

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Breaks the orchestrator under load and checks that nothing is lost, doubled or stuck.
#[derive(Debug, Parser)]
#[command(
    name = "storm",
    version,
    before_help = "Examples:
  storm kill
  storm stop --jobs 400 --stops 8
  storm all --seed 7",
    after_help = "Exit codes: 0 nothing was found, 1 something was (the directory is kept, with history.jsonl),
2 usage or the storm itself failed, 77 skipped, 130 interrupted."
)]
pub struct Cli {
    /// Which storm.
    #[command(subcommand)]
    pub storm: Storm,
}

/// What `storm all` runs, in order.
pub const ALL: [&str; 9] = [
    "kill",
    "stop",
    "term",
    "disk",
    "disk --postgres",
    "replicas",
    "database",
    "remote",
    "remote --postgres",
];

/// The storms.
#[derive(Debug, Subcommand)]
pub enum Storm {
    /// kill -9 of workers and of the submitting client at random moments
    Kill(KillArgs),
    /// SIGSTOP of workers for three times their lease, then SIGCONT
    Stop(StopArgs),
    /// SIGTERM of workers under load
    Term(TermArgs),
    /// A disk that fills up under load and has room again
    Disk(DiskArgs),
    /// kill -9 of three replicas on PostgreSQL, and of the submitting client, at random moments
    Replicas(ReplicasArgs),
    /// Restarts, crashes, killed sessions and cut connections of PostgreSQL under load
    Database(DatabaseArgs),
    /// kill -9 of servers, of workers and of a client that work through them, at random moments
    Remote(RemoteArgs),
    /// All of them, one after the other
    All(AllArgs),
    /// Becomes a program that dies with who started it
    #[command(hide = true)]
    Child {
        /// Who started it.
        parent: i32,
        /// The program.
        program: PathBuf,
        /// Its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Works as a handler
    #[command(hide = true)]
    Hand {
        /// Where it notes what it does.
        file: PathBuf,
        /// The seed of the storm.
        seed: u64,
    },
}

/// What every storm can be told.
#[derive(Clone, Debug, Args)]
pub struct CommonArgs {
    /// The store, as the binary takes it; it must be empty [default: a new SQLite file]
    #[arg(long, value_name = "URL")]
    db: Option<String>,
    /// A PostgreSQL server of the storm's own, which syncs, instead of SQLite
    #[arg(long, conflicts_with = "db")]
    postgres: bool,
    /// The binary [default: the `orchestrator` beside this program; it is built where there is none]
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// How many submits; some repeat a key, so there are fewer jobs [default: kill and replicas 21000, remote 10000, stop
    /// and database 8000, term 5000, disk 3000]
    #[arg(long, value_name = "N")]
    jobs: Option<u64>,
    /// How many worker processes [default: 2; stop 6; replicas, database and remote 3]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Workers and clients work through so many servers, instead of on the store [default: 0; remote 1, on PostgreSQL 2]
    #[arg(long, value_name = "N")]
    servers: Option<usize>,
    /// What is random follows from it, but for the moments at which processes do things
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keep the directory, also where nothing was found
    #[arg(long)]
    keep: bool,
    /// The time between two looks at jobs, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200)]
    look_every: u64,
}

/// The options in force.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store; none for a new one.
    pub db: Option<String>,
    /// Whether a new one is on PostgreSQL.
    pub postgres: bool,
    /// The binary, where it is given.
    pub bin: Option<PathBuf>,
    /// How many jobs.
    pub jobs: u64,
    /// How many worker processes.
    pub workers: usize,
    /// How many servers everything works through.
    pub servers: usize,
    /// What is random follows from it.
    pub seed: u64,
    /// Whether to keep the directory.
    pub keep: bool,
    /// The time between two looks at jobs, in milliseconds.
    pub look_every: u64,
}

impl CommonArgs {
    /// On a PostgreSQL server, where no store is given.
    pub fn on_postgres(self) -> CommonArgs {
        CommonArgs { postgres: self.db.is_none(), ..self }
    }

    /// Through servers: one, or two where several replicas can be.
    pub fn through_servers(self) -> CommonArgs {
        let usual = if self.postgres { 2 } else { 1 };
        CommonArgs { servers: Some(self.servers.unwrap_or(usual).max(1)), ..self }
    }

    /// With the numbers of a storm where none are given.
    pub fn with(self, jobs: u64, workers: usize) -> Options {
        Options {
            db: self.db,
            postgres: self.postgres,
            bin: self.bin,
            jobs: self.jobs.unwrap_or(jobs).max(1),
            workers: self.workers.unwrap_or(workers).max(1),
            servers: self.servers.unwrap_or(0),
            seed: self.seed,
            keep: self.keep,
            look_every: self.look_every,
        }
    }
}

/// Arguments of `storm kill`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm kill
  storm kill --jobs 400 --kills 6 --over 5")]
pub struct KillArgs {
    /// What every storm has.
    #[command(flatten)]
    pub options: CommonArgs,
    /// How many kills
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub kills: u64,
    /// Over how many seconds the load is spread
    #[arg(long, value_name = "SECONDS", default_value_t = 100)]
    pub over: u64,
}

/// Arguments of `storm replicas`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm replicas
  storm replicas --jobs 400 --kills 6 --over 5")]
pub struct ReplicasArgs {
    /// What every storm has.
    #[command(flatten)]
    pub options: CommonArgs,
    /// How many kills
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub kills: u64,
    /// Over how many seconds the load is spread
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub over: u64,
}

/// Arguments of `storm remote`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm remote
  storm remote --postgres --jobs 400 --kills 6 --over 5")]
pub struct RemoteArgs {
    /// What every storm has.
    #[command(flatten)]
    pub options: CommonArgs,
    /// How many kills
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub kills: u64,
    /// Over how many seconds the load is spread
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub over: u64,
}

/// Arguments of `storm database`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm database
  storm database --jobs 800 --restarts 2 --kills 2 --cuts 2 --over 10")]
pub struct DatabaseArgs {
    /// What every storm has.
    #[command(flatten)]
    pub options: CommonArgs,
    /// How many restarts, every other one like a crash
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub restarts: u64,
    /// How often sessions are killed: one of them, or all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub kills: u64,
    /// How often connections are cut or go silent for some seconds
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub cuts: u64,
    /// Over how many seconds the load is spread
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub over: u64,
}

/// Arguments of `storm stop`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm stop
  storm stop --jobs 400 --stops 8 --workers 4")]
pub struct StopArgs {
    /// What every storm has.
    #[command(flatten)]
    pub options: CommonArgs,
    /// How many stops
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub stops: u64,
    /// How long a lease holds, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub lease_ttl: u64,
}

/// Arguments of `storm term`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm term
  storm term --jobs 400 --terms 4 --over 5")]
pub struct TermArgs {
    /// What every storm has.
    #[command(flatten)]
    pub options: CommonArgs,
    /// How many SIGTERMs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub terms: u64,
    /// Over how many seconds the load is spread
    #[arg(long, value_name = "SECONDS", default_value_t = 40)]
    pub over: u64,
}

/// Arguments of `storm disk`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm disk
  storm disk --postgres
  storm disk --rounds 1 --require")]
pub struct DiskArgs {
    /// What every storm has.
    #[command(flatten)]
    pub options: CommonArgs,
    /// How often the disk fills up
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: u64,
    /// How large the disk is, in megabytes [default: 64, on PostgreSQL 192]
    #[arg(long, value_name = "N")]
    pub megabytes: Option<u64>,
    /// Over how many seconds the load is spread
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub over: u64,
    /// Fail where no disk can be mounted
    #[arg(long)]
    pub require: bool,
}

/// Arguments of `storm all`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  storm all --seed 7 --require
  storm all --skip replicas --skip database")]
pub struct AllArgs {
    /// The binary [default: the `orchestrator` beside this program; it is built where there is none]
    #[arg(long, value_name = "PATH")]
    pub bin: Option<PathBuf>,
    /// What is random follows from it, but for the moments at which processes do things
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A storm to leave out; may be repeated
    #[arg(long, value_name = "STORM", value_parser = PossibleValuesParser::new(ALL))]
    pub skip: Vec<String>,
    /// Keep the directories, also where nothing was found
    #[arg(long)]
    pub keep: bool,
    /// Fail where no disk can be mounted
    #[arg(long)]
    pub require: bool,
}
