//! Whether a history may have been.
//!
//! The history is read once into an index by job, key and run (`trace`); then each file here holds one group of
//! rules against it. A rule only fires when no order of the unknown can explain what was seen:
//!
//! - Events are ordered by their place in the history. A call took effect somewhere between its call and its answer,
//!   and one whose answer is unknown at any moment after its call, or never.
//! - A handler notes its start and its end before the store can hear of them, so the place of such a note is sure.
//! - One call is one request: a client that asks again does it with a new call.

mod calls;
mod ends;
mod found;
mod job_reads;
mod keys;
mod known;
mod limits;
mod order;
mod runs;
mod submits;
mod task_reads;
mod trace;

use crate::{History, LastWord, Verdict};
use found::Found;
use orchestrator_core::LimitKey;
use std::collections::BTreeMap;
use trace::Trace;

/// What holds in the run at hand beyond what always holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// At most so many handlers work under each of these keys at once. Leave out where a worker was stopped for
    /// longer than its lease: such a one goes on for a moment though its slot is another's.
    pub limits: BTreeMap<LimitKey, u32>,
    /// No attempt was lost: nothing happened that may cost one.
    pub no_crashes: bool,
}

/// Holds a history against the end that it came to.
pub fn check(history: &History, last: &LastWord, rules: &Rules) -> Verdict {
    let trace = Trace::new(history, last);
    let mut found = Found::default();
    submits::check(&trace, &mut found);
    keys::check(&trace, &mut found);
    job_reads::check(&trace, &mut found);
    task_reads::check(&trace, &mut found);
    runs::check(&trace, &mut found);
    order::check(&trace, &mut found);
    ends::check(&trace, rules, &mut found);
    limits::check(history, &rules.limits, &mut found);
    let calls = calls::check(history, &trace, &mut found);
    Verdict {
        findings: found.sorted(),
        calm_calls: calls.calm,
        calm_successes: calls.calm_successes,
        unknown: calls.unknown,
    }
}
