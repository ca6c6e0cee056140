//! The simulator's command line: runs seeds or a kept script, and shortens what fails.

mod report;

use clap::Parser;
use report::{fail, say};
use sim::tally::Tally;
use sim::{Script, generate, run};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A run of so many seeds must have seen every kind of fault and command.
const LONG_RUN: u64 = 1_000;

/// Runs orchestrator's engines on the model store under faults, seed by seed, and checks safety after every step
/// and liveness after healing. A failing seed is shortened, shown and written to a file.
#[derive(Parser)]
#[command(after_help = "Examples:
  sim --seeds 10000            ten thousand seeds on all cores
  sim --from 10000 --seeds 500 another stretch of seeds
  sim --seed 4711 --trace      one seed, with everything that happens in it
  sim --replay sim-failure-4711.json --trace
                               a kept script, exactly as it was

Exit code 0: every run was clean. 1: a violation, or a long run that never exercised something.")]
struct Args {
    /// How many seeds to run
    #[arg(long, default_value_t = 1000, value_name = "N")]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0, value_name = "N")]
    from: u64,
    /// Only this seed
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "from", "replay"])]
    seed: Option<u64>,
    /// A script from a file instead of a seed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "from"])]
    replay: Option<PathBuf>,
    /// How many threads; one seed is always run by one
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Show all that happens; with --seed or --replay
    #[arg(long)]
    trace: bool,
    /// Go on after a failing seed, and only name each
    #[arg(long)]
    keep_going: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match (&args.replay, args.seed) {
        (Some(file), _) => match report::read(file) {
            Ok(script) => one(&script, args.trace, false),
            Err(why) => {
                fail(&format!("cannot read {}: {why}", file.display()));
                ExitCode::FAILURE
            }
        },
        (None, Some(seed)) => one(&generate(seed), args.trace, true),
        (None, None) => many(&args),
    }
}

/// Runs one script, and shows it.
fn one(script: &Script, trace: bool, shorten: bool) -> ExitCode {
    let outcome = run(script, true);
    if trace {
        say(&script.to_string());
        outcome.lines.iter().for_each(|line| say(line));
    }
    say(&outcome.tally.to_string());
    match outcome.violation {
        None => {
            say(&format!("clean; digest {:016x}", outcome.digest));
            ExitCode::SUCCESS
        }
        Some(violation) if shorten => {
            report::explain(script, &violation);
            ExitCode::FAILURE
        }
        Some(violation) => {
            fail(&violation.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Runs a stretch of seeds on several threads.
fn many(args: &Args) -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.unwrap_or(cores).max(1);
    let began = Instant::now();
    let (next, done, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let (tally, failures) = (Mutex::new(Tally::default()), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        let work = || {
            let mut own = Tally::default();
            loop {
                let n = next.fetch_add(1, Relaxed);
                if n >= args.seeds || stop.load(Relaxed) {
                    break;
                }
                let script = generate(args.from + n);
                let outcome = run(&script, false);
                own.merge(&outcome.tally);
                done.fetch_add(1, Relaxed);
                if let Some(violation) = outcome.violation {
                    fail(&format!("seed {}: {}", script.seed, report::brief(&violation)));
                    stop.store(!args.keep_going, Relaxed);
                    locked(&failures).push((script, violation));
                }
            }
            locked(&tally).merge(&own);
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        if std::io::stderr().is_terminal() {
            while workers.iter().any(|worker| !worker.is_finished()) {
                report::progress(done.load(Relaxed), args.seeds);
                std::thread::sleep(Duration::from_millis(200));
            }
            report::progress_ends();
        }
    });
    let done = done.into_inner();
    say(&locked(&tally).to_string());
    let mut failures = locked(&failures);
    failures.sort_by_key(|(script, _)| script.seed);
    say(&format!("{done} seeds, {} failed, {:.1} s", failures.len(), began.elapsed().as_secs_f64()));
    if let Some((script, violation)) = failures.first() {
        report::explain(script, violation);
        return ExitCode::FAILURE;
    }
    let missing = locked(&tally).missing();
    if done >= LONG_RUN && !missing.is_empty() {
        fail(&format!("never happened, so nothing was shown about it: {}", missing.join("; ")));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
