//! SIGHUP: a changed configuration is taken up, as far as it may; a wrong one is not, and all of its mistakes are told.

use super::server::Server;
use crate::remote;
use crate::support::{Place, until};
use rustix::process::Signal;
use serde_json::{Value, json};

const BEFORE: &str = "[server]\nmetrics_listen = \"\"\n[log]\nlevel = \"warn\"\n[limits]\n\"host:a.example\" = { concurrency = 2 }\n";
const AFTER: &str = "[server]\nmetrics_listen = \"\"\nmax_body = \"3MB\"\n[log]\nlevel = \"info\"\n[task]\ntimeout = \"7s\"\n\
    [limits]\n\"host:b.example\" = { concurrency = 3 }\n";
const WRONG: &str = "[log]\nlevel = \"loud\"\n[task]\ntimeout = \"soon\"\n[limits]\n\"host:c.example\" = { concurrency = 1 }\n";

fn limits(server: &Server) -> String {
    server.get("/limits").body
}

fn timeout_of_a_new_job(server: &Server) -> Value {
    let id =
        server.post("/jobs", &[], &json!({ "handler": "none" })).json()["id"].as_str().unwrap().to_owned();
    server.get(&format!("/jobs/{id}")).json()["tasks"][0]["spec"]["timeout"].clone()
}

#[test]
fn a_server_takes_up_what_may_change() {
    let place = Place::new();
    let mut server = Server::start(&place, BEFORE, &[]);
    assert!(limits(&server).contains("host:a.example"));
    let before = timeout_of_a_new_job(&server);
    assert!(!server.running.log().contains("answered"));

    place.write("orchestrator.toml", AFTER);
    server.running.signal(Signal::HUP);
    until("it to be taken up", || server.running.log().contains("the configuration was taken up"));
    until("what has to wait to be told", || {
        server.running.log().contains("server.max_body has changed; it holds from the next start on")
    });
    let now = limits(&server);
    assert!(now.contains("host:b.example") && !now.contains("host:a.example"), "{now}");
    assert_ne!(timeout_of_a_new_job(&server), before);
    until("the log to tell more", || server.running.log().contains("answered"));

    place.write("orchestrator.toml", WRONG);
    server.running.signal(Signal::HUP);
    until("it to be refused", || {
        server.running.log().contains("was not taken up, the old one stays in force")
    });
    until("all mistakes to be told", || {
        let log = server.running.log();
        log.contains("orchestrator.toml:2") && log.contains("orchestrator.toml:4")
    });
    assert_eq!(limits(&server), now);
    assert!(server.running.runs());
    server.stop();
}

#[test]
fn a_worker_takes_up_limits() {
    let place = Place::new();
    place.write("orchestrator.toml", BEFORE);
    let mut worker = place.start_as("worker", &["worker"]);
    until("the rule to be written", || {
        place.run(&["limits", "list", "--json"]).stdout.contains("host:a.example")
    });
    // It listens for signals before it writes rules.
    place.write("orchestrator.toml", AFTER);
    worker.signal(Signal::HUP);
    until("the new rule", || place.run(&["limits", "list", "--json"]).stdout.contains("host:b.example"));
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code(), Some(0), "{}", worker.log());
}

/// What is in force is what the process read when it started, however long it took to get ready.
#[test]
fn a_change_while_it_gets_ready_is_noticed() {
    let place = Place::new();
    place.write("orchestrator.toml", BEFORE);
    // An address that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut worker = place.start_as("worker", &["worker", "--server", &format!("http://{free}")]);
    until("it to wait for its server", || worker.log().contains("cannot reach the server"));
    place.write("orchestrator.toml", AFTER);
    let server = remote::Server::start_at(&place, &free, &[]);
    let listed = || place.run(&["workers", "list", "--server", server.url(), "-o", "jsonl"]).stdout;
    until("it to be at work", || listed().contains("\"gone\":false"));
    worker.signal(Signal::HUP);
    until("the change to be told", || {
        worker.log().contains("server.max_body has changed; it holds from the next start on")
    });
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code(), Some(0), "{}", worker.log());
}
