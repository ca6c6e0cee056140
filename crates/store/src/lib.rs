//! The store contract: what the engine needs done, as verbs over batches.
//!
//! A verb is a transaction. No transaction type crosses this boundary, and rules stay in
//! `orchestrator-core`: a store compares, writes and answers. The [`model`] is the contract told as
//! plain code in memory; [`conformance`] runs any store against it.

pub mod clock;
pub mod conformance;
mod contract;
pub mod copy;
pub mod error;
mod journal;
pub mod meter;
pub mod model;
pub mod packed;
mod retention;
pub mod untaken;
mod verbs;
mod views;

pub use clock::{Clock, ManualClock, SystemClock};
pub use contract::{Catalog, Store};
pub use error::{StoreError, StoreResult};
pub use journal::*;
pub use retention::*;
pub use verbs::*;
pub use views::*;
