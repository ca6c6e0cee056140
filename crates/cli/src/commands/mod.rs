//! One file per command.

pub mod completions;
pub mod config;
pub mod dead_letter;
pub mod demo;
pub mod dev;
pub mod flows;
pub mod jobs;
pub mod limits;
pub mod migrate;
pub mod queue;
pub mod run;
pub mod serve;
pub mod tasks;
pub mod worker;
pub mod workers;
