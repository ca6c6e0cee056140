//! Answers that get lost on the wire: the commit took effect, and the process does not know.

use orchestrator_core::{Json, Millis, NewJob, WorkerId};
use orchestrator_store::{LeaseAsk, Store, StoreError};
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const COMMIT: &[u8] = b"COMMIT\0";

/// A wire that can lose the answer to the next commit, and breaks with it.
struct Wire {
    url: String,
    lose_next: Arc<AtomicBool>,
}

impl Wire {
    async fn to(url: &str) -> Wire {
        let (front, rest) = url.split_once('@').unwrap();
        let (host, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lose_next = Arc::new(AtomicBool::new(false));
        let (server, lose) = (host.to_owned(), lose_next.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carry(client, server, lose.clone()));
            }
        });
        Wire { url: format!("{front}@127.0.0.1:{port}/{database}"), lose_next }
    }
}

async fn carry(client: TcpStream, server: TcpStream, lose_next: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let losing = Arc::new(AtomicBool::new(false));
    let loses = losing.clone();
    let there = tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from_client.read(&mut buffer).await {
            let commits = buffer[..n].windows(COMMIT.len()).any(|part| part == COMMIT);
            if commits && lose_next.swap(false, Ordering::SeqCst) {
                loses.store(true, Ordering::SeqCst);
            }
            if to_server.write_all(&buffer[..n]).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from_server.read(&mut buffer).await {
        if losing.load(Ordering::SeqCst) && buffer[..n].windows(COMMIT.len()).any(|part| part == COMMIT) {
            break;
        }
        if to_client.write_all(&buffer[..n]).await.is_err() {
            break;
        }
    }
    there.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_lease_took_is_given_back() {
    let wire = Wire::to(&Server::shared().database()).await;
    let store = PostgresStore::open(Options::new(&wire.url)).await.unwrap();
    let ask = LeaseAsk {
        worker: WorkerId::new("w"),
        queues: vec!["default".into()],
        handlers: vec!["work".into()],
        slots: 10,
        ttl: Millis::mins(10),
        hold: Millis(0),
    };
    store.submit(vec![NewJob::new("work").payload(Json::null()), NewJob::new("work")]).await.unwrap();
    wire.lose_next.store(true, Ordering::SeqCst);
    let lost = store.lease(ask.clone()).await;
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
    assert!(!wire.lose_next.load(Ordering::SeqCst), "no commit was seen");
    let again = store.lease(ask).await.unwrap().tasks;
    let counters: Vec<_> = again.iter().map(|leased| leased.counters).collect();
    assert_eq!(counters.len(), 2);
    for counters in counters {
        assert_eq!((counters.attempt, counters.failures, counters.crashes), (2, 0, 0));
    }
}
