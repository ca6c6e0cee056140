//! Clients that are slow, or that do not wait for their answers, on a real listener.

use crate::world::World;
use orchestrator_server::{Drained, Patience, serve_with};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(100);

async fn listening(world: &World, patience: Patience) -> (TcpStream, JoinHandle<Drained>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server =
        tokio::spawn(serve_with(listener, world.router.clone(), world.stopping.clone(), LONG, patience));
    (TcpStream::connect(address).await.unwrap(), server)
}

/// Everything until the server closes the connection.
async fn rest(client: &mut TcpStream) -> String {
    let mut bytes = vec![];
    // A server that hangs up while bytes of ours are on their way may reset the connection.
    let _ = client.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_headers_is_cut_off() {
    let world = World::new().await;
    let (mut client, server) = listening(&world, Patience { headers: SHORT, body: LONG }).await;
    client.write_all(b"GET /live HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
    let told = rest(&mut client).await;
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 408"), "{told}");
    world.stopping.cancel();
    assert_eq!(server.await.unwrap(), Drained::Whole);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::new().await;
    let (mut client, server) = listening(&world, Patience { headers: LONG, body: SHORT }).await;
    let head =
        "POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    client.write_all(head.as_bytes()).await.unwrap();
    let told = rest(&mut client).await;
    assert!(told.starts_with("HTTP/1.1 408") && told.contains("\"code\":\"slow_body\""), "{told}");
    let form = "POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 100\r\n\r\n--x";
    let mut client = TcpStream::connect(client.peer_addr().unwrap()).await.unwrap();
    client.write_all(form.as_bytes()).await.unwrap();
    let told = rest(&mut client).await;
    assert!(told.starts_with("HTTP/1.1 408") && told.contains("\"code\":\"slow_body\""), "{told}");
    world.stopping.cancel();
    assert_eq!(server.await.unwrap(), Drained::Whole);
    assert_eq!(
        world
            .engine
            .store()
            .list(Default::default(), orchestrator_store::Page { after: None, limit: 1 })
            .await
            .unwrap(),
        []
    );
}

#[tokio::test]
async fn requests_that_are_sent_ahead_are_answered_in_order() {
    let world = World::new().await;
    let (mut client, server) = listening(&world, Patience::default()).await;
    let body = r#"{"handler":"work"}"#;
    let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
    let post = format!(
        "POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let all =
        [get("/nothing", ""), post.clone(), get("/jobs/7", ""), post, get("/jobs", "Connection: close\r\n")];
    client.write_all(all.concat().as_bytes()).await.unwrap();
    let told = rest(&mut client).await;
    let statuses: Vec<_> = told.match_indices("HTTP/1.1 ").map(|(at, _)| &told[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["404", "201", "400", "201", "200"], "{told}");
    world.stopping.cancel();
    assert_eq!(server.await.unwrap(), Drained::Whole);
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let world = World::new().await;
    let (client, server) = listening(&world, Patience::default()).await;
    let address = client.peer_addr().unwrap();
    drop(client);
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X-A: b\r\n".repeat(10_000));
    let twice = "POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n";
    for text in ["\u{16}\u{3}\u{1} hello", "GET\r\n\r\n", &long, &many, twice] {
        let mut client = TcpStream::connect(address).await.unwrap();
        let _ = client.write_all(text.as_bytes()).await;
        let told = rest(&mut client).await;
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 4"), "{told}");
    }
    world.stopping.cancel();
    assert_eq!(server.await.unwrap(), Drained::Whole);
}
