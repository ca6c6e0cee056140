//! What a run really exercised, in figures.

use std::collections::BTreeMap;
use std::fmt;

/// Counts, by what and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<(&'static str, &'static str), u64>);

/// What must have happened in any long run. A fault that never happens is a check that checks nothing.
pub const EXPECTED: &[(&str, &[&str])] = &[
    (
        "actions",
        &[
            "submit",
            "cancel",
            "pause",
            "resume",
            "retry",
            "recover",
            "requeue",
            "discard",
            "wait",
            "read",
            "set limit",
            "graceful restart",
            "kill",
            "freeze",
            "clock jump back",
            "clock jump forward",
            "outage (hangs)",
            "outage (fails)",
        ],
    ),
    ("submits", &["created", "existing", "conflict", "error", "unknown"]),
    ("cancel", &["done", "refused"]),
    ("pause", &["done", "refused"]),
    ("resume", &["done", "refused"]),
    ("retry", &["done", "refused", "superseded"]),
    ("recover", &["done", "refused", "no recovery", "no such task"]),
    ("requeue", &["done"]),
    ("discard", &["done"]),
    (
        "faults",
        &[
            "error before the effect",
            "unknown before the effect",
            "unknown after the effect",
            "slow call",
            "stalled call",
            "settlement twice",
            "settlement past its lease",
            "lost hint",
            "refused by an outage",
            "kept by an outage",
            "effect after the process died",
            "lease given back",
        ],
    ),
    (
        "handlers",
        &[
            "completed",
            "long",
            "failed",
            "panicked",
            "hung",
            "deaf",
            "leg",
            "skipped",
            "gave back",
            "too large",
            "aborted",
        ],
    ),
    ("settlements", &["applied", "stale"]),
    ("sweeps", &["lost", "timeout", "deadline"]),
    ("waits", &["ended", "time was up", "process gone"]),
    ("ends", &["completed", "failed", "timed out", "cancelled"]),
    ("runs", &["calm", "with faults"]),
];

impl Tally {
    /// Counts one.
    pub fn count(&mut self, what: &'static str, how: &'static str) {
        self.add(what, how, 1);
    }

    /// Counts several.
    pub fn add(&mut self, what: &'static str, how: &'static str, times: u64) {
        *self.0.entry((what, how)).or_default() += times;
    }

    /// Takes the counts of another run in.
    pub fn merge(&mut self, other: &Tally) {
        for ((what, how), times) in &other.0 {
            self.add(what, how, *times);
        }
    }

    /// How often something happened.
    pub fn of(&self, what: &'static str, how: &'static str) -> u64 {
        self.0.get(&(what, how)).copied().unwrap_or(0)
    }

    /// What is expected of a long run and never happened.
    pub fn missing(&self) -> Vec<String> {
        let all = EXPECTED.iter().flat_map(|(what, hows)| hows.iter().map(move |how| (*what, *how)));
        all.filter(|(what, how)| self.of(what, how) == 0)
            .map(|(what, how)| format!("{what}: {how}"))
            .collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for ((what, how), times) in &self.0 {
            if *what != last {
                write!(f, "{}{what:<12}", if last.is_empty() { "" } else { "\n" })?;
                last = what;
            } else {
                write!(f, ",")?;
            }
            write!(f, " {how} {times}")?;
        }
        Ok(())
    }
}
