//! Runs tasks: handlers, slots, heartbeats and a graceful end, on any source of work.

#[cfg(feature = "builtin")]
pub mod builtin;
pub mod handler;
mod meters;
pub mod pool;
pub mod source;

pub use handler::{Handler, Registry, Work, handler_fn, typed};
pub use meters::METERS;
pub use pool::{DEFAULT_MAX_OUTPUT, Pool, PoolConfig, Prefetch, Report, Stats, Summary};
pub use source::{SourceError, WorkSource};
