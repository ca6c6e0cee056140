//! The real binary, as people and scripts use it. Each test has a directory of its own; where a
//! test waits, it waits for a condition and never for a span of time.

mod bad_input;
mod config;
mod crash;
mod help;
mod import;
mod operate;
mod queue;
mod signals;
mod support;
