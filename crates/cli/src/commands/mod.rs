//! One file per command.

pub mod completions;
pub mod config;
pub mod demo;
pub mod limits;
pub mod queue;
