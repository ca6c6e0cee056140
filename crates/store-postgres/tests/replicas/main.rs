//! Several processes on one database behave as one: random sequences beside the model, in which one process
//! works and every other change comes from a process that has just started.

mod many;
mod races;

use async_trait::async_trait;
use many::Replicas;
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::{Clock, Store};
use pg_harness::Server;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Shared {
    open: Mutex<Option<String>>,
}

#[async_trait]
impl Fixture for Shared {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let url = Server::shared().database();
        *self.open.lock().unwrap() = Some(url.clone());
        Replicas::open(&url, clock).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        store.close().await;
        drop(store);
        let url = self.open.lock().unwrap().clone()?;
        Some(Replicas::open(&url, clock).await)
    }
}

/// How many sequences are run: `REPLICA_SEQUENCES` asks for more than a quick look. Each opens dozens of stores.
fn sequences() -> u32 {
    std::env::var("REPLICA_SEQUENCES").map_or(10, |n| n.parse().expect("REPLICA_SEQUENCES is a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn random_sequences() {
    conformance::random_sequences(&Shared::default(), sequences(), 40, 11).await;
}
