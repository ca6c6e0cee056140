//! What the simulator tells people.

use sim::oracle::Violation;
use sim::shrink::shrink;
use sim::{Script, run};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest that a failing script is shortened.
const SHRINK_FOR: Duration = Duration::from_secs(60);
/// How much of the trace is shown.
const LAST_LINES: usize = 40;
/// How much of a violation is shown on one line.
const BRIEF: usize = 300;

/// Says something. A reader that has gone is no reason to stop.
pub fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Says what went wrong.
pub fn fail(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Shows how far a run is.
pub fn progress(done: u64, of: u64) {
    let _ = write!(io::stderr(), "\r{done} of {of} seeds");
}

/// Makes room behind the progress.
pub fn progress_ends() {
    let _ = write!(io::stderr(), "\r\x1b[K");
}

/// A violation on one line.
pub fn brief(violation: &Violation) -> String {
    let text = violation.to_string();
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

/// Reads a kept script.
pub fn read(file: &Path) -> Result<Script, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Shortens a failing script, shows it, and keeps it in a file.
pub fn explain(script: &Script, violation: &Violation) {
    fail(&format!("seed {} breaks a rule of kind {:?}; making it shorter ...", script.seed, violation.kind));
    let end = Instant::now() + SHRINK_FOR;
    let same = |candidate: &Script| {
        run(candidate, false).violation.is_some_and(|found| found.kind == violation.kind)
    };
    let short = shrink(script, same, || Instant::now() < end);
    let outcome = run(&short, true);
    say(&format!("\nThe script, {} of {} steps:\n{short}", short.steps.len(), script.steps.len()));
    say("The end of its trace:");
    let skipped = outcome.lines.len().saturating_sub(LAST_LINES);
    outcome.lines.iter().skip(skipped).for_each(|line| say(line));
    let found = outcome.violation.as_ref().unwrap_or(violation);
    say(&format!("\nseed {} breaks a rule: {found}", script.seed));
    let file = PathBuf::from(format!("sim-failure-{}.json", script.seed));
    let text = serde_json::to_string_pretty(&short).unwrap_or_default();
    match fs::write(&file, text + "\n") {
        Ok(()) => say(&format!("kept in {0}; see all of it with: sim --replay {0} --trace", file.display())),
        Err(error) => fail(&format!("cannot write {}: {error}", file.display())),
    }
}
