//! The PostgreSQL store passes the suite that every store passes.

use async_trait::async_trait;
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::{Clock, Store};
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::Server;
use std::sync::{Arc, Mutex};

/// A database per store, on a server that the tests of this process share.
#[derive(Default)]
struct Databases {
    open: Mutex<Option<String>>,
}

async fn open(url: &str, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
    PostgresStore::open(Options { clock: Some(clock), ..Options::new(url) }).await.unwrap()
}

#[async_trait]
impl Fixture for Databases {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let url = Server::shared().database();
        *self.open.lock().unwrap() = Some(url.clone());
        open(&url, clock).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        drop(store);
        let url = self.open.lock().unwrap().clone()?;
        Some(open(&url, clock).await)
    }
}

/// How many sequences each half runs: `POSTGRES_SEQUENCES` asks for more than a quick look.
fn sequences() -> u32 {
    std::env::var("POSTGRES_SEQUENCES").map_or(40, |n| n.parse().expect("POSTGRES_SEQUENCES is a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn examples() {
    conformance::examples(&Databases::default()).await;
}

/// In two halves, which run beside each other.
#[tokio::test(flavor = "multi_thread")]
async fn random_sequences() {
    conformance::random_sequences(&Databases::default(), sequences(), 40, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_random_sequences() {
    conformance::random_sequences(&Databases::default(), sequences(), 40, 1_000_001).await;
}

/// Sequences that once told the store from the model.
#[tokio::test(flavor = "multi_thread")]
async fn sequences_that_failed_before() {
    for seed in [109, 1_000_067] {
        conformance::random_sequences(&Databases::default(), 1, 40, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_leasers() {
    conformance::racing_leasers(&Databases::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_equal_singles() {
    conformance::batches_equal_singles(&Databases::default(), 1).await;
}
