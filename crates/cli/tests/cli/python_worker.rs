//! The worker of examples/python-worker: the protocol is enough for a program in another language.

use crate::remote::Server;
use crate::support::{Place, Running, until};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn python_worker(place: &Place, url: &str) -> Running {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python-worker/worker.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(url);
    place.start_command("python", command)
}

fn enqueue(place: &Place, id: &str, payload: Value) {
    let payload = payload.to_string();
    let job = ["--artifact-id", id, "--handler", "shout", "--payload", &payload];
    place.expect(
        0,
        &[&["queue", "enqueue", "--db", "server.db", "--allow-unknown-handler"], &job[..]].concat(),
    );
}

fn jobs(place: &Place) -> Vec<Value> {
    let jobs = place.expect(0, &["jobs", "list", "--db", "server.db", "-o", "jsonl", "--full"]).stdout;
    jobs.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The job with a key, once it has ended.
fn ended(place: &Place, key: &str) -> Value {
    let found = || jobs(place).into_iter().find(|job| job["key"] == key && job["ended"].is_string());
    until("the job to end", || found().is_some());
    found().unwrap()
}

#[test]
fn a_worker_in_python_runs_jobs_and_outlives_a_server_that_is_killed() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let mut worker = python_worker(&place, server.url());
    enqueue(&place, "one", json!({ "text": "hello" }));
    enqueue(&place, "bad", json!({ "words": 1 }));
    let one = ended(&place, "one");
    assert_eq!((&one["state"], &one["output"]), (&json!("completed"), &json!({ "text": "HELLO" })));
    let failed = &ended(&place, "bad")["tasks"][0];
    assert_eq!((&failed["state"], &failed["counters"]["attempt"]), (&json!("failed"), &json!(1)));
    assert!(failed["history"][0]["message"].as_str().unwrap().contains("KeyError"), "{failed}");

    let address = server.address();
    server.kill();
    enqueue(&place, "two", json!({ "text": "again" }));
    let _server = Server::start_at(&place, &address, &[]);
    assert_eq!(ended(&place, "two")["output"], json!({ "text": "AGAIN" }));
    assert!(worker.runs(), "{}", worker.log());
}
