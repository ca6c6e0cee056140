//! The seeded simulator: real engines, sweepers and pools on the model store, on virtual time, under faults.
//!
//! A seed makes a [`script::Script`], a script makes a run ([`run::run`]), and a run that breaks a rule is made
//! shorter ([`shrink`]) before anybody has to look at it. One thread and one virtual clock per run, and all
//! chance comes from the seed: what happened once happens again.

pub mod book;
pub mod chance;
pub mod client;
pub mod clock;
pub mod fleet;
pub mod generate;
pub mod handler;
pub mod jobs;
pub mod last;
pub mod oracle;
pub mod panics;
pub mod process;
pub mod rules;
pub mod run;
pub mod script;
pub mod shrink;
pub mod store;
pub mod tally;
pub mod world;

pub use generate::generate;
pub use oracle::Violation;
pub use run::{Outcome, run};
pub use script::Script;
