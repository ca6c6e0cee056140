//! `serve`: its start, its mistakes, and its end in order.

use super::Server;
use crate::support::{Place, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends a request and hands over the connection, on which the answer will come.
fn ask(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn mistakes_are_told_all_at_once() {
    let place = Place::new();
    place.write(
        "orchestrator.toml",
        "[server]\nmax_body = \"huge\"\ndrain = \"soon\"\n[queue]\nmax_workers = 0\n",
    );
    let done = place.expect(1, &["serve", "--listen", "127.0.0.1:0"]);
    for part in ["3 errors", "server.max_body", "server.drain", "queue.max_workers"] {
        assert!(done.stderr.contains(part), "{part} not in {done:?}");
    }
    assert!(!place.path("orchestrator.db").exists(), "nothing was made");
}

#[test]
fn an_address_that_is_taken_or_open_to_all_is_refused() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let done = place.expect(1, &["serve", "--listen", &server.address(), "--db", "other.db"]);
    assert!(done.stderr.contains("cannot listen on") && done.stderr.contains("--listen"), "{done:?}");
    let done = place.expect(2, &["serve", "--listen", "0.0.0.0:0", "--db", "other.db"]);
    assert!(done.stderr.contains("--allow-unauthenticated"), "{done:?}");
}

#[test]
fn a_stop_lets_what_is_under_way_finish() {
    let place = Place::new();
    let mut server = Server::start(&place, &["--workers"]);
    let on = ["--server", server.url.as_str()];
    // Far in the future, so that somebody waits for it when the stop comes.
    place.enqueue_script("later", "true", &[&["--run-at", "2099-01-01T00:00:00Z"][..], &on].concat());
    let job = place.json(&[&["jobs", "list"][..], &on].concat());
    let id = job["id"].as_str().unwrap();
    let waiting = ask(&server.address(), &format!("/jobs/{id}/wait?timeout=5m"));
    assert!(answer(ask(&server.address(), "/ready")).starts_with("HTTP/1.1 200"), "it takes work");
    server.running.signal(Signal::TERM);
    let answer = answer(waiting);
    assert!(answer.starts_with("HTTP/1.1 202"), "the job as it is when nobody can wait any more: {answer}");
    assert_eq!(server.running.end().code(), Some(0), "{}", server.running.log());
    assert!(!server.running.log().contains("cut off"), "{}", server.running.log());
    until("the port to be free", || TcpStream::connect(server.address()).is_err());
}

#[test]
fn workers_inside_run_what_comes() {
    let place = Place::new();
    let mut server = Server::start(&place, &["--workers"]);
    let done = place.expect(
        0,
        &[
            "queue",
            "enqueue",
            "--artifact-id",
            "a",
            "--handler",
            "noop",
            "--wait=60s",
            "--server",
            &server.url,
        ],
    );
    assert!(done.stdout.contains("completed"), "{done:?}");
    server.running.signal(Signal::INT);
    assert_eq!(server.running.end().code(), Some(130));
}
