//! Who gives the entries of the journal their numbers.

use orchestrator_core::NewJob;
use orchestrator_store::{Catalog, EventId, Store, SweepAsk};
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::Server;

/// Entries without a number, counted past the store: it would give them out when asked.
fn unnumbered(url: &str) -> String {
    let name = url.rsplit('/').next().unwrap();
    let count = Server::shared().sql(name, "SELECT count(*) FROM orchestrator.journal WHERE n IS NULL");
    count.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_numbers_what_nobody_has_read() {
    let url = Server::shared().database();
    let leader = PostgresStore::open(Options::new(&url)).await.unwrap();
    assert!(leader.leads().await);
    let other = PostgresStore::open(Options::new(&url)).await.unwrap();
    for _ in 0..5 {
        other.submit(vec![NewJob::new("work")]).await.unwrap();
    }
    let ask = SweepAsk { limit: 100, jitter: 0.0 };
    other.expired(ask).await.unwrap();
    assert_eq!(unnumbered(&url), "5", "who does not lead leaves them");
    leader.expired(ask).await.unwrap();
    assert_eq!(unnumbered(&url), "0");
    other.submit(vec![NewJob::new("work")]).await.unwrap();
    let page = other.journal(EventId::START, 100).await.unwrap();
    let entries: Vec<_> = page.events.iter().map(|event| event.id.entry).collect();
    assert_eq!(entries, [1, 2, 3, 4, 5, 6], "who reads what is newer numbers it");
}
