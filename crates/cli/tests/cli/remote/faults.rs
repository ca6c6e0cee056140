//! A server that dies under its workers and its callers, and comes back.

use super::Server;
use crate::support::{Place, WAIT_FOR_GO, until};
use rustix::process::Signal;
use serde_json::Value;

/// What a command says on a server, as JSON.
fn json(place: &Place, server: &Server, args: &[&str]) -> Value {
    place.json(&[args, &["--server", &server.url]].concat())
}

#[test]
fn a_worker_outlives_its_server() {
    let place = Place::new();
    let mut server = Server::start(&place, &[]);
    let address = server.address();
    let url = server.url.clone();
    let on = ["--server", url.as_str()];
    place.enqueue_script("held", &format!("{WAIT_FOR_GO}; echo ran >> ran"), &on);
    let mut worker =
        place.start_as("worker", &[&["worker", "--lease-ttl", "60s", "--heartbeat", "1s"][..], &on].concat());
    until("the job to run", || json(&place, &server, &["queue", "stats"])["in_progress"] == 1);
    until("the worker to be listed", || {
        let worker = json(&place, &server, &["workers", "list"]);
        (&worker["gone"], &worker["running"], &worker["slots"]) == (&false.into(), &1.into(), &8.into())
    });
    server.running.signal(Signal::KILL);
    server.running.end();
    // It ends while nobody is there to hear of it, and another one comes in as soon as somebody is.
    place.write("go", "");
    until("the job to end", || place.read("ran") == "ran\n");
    let server = Server::start_at(&place, &address, &[]);
    until("its end to be told", || json(&place, &server, &["queue", "stats"])["done"] == 1);
    place.enqueue_script("next", "echo next >> ran", &on);
    until("the next one to end", || json(&place, &server, &["queue", "stats"])["done"] == 2);
    assert_eq!(place.read("ran"), "ran\nnext\n", "each ran once");
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code(), Some(0), "{}", worker.log());
    assert_eq!(json(&place, &server, &["workers", "list"])["gone"], true);
}

#[test]
fn a_command_waits_for_a_restart() {
    let place = Place::new();
    let mut server = Server::start(&place, &[]);
    let (address, url) = (server.address(), server.url.clone());
    let on = ["--server", url.as_str()];
    place.enqueue_script("held", WAIT_FOR_GO, &on);
    let _worker = place.start_as("worker", &[&["worker"][..], &on].concat());
    // It looks again and again, and one of its looks meets nobody.
    let id = json(&place, &server, &["jobs", "list"])["id"].as_str().unwrap().to_owned();
    let mut watch = place.start_as("watch", &[&["jobs", "watch", &id][..], &on].concat());
    until("it to see the job run", || watch.log().contains("running"));
    server.running.signal(Signal::TERM);
    assert_eq!(server.running.end().code(), Some(0), "{}", server.running.log());
    let _server = Server::start_at(&place, &address, &[]);
    place.write("go", "");
    assert_eq!(watch.end().code(), Some(0), "{}", watch.log());
}

#[test]
fn a_worker_waits_for_its_server_and_a_command_does_not() {
    let place = Place::new();
    // An address that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let url = format!("http://{free}");
    let done = place.expect(8, &["jobs", "list", "--server", &url]);
    assert!(done.stderr.contains("is the server running"), "{done:?}");
    let mut worker = place.start_as("worker", &["worker", "--server", &url]);
    until("the worker to say so", || worker.log().contains("cannot reach the server"));
    let server = Server::start_at(&place, &free, &[]);
    let listed = || place.run(&["workers", "list", "--server", &server.url, "-o", "jsonl"]).stdout;
    until("the worker to be there", || listed().contains("\"gone\":false"));
    assert!(worker.runs(), "{}", worker.log());
}
