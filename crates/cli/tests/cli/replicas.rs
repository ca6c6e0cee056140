//! Several `worker` processes on one PostgreSQL database.

use crate::support::{Place, Running, WAIT_FOR_GO, until};
use orchestrator_core::Timestamp;
use pg_harness::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What makes processes quick to notice each other.
const QUICK: [&str; 8] =
    ["--poll", "50ms", "--lease-ttl", "2s", "--heartbeat", "200ms", "--max-workers", "4"];

/// A directory whose configuration names a database.
fn place(url: &str) -> Place {
    let place = Place::new();
    place.write("orchestrator.toml", &format!("[store]\ndb = \"{url}\"\n"));
    place
}

fn worker(place: &Place, name: &str, more: &[&str]) -> Running {
    place.start_as(name, &[&["worker", "-v"], &QUICK[..], more].concat())
}

fn leads(worker: &Running) -> bool {
    worker.log().contains("this process leads")
}

/// Every job, whole.
fn all_jobs(place: &Place) -> Vec<Value> {
    let list = place.expect(0, &["jobs", "list", "--full", "--limit", "10000"]);
    list.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn three_share_the_work_and_keep_its_limits() {
    const LIMITED: usize = 40;
    const FREE: usize = 40;
    const RATED: usize = 12;
    let place = place(&Server::shared().database());
    place.expect(0, &["limits", "set", "host:narrow", "--concurrency", "2"]);
    place.expect(0, &["limits", "set", "api:slow", "--rate", "10/s burst 1"]);
    let flow = json!({
        "flow": "rated",
        "tasks": { "go": { "handler": "noop", "limits": { "api": "slow" } } },
    });
    place.write("rated.json", &flow.to_string());
    place.expect(0, &["flows", "apply", "rated.json"]);
    let mut workers: Vec<_> = (0..3).map(|n| worker(&place, &format!("worker-{n}"), &[])).collect();

    // The parent of the script is the worker process.
    let script = "echo start $ORCHESTRATOR_KEY $PPID >> seen; sleep 0.03; echo end $ORCHESTRATOR_KEY >> seen";
    let line = |key: String, limits: Value| {
        let payload = json!({ "run": ["sh", "-c", script], "cwd": place.path("") });
        json!({ "artifact_id": key, "handler": "command", "payload": payload, "limits": limits }).to_string()
    };
    let limited = (0..LIMITED).map(|n| line(format!("limited-{n}"), json!({ "host": "narrow" })));
    let free = (0..FREE).map(|n| line(format!("free-{n}"), json!({})));
    let rated = (0..RATED).map(|n| json!({ "artifact_id": format!("r{n}"), "flow": "rated" }).to_string());
    let lines: Vec<String> = limited.chain(free).chain(rated).collect();
    place.write("jobs.jsonl", &lines.join("\n"));
    // Another process, while the workers run.
    let imported = place.json(&["queue", "import", "jobs.jsonl"]);
    assert_eq!(imported["imported"], lines.len(), "{imported}");
    until("all to be done", || place.count("done") == lines.len() as u64);

    let seen = place.read("seen");
    let (mut narrow, mut starts, mut processes) = (0, BTreeMap::<&str, u32>::new(), BTreeSet::new());
    for line in seen.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "start" {
            *starts.entry(words[1]).or_default() += 1;
            processes.insert(words[2]);
        }
        if words[1].starts_with("limited") {
            narrow += if words[0] == "start" { 1 } else { -1 };
            assert!(narrow <= 2, "more than two at once under host:narrow:\n{seen}");
        }
    }
    assert_eq!(starts.len(), LIMITED + FREE);
    assert!(starts.values().all(|times| *times == 1), "each ran once: {starts:?}");
    assert!(processes.len() > 1, "one replica did all the work");

    // By the clock of the store: with a burst of one, two starts are never closer than a tenth of a second.
    let jobs = all_jobs(&place);
    let moment = |text: &str| text.parse::<Timestamp>().unwrap().as_millis();
    let mut started: Vec<i64> = jobs.iter().filter_map(|job| job["started"].as_str()).map(moment).collect();
    started.sort_unstable();
    assert_eq!(started.len(), RATED, "only jobs of flows say when they started");
    assert!(started.windows(2).all(|pair| pair[1] - pair[0] >= 100), "{started:?}");

    assert_eq!(workers.iter().filter(|worker| leads(worker)).count(), 1, "one leads");
    for worker in &mut workers {
        worker.signal(Signal::TERM);
        assert_eq!(worker.end().code(), Some(0), "{}", worker.log());
    }
}

#[test]
fn a_leader_that_is_killed_is_followed_and_its_work_is_taken_over() {
    let place = place(&Server::shared().database());
    let mut first = worker(&place, "first", &[]);
    until("the first to lead", || leads(&first));
    place.enqueue_script("job", &format!("touch started.$ORCHESTRATOR_ATTEMPT; {WAIT_FOR_GO}"), &[]);
    until("it to run", || place.path("started.1").exists());
    let second = worker(&place, "second", &[]);
    until("the second to serve", || second.log().contains("serving default"));
    assert!(!leads(&second));
    first.signal(Signal::KILL);
    first.end();
    until("the second to lead", || leads(&second));
    until("the second to run what the first held", || place.path("started.2").exists());
    place.write("go", "");
    until("it to be done", || place.count("done") == 1);
    assert_eq!(all_jobs(&place)[0]["tasks"][0]["counters"]["crashes"], 1);
}

#[test]
fn replicas_that_are_asked_to_end_cost_no_attempt() {
    let place = place(&Server::shared().database());
    for n in 0..6 {
        place.enqueue_script(&n.to_string(), WAIT_FOR_GO, &["--max-retries", "0"]);
    }
    let mut stays = worker(&place, "stays", &[]);
    until("the first to be full", || place.count("in_progress") == 4);
    for round in 0..3 {
        let mut leaves = worker(&place, &format!("leaves-{round}"), &["--grace", "1ms"]);
        until("the rest to run", || place.count("in_progress") == 6);
        leaves.signal(Signal::TERM);
        assert_eq!(leaves.end().code(), Some(0), "{}", leaves.log());
    }
    place.write("go", "");
    until("all to be done", || place.count("done") == 6);
    stays.signal(Signal::INT);
    assert_eq!(stays.end().code(), Some(130), "{}", stays.log());
    for job in all_jobs(&place) {
        let counters = &job["tasks"][0]["counters"];
        assert_eq!((&counters["crashes"], &counters["failures"]), (&json!(0), &json!(0)), "{job}");
    }
}

#[test]
fn a_database_that_goes_away_is_waited_for_and_one_that_never_came_is_not() {
    let server = Server::start();
    let place = place(&server.database());
    let mut stays = worker(&place, "stays", &[]);
    place.enqueue_script("before", "true", &[]);
    until("the first to be done", || place.count("done") == 1);

    server.stop();
    until("the worker to notice", || stays.log().contains("trying again"));
    let refused = place.expect(8, &["worker"]);
    assert!(refused.stderr.contains("cannot reach the database"), "{refused:?}");
    assert!(refused.stderr.contains("hint: "), "{refused:?}");
    server.start_again();

    place.enqueue_script("after", "true", &[]);
    until("the second to be done", || place.count("done") == 2);
    server.restart();
    place.enqueue_script("after a restart", "true", &[]);
    until("the third to be done", || place.count("done") == 3);
    assert!(stays.runs(), "{}", stays.log());
    stays.signal(Signal::TERM);
    assert_eq!(stays.end().code(), Some(0), "{}", stays.log());
}

#[test]
fn a_worker_serves_a_file_as_well() {
    let place = Place::new();
    place.enqueue_script("job", "true", &[]);
    let mut only = place.start(&["worker"]);
    until("it to be done", || place.count("done") == 1);
    only.signal(Signal::TERM);
    assert_eq!(only.end().code(), Some(0), "{}", only.log());
}
