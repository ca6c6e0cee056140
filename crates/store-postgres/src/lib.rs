//! The store for many replicas: PostgreSQL.
//!
//! A verb is one transaction. What it needs is read and locked by set-based statements (`load`), computed in memory by
//! the rules of core (`work`), and written by set-based statements, one per table (`flush`). Leases take rows with
//! SKIP LOCKED (`lease`), so replicas never wait for each other there. Callers that come at the same time share a
//! transaction (`batch`).

mod batch;
mod clock;
pub mod connect;
pub mod copy;
pub mod error;
mod flush;
mod forget;
mod leader;
mod lease;
mod limits;
mod load;
mod marks;
mod meters;
mod names;
mod naming;
mod operate;
mod place;
#[cfg(test)]
mod plans;
mod quiet;
mod read;
pub mod schema;
mod store;
mod tx;
mod unwoken;
mod verbs;
mod wake;
mod work;

pub use connect::Options;
pub use store::PostgresStore;
