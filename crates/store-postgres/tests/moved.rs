//! A database that is moved from SQLite keeps the contract in the middle of whatever it did: the suite's stores begin in a
//! file, and where the suite reopens one it goes on in PostgreSQL.

use async_trait::async_trait;
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::copy::Table;
use orchestrator_store::{Clock, Store};
use orchestrator_store_postgres::connect::Connections;
use orchestrator_store_postgres::{Options, PostgresStore, copy, schema};
use orchestrator_store_sqlite::SqliteStore;
use orchestrator_store_sqlite::copy::Outgoing;
use pg_harness::Server;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where the newest store is.
enum At {
    File(tempfile::TempDir),
    Server(String),
}

#[derive(Default)]
struct Moves(Mutex<Option<At>>);

const FILE: &str = "orchestrator.db";

#[async_trait]
impl Fixture for Moves {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let dir = tempfile::tempdir().unwrap();
        let options = orchestrator_store_sqlite::Options { clock, ..Default::default() };
        let store = SqliteStore::open(&dir.path().join(FILE), options).unwrap();
        *self.0.lock().unwrap() = Some(At::File(dir));
        store
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        store.close().await;
        drop(store);
        let at = self.0.lock().unwrap().take()?;
        let url = match at {
            At::Server(url) => url,
            At::File(dir) => {
                let url = Server::shared().database();
                move_over(&dir.path().join(FILE), &url).await;
                url
            }
        };
        *self.0.lock().unwrap() = Some(At::Server(url.clone()));
        Some(PostgresStore::open(Options { clock: Some(clock), ..Options::new(url) }).await.unwrap())
    }
}

async fn move_over(file: &Path, url: &str) {
    let connections = Connections::new(&Options::new(url)).unwrap();
    schema::prepare(&connections).await.unwrap();
    let mut from = Outgoing::open(file, Duration::from_secs(5)).unwrap();
    let copy::Begun::Copying(mut to) = copy::begin(&connections).await.unwrap() else {
        panic!("a fresh database has room for a copy")
    };
    for table in Table::ALL {
        let mut batches = vec![];
        from.read(*table, |batch| {
            batches.push(batch);
            true
        })
        .unwrap();
        for batch in batches {
            to.write(batch).await.unwrap();
        }
    }
    to.finish(from.salt().unwrap(), from.last_seq().unwrap(), "a test").await.unwrap();
    from.mark(connections.place()).unwrap();
    to.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn examples() {
    conformance::examples(&Moves::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_sequences() {
    let n = std::env::var("POSTGRES_SEQUENCES")
        .map_or(40, |n| n.parse().expect("POSTGRES_SEQUENCES is a number"));
    conformance::random_sequences(&Moves::default(), n, 60, 2_000_001).await;
}
