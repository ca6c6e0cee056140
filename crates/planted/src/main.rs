//! Plants bugs in orchestrator, one at a time, and shows which test catches each.
//!
//! A suite that passes says little until it is seen to fail. This program builds the tests once with the feature
//! `planted-bugs` of the core, sees that they pass without a bug, then runs for each bug the tests that must catch
//! it. A bug counts as caught when each of those tests was run and failed by itself: a test that is not there, does
//! not end, or ends without a verdict has caught nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports to its terminal")]

mod catchers;
mod executables;
mod run;

use catchers::{CATCHERS, Test};
use clap::Parser;
use executables::{Executables, build};
use orchestrator_core::planted::Bug;
use run::{Verdict, run_all};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Plants bugs, one at a time, and shows which test catches each.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo run -p planted                       every bug
  cargo run -p planted -- --list             the bugs, and the tests that must catch them
  cargo run -p planted -- --bug drop-fence   one bug, with what its tests said")]
struct Args {
    /// Only this bug, and those of further `--bug`s; shows what the tests said.
    #[arg(long = "bug", value_name = "NAME", value_parser = bug_named)]
    bugs: Vec<Bug>,
    /// Lists the bugs and the tests that must catch them, and runs nothing.
    #[arg(long)]
    list: bool,
}

fn bug_named(name: &str) -> Result<Bug, String> {
    let found = Bug::ALL.iter().copied().find(|bug| bug.name() == name);
    found.ok_or_else(|| "there is no such bug; --list names them".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.list {
        for (bug, tests) in CATCHERS {
            println!("{:<30} {}", bug.name(), bug.breaks());
            tests.iter().for_each(|test| println!("{:<30}   {test}", ""));
        }
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<(Bug, &[Test])> =
        CATCHERS.iter().copied().filter(|(bug, _)| args.bugs.is_empty() || args.bugs.contains(bug)).collect();
    match hunt(&chosen, !args.bugs.is_empty()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every bug was caught.
fn hunt(chosen: &[(Bug, &[Test])], talk: bool) -> Result<bool, String> {
    let mut tests: Vec<Test> = chosen.iter().flat_map(|(_, tests)| tests.iter().copied()).collect();
    tests.sort();
    tests.dedup();
    eprintln!("building the tests with the feature planted-bugs");
    let executables = build(&tests)?;
    let started = Instant::now();
    eprintln!("without a bug: {} tests", tests.len());
    control(&executables, &tests)?;
    let runs: Vec<(Option<Bug>, Test)> =
        chosen.iter().flat_map(|(bug, tests)| tests.iter().map(|test| (Some(*bug), *test))).collect();
    eprintln!("with a bug: {} runs", runs.len());
    let mut verdicts = run_all(&executables, &runs).into_iter();
    println!("{:<30} {:<86} {:>7}  caught by", "bug", "what it breaks", "seconds");
    let mut caught = 0;
    for (bug, tests) in chosen {
        let mut all = true;
        for (n, test) in tests.iter().enumerate() {
            let (verdict, took) = verdicts.next().ok_or("a run without a verdict")?;
            let (name, breaks) = if n == 0 { (bug.name(), bug.breaks()) } else { ("", "") };
            let found = match &verdict {
                Verdict::Failed { .. } => test.to_string(),
                other => format!("NOT CAUGHT by {test}: {other}"),
            };
            println!("{name:<30} {breaks:<86} {:>7.1}  {found}", took.as_secs_f64());
            if let (Verdict::Failed { said }, true) = (&verdict, talk) {
                println!("{said}");
            }
            all &= matches!(verdict, Verdict::Failed { .. });
        }
        caught += usize::from(all);
    }
    println!("{caught} of {} caught in {:.0} s", chosen.len(), started.elapsed().as_secs_f64());
    Ok(caught == chosen.len())
}

/// Sees that the tests pass where there is no bug: else they would prove nothing.
fn control(executables: &Executables, tests: &[Test]) -> Result<(), String> {
    let runs: Vec<_> = tests.iter().map(|test| (None, *test)).collect();
    let verdicts: Vec<(Verdict, Duration)> = run_all(executables, &runs);
    let bad = tests.iter().zip(&verdicts).filter(|(_, (verdict, _))| *verdict != Verdict::Passed);
    let told: Vec<String> = bad.map(|(test, (verdict, _))| format!("  {test}: {verdict}")).collect();
    if told.is_empty() {
        return Ok(());
    }
    Err(format!("without any bug these tests do not pass, so they prove nothing:\n{}", told.join("\n")))
}
