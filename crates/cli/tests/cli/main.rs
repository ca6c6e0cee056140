//! The real binary, as people and scripts use it. Each test has a directory of its own; where a
//! test waits, it waits for a condition and never for a span of time.

mod bad_flows;
mod bad_input;
mod config;
mod corpus;
mod crash;
mod dead_letters;
mod examples;
mod flow_crash;
mod flows;
mod help;
mod import;
mod jobs;
mod migrate;
mod observe;
mod operate;
mod postgres_faults;
mod python_worker;
mod queue;
mod remote;
mod replicas;
mod retention;
mod run;
mod signals;
mod steer;
mod support;
