//! What happened, as clients and handlers saw it from outside, and whether it may have happened.
//!
//! A test that breaks things writes a [`History`] while it does so: every call of a client with its answer,
//! every start and end of a handler, every fault. When all has healed it reads the jobs once more
//! ([`LastWord`]) and asks [`check`] for a [`Verdict`]: what was lost, doubled, stuck or wrong.
//!
//! The checker believes only what was seen. A call without an answer may have taken effect or not, and both are
//! allowed for. It knows no store, no engine and no clock, so the simulation and the storms on the real binary
//! are judged by the same rules.

mod check;
mod event;
mod last;
mod verdict;

pub use check::{Rules, check};
pub use event::{Answer, Call, CallId, Event, History, Run, Seen, SeenTask, Tick};
pub use last::{LastJob, LastTask, LastWord};
pub use verdict::{Finding, Kind, Verdict};
