//! A server that is gone for a moment: what may be sent again is, and what might be done twice is not.

use orchestrator_client::{Client, ClientError, RemoteStore};
use orchestrator_core::{JobId, Key, NewJob, Timestamp};
use orchestrator_store::{Catalog, Command, Store, StoreError, Submitted};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TIME: &str = r#"{"now": "2026-11-16T04:00:00Z"}"#;

/// Reads one request, and says its first line.
async fn request(stream: &mut TcpStream) -> String {
    let (mut seen, mut buffer) = (vec![], [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().to_owned())
            });
            if body.len() >= length.map_or(0, |n| n.parse().unwrap()) {
                return head.lines().next().unwrap_or_default().to_owned();
            }
        }
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the client left");
        seen.extend_from_slice(&buffer[..read]);
    }
}

/// A server that takes requests and hangs up on the first `lost` of them that are not about the time, then answers `answer`.
async fn server(lost: u32, answer: String) -> (RemoteStore, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(AtomicU32::new(0));
    let counted = seen.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let body = if request(&mut stream).await.contains(" /time") {
                TIME
            } else if counted.fetch_add(1, Ordering::SeqCst) < lost {
                continue;
            } else {
                &answer
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    (RemoteStore::open(Client::new(&url).unwrap()).await.unwrap(), seen)
}

fn taken() -> (JobId, String) {
    let id = JobId::from_parts(Timestamp::from_millis(1), 7);
    (
        id,
        format!(
            r#"{{"jobs": [{{"id": "{id}", "result": "created", "state": "pending", "previous": null}}]}}"#
        ),
    )
}

#[tokio::test]
async fn what_can_be_told_from_a_repetition_is_sent_again() {
    let (id, answer) = taken();
    let (store, seen) = server(2, answer).await;
    let job = NewJob::new("noop").key(Key::new("k"));
    assert_eq!(store.submit(vec![job]).await.unwrap(), [Submitted::Created { id, previous: None }]);
    assert_eq!(seen.load(Ordering::SeqCst), 3);
    let (store, seen) = server(2, r#"{"limits": []}"#.to_owned()).await;
    assert_eq!(store.limits().await.unwrap(), []);
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn what_might_be_done_twice_is_not() {
    let (id, answer) = taken();
    let (store, seen) = server(1, answer).await;
    let lost = store.submit(vec![NewJob::new("noop")]).await;
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
    assert_eq!(seen.load(Ordering::SeqCst), 1, "a second one might be a second job");
    let (store, seen) = server(1, r#"{"results": []}"#.to_owned()).await;
    let lost = store.control(vec![Command::Retry(id).into()]).await;
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = RemoteStore::open(Client::new(&url).unwrap()).await.err().unwrap();
    assert!(matches!(error, ClientError::Unreachable { sent: false, .. }), "{error}");
    assert!(matches!(StoreError::from(error), StoreError::Unreachable { .. }));
    assert!(matches!(Client::new("ftp://x"), Err(ClientError::BadUrl { .. })));
}
