//! One suite for all stores. A store that passes it keeps the contract; no part may be skipped.
//!
//! Everything here panics at the first thing that is not as the contract says, with what was got,
//! what was expected and, for random sequences, the seed that repeats it. Nothing waits by the
//! wall clock: the tests move the store's clock themselves.

mod batches;
pub mod crash;
mod examples;
mod flows;
mod names;
mod racing;
mod random;
mod replay;
mod snapshot;
mod world;

pub use batches::batches_equal_singles;
pub use examples::examples;
pub use racing::racing_leasers;
pub use random::random_sequences;

use crate::clock::Clock;
use crate::contract::{Catalog, Store};
use async_trait::async_trait;
use std::sync::Arc;

/// Makes the stores that the suite tests.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// A fresh, empty store on `clock`.
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store>;

    /// Closes the store and opens the same data again; `None` for stores that keep nothing. The
    /// suite holds no other reference to `store`.
    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>>;
}

/// Says where two stores differ in what can be seen of them, if they do. Their ids need not be the same.
pub async fn compare(ours: &dyn Catalog, others: &dyn Catalog) -> Result<(), String> {
    let (ours, others) = (snapshot::Snapshot::of(ours).await, snapshot::Snapshot::of(others).await);
    ours.same_as(&others)
}
