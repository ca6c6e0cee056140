//! `storm`: breaks the real binary under load, then holds what was seen against what came of it.
//!
//! It knows the binary by its command line alone and never a store, so whatever `--db` the binary takes can be
//! stormed.

mod behaviour;
mod cli;
mod clock;
mod database;
mod disk;
mod feed;
mod hand;
mod heal;
mod kill;
mod last;
mod leftovers;
mod load;
mod operator;
mod out;
mod postgres;
mod proxy;
mod record;
mod report;
mod server;
mod stop;
mod submitter;
mod term;
mod tmpfs;
mod tools;
mod watch;
mod world;

use clap::Parser;
use cli::{Cli, DiskArgs, Options, Storm};
use database::Faults;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Whatever hinders a storm itself.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Something is in the way of the storm itself.
const FAILED: u8 = 2;
/// The storm cannot be had here; the number by which test runners know it.
const SKIPPED: u8 = 77;
/// Ctrl-C or SIGTERM.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let done = match Cli::parse().storm {
        Storm::Child { parent, program, args } => Err(tools::become_child(parent, &program, &args)),
        Storm::Hand { file, seed } => hand::work(&file, seed).map(|output| {
            out::tell(output);
            0
        }),
        storm => run(storm),
    };
    ExitCode::from(done.unwrap_or_else(|failure| {
        out::note(format!("error: {failure}"));
        FAILED
    }))
}

fn run(storm: Storm) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let code = runtime.block_on(async {
        let mut asked = signal(SignalKind::terminate())?;
        tokio::select! {
            code = brew(storm) => code,
            _ = tokio::signal::ctrl_c() => Ok(INTERRUPTED),
            _ = asked.recv() => Ok(INTERRUPTED),
        }
    });
    // What was started dies with the tasks that watch it.
    drop(runtime);
    if matches!(code, Ok(INTERRUPTED)) {
        leftovers::remove();
    }
    code
}

/// Runs one storm, or all of them.
async fn brew(storm: Storm) -> Result<u8, Failure> {
    let seconds = Duration::from_secs;
    let report = match storm {
        Storm::Kill(args) => {
            kill::run("kill", &args.options.with(21_000, 2), args.kills, seconds(args.over)).await?
        }
        Storm::Replicas(args) => {
            let options = args.options.on_postgres().with(21_000, 3);
            kill::run("replicas", &options, args.kills, seconds(args.over)).await?
        }
        Storm::Remote(args) => {
            let options = args.options.through_servers().with(10_000, 3);
            kill::run("remote", &options, args.kills, seconds(args.over)).await?
        }
        Storm::Database(args) => {
            let faults = Faults { restarts: args.restarts, kills: args.kills, cuts: args.cuts };
            database::run(&args.options.with(8000, 3), faults, seconds(args.over)).await?
        }
        Storm::Stop(args) => {
            let lease_ttl = Duration::from_millis(args.lease_ttl);
            stop::run(&args.options.with(8000, 6), args.stops, lease_ttl).await?
        }
        Storm::Term(args) => term::run(&args.options.with(5000, 2), args.terms, seconds(args.over)).await?,
        Storm::Disk(args) => return fill(args).await,
        Storm::All(args) => return all(args).await,
        Storm::Child { .. } | Storm::Hand { .. } => return Err("this is no storm".into()),
    };
    Ok(u8::from(!report.is_clean()))
}

async fn fill(args: DiskArgs) -> Result<u8, Failure> {
    let over = Duration::from_secs(args.over);
    match disk::run(&args.options.with(3000, 2), args.rounds, args.megabytes, over).await? {
        Some(report) => Ok(u8::from(!report.is_clean())),
        None if args.require => Err("a small disk cannot be mounted here: it takes root".into()),
        None => {
            out::tell("storm disk: skipped, for a small disk cannot be mounted here: it takes root");
            Ok(SKIPPED)
        }
    }
}

/// One after the other, each as if it were called alone. A storm that was skipped is no finding.
async fn all(args: cli::AllArgs) -> Result<u8, Failure> {
    let mut found = 0;
    for name in cli::ALL.into_iter().filter(|name| !args.skip.iter().any(|skipped| skipped == name)) {
        let mut words = vec!["storm".to_owned()];
        words.extend(name.split(' ').map(str::to_owned));
        words.extend(["--seed".to_owned(), args.seed.to_string()]);
        if let Some(bin) = &args.bin {
            words.extend(["--bin".to_owned(), bin.display().to_string()]);
        }
        words.extend(args.keep.then(|| "--keep".to_owned()));
        words.extend((args.require && name.starts_with("disk")).then(|| "--require".to_owned()));
        let code = Box::pin(brew(Cli::try_parse_from(words)?.storm)).await?;
        found |= u8::from(code != 0 && code != SKIPPED);
    }
    Ok(found)
}
