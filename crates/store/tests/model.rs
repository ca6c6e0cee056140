//! The model passes the suite that it is the measure of.

use async_trait::async_trait;
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::model::ModelStore;
use orchestrator_store::{Clock, Store};
use std::sync::Arc;

struct InMemory;

#[async_trait]
impl Fixture for InMemory {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        Arc::new(ModelStore::new(clock))
    }

    /// Its data live as long as the value does, so opening it again is keeping it.
    async fn reopen(&self, store: Arc<dyn Store>, _clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        Some(store)
    }
}

#[tokio::test]
async fn examples() {
    conformance::examples(&InMemory).await;
}

#[tokio::test]
async fn random_sequences() {
    conformance::random_sequences(&InMemory, 200, 60, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_leasers() {
    conformance::racing_leasers(&InMemory).await;
}

#[tokio::test]
async fn batches_equal_singles() {
    for seed in 0..10 {
        conformance::batches_equal_singles(&InMemory, seed).await;
    }
}
