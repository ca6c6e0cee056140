//! Runs tests as processes of their own, two at once, and reads what became of them.

use crate::catchers::Test;
use crate::executables::Executables;
use orchestrator_core::planted::{Bug, VARIABLE};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many run at once.
const AT_ONCE: usize = 2;
/// After so long a test has not ended, and thereby caught nothing.
const LONGEST: Duration = Duration::from_secs(120);
/// How many lines of a failed test are kept.
const SAID: usize = 12;
/// How much of each.
const WIDTH: usize = 240;

/// What became of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed by itself.
    Failed {
        /// The beginning of what it said.
        said: String,
    },
    /// There is no such test in the executable.
    Missing,
    /// It did not end.
    TooLong,
    /// It ended without a verdict, or could not be run.
    Broken(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Passed => f.write_str("it passed"),
            Verdict::Failed { said } => write!(f, "it failed\n{said}"),
            Verdict::Missing => f.write_str("there is no such test"),
            Verdict::TooLong => write!(f, "it did not end within {} s", LONGEST.as_secs()),
            Verdict::Broken(why) => f.write_str(why),
        }
    }
}

/// Runs tests, each with its bug, and tells what became of each and how long it took, in order.
pub fn run_all(executables: &Executables, runs: &[(Option<Bug>, Test)]) -> Vec<(Verdict, Duration)> {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(vec![(Verdict::Missing, Duration::ZERO); runs.len()]);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((n, (bug, test))) = {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    runs.get(n).map(|run| (n, run))
                } {
                    let started = Instant::now();
                    let executable = &executables[&(test.package, test.target)];
                    let verdict = run(executable, *bug, test).unwrap_or_else(Verdict::Broken);
                    verdicts.lock().expect("no holder panics")[n] = (verdict, started.elapsed());
                }
            });
        }
    });
    verdicts.into_inner().expect("no holder panics")
}

fn run(executable: &Path, bug: Option<Bug>, test: &Test) -> Result<Verdict, String> {
    // What a test leaves behind when it fails goes with this.
    let scratch = tempfile::tempdir().map_err(|error| format!("there is no room to run it: {error}"))?;
    let mut command = Command::new(executable);
    command.args([test.name, "--exact"]).current_dir(&scratch).env("TMPDIR", scratch.path());
    command.env_remove(VARIABLE).envs(test.env.iter().copied()).env("RUST_BACKTRACE", "0");
    if let Some(bug) = bug {
        command.env(VARIABLE, bug.name());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
    let mut stdout = child.stdout.take().ok_or("it has no output")?;
    // Read beside the wait: a full pipe would hold it up.
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        // Cut short by the end of the process, what was read until then counts.
        let _ = stdout.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    if !ended_in_time(&mut child)? {
        return Ok(Verdict::TooLong);
    }
    let said = reader.join().map_err(|_| "its output cannot be read".to_owned())?;
    Ok(verdict(&said, test.name))
}

/// Waits for the end, and kills what takes too long.
fn ended_in_time(child: &mut Child) -> Result<bool, String> {
    let told = |error: std::io::Error| format!("it cannot be waited for: {error}");
    let end = Instant::now() + LONGEST;
    while child.try_wait().map_err(told)?.is_none() {
        if Instant::now() >= end {
            child.kill().and_then(|()| child.wait()).map_err(told)?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}

/// Reads the verdict of the test harness on one test.
fn verdict(output: &str, name: &str) -> Verdict {
    let result = |word: &str| output.contains(&format!("test {name} ... {word}"));
    let passes = |passed: u32, failed: u32| output.contains(&format!(". {passed} passed; {failed} failed;"));
    if result("FAILED") && passes(0, 1) {
        let panic = output.lines().skip_while(|line| !line.contains("panicked at"));
        let shown = panic.take_while(|line| *line != "failures:").filter(|line| !line.is_empty()).take(SAID);
        let short = |line: &str| line.chars().take(WIDTH).collect::<String>();
        Verdict::Failed {
            said: shown.map(|line| format!("    {}", short(line))).collect::<Vec<_>>().join("\n"),
        }
    } else if result("ok") && passes(1, 0) {
        Verdict::Passed
    } else if passes(0, 0) {
        Verdict::Missing
    } else {
        Verdict::Broken("it ended without a verdict".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_ran_and_failed_has_caught_anything() {
        let failed = "running 1 test\ntest a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n\
            thread 'a::b' panicked at x.rs:1:1:\nleft is not right\n\n\
            test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out\n";
        let Verdict::Failed { said } = verdict(failed, "a::b") else { panic!("{failed}") };
        assert!(said.contains("left is not right"), "{said}");
        assert!(matches!(verdict(failed, "a::c"), Verdict::Broken(_)), "another test");
        let passed = "test a::b ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        assert_eq!(verdict(passed, "a::b"), Verdict::Passed);
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n";
        assert_eq!(verdict(none, "a::b"), Verdict::Missing);
        assert!(matches!(verdict("running 1 test\n", "a::b"), Verdict::Broken(_)), "aborted");
    }
}
