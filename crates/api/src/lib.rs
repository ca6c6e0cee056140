//! The words of the wire: what requests and answers of the HTTP API hold, shared by server and client.
//!
//! Jobs, tasks, flows, limits and so on are written as the store shows them (`orchestrator-store`), the same as the command line does;
//! here is what stands around them.

pub mod batch;
pub mod dead_letters;
pub mod events;
pub mod flows;
pub mod health;
pub mod jobs;
pub mod limits;
pub mod old;
pub mod problem;
pub mod queues;
pub mod stats;
pub mod tasks;
pub mod time;
pub mod work;
pub mod workers;
