//! The usual way: put in, run, look.

use crate::support::{Place, until};

#[test]
fn enqueue_run_and_count() {
    let place = Place::new();
    let first = place.expect(
        0,
        &["queue", "enqueue", "--artifact-id", "a", "--handler", "sleep", "--payload", r#"{"for":"1ms"}"#],
    );
    assert!(first.stdout.starts_with("enqueued, job "), "{first:?}");
    place.enqueue_script(
        "b",
        "echo 42",
        &["--priority", "high", "--max-retries", "0", "--timeout", "1m", "--limit", "host=example.org"],
    );
    place.enqueue_script("later", "true", &["--delay", "1h"]);
    let before = place.json(&["queue", "stats"]);
    assert_eq!((&before["queued"], &before["scheduled"], &before["done"]), (&2.into(), &1.into(), &0.into()));

    let run = place.expect(0, &["queue", "run", "--drain"]);
    assert!(run.stdout.starts_with("done 2 · skipped 0 · failed 0 · retried 0"), "{run:?}");
    assert!(run.stdout.contains("left: scheduled 1"), "{run:?}");

    let stats = place.expect(0, &["queue", "stats"]);
    let rows: Vec<Vec<&str>> = stats.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["STATE", "COUNT", "OLDEST"]);
    assert!(
        rows.contains(&vec!["done", "2", "-"]) && rows.contains(&vec!["scheduled", "1", "-"]),
        "{stats:?}"
    );
    let by_line = place.expect(0, &["queue", "stats", "--by-line"]);
    assert!(by_line.stdout.lines().any(|line| line.starts_with("default  command")), "{by_line:?}");
}

#[test]
fn a_duplicate_is_the_same_job_and_another_payload_a_conflict() {
    let place = Place::new();
    let enqueue = |payload| {
        place.run(&["queue", "enqueue", "--artifact-id", "a", "--handler", "noop", "--payload", payload])
    };
    let first = enqueue(r#"{"x": 1, "y": 2}"#);
    let id = first.stdout.trim().strip_prefix("enqueued, job ").unwrap().to_owned();
    let again = enqueue(r#"{"y":2,"x":1}"#);
    assert_eq!((again.code, again.stdout.trim()), (0, format!("duplicate, job {id} pending").as_str()));
    let other = enqueue("{}");
    assert_eq!(other.code, 5, "{other:?}");
    assert!(other.stderr.contains(&id) && other.stderr.contains("hint:"), "{other:?}");
    let json = place.json(&[
        "queue",
        "enqueue",
        "--artifact-id",
        "a",
        "--handler",
        "noop",
        "--payload",
        r#"{"x":1,"y":2}"#,
    ]);
    assert_eq!((json["result"].as_str(), json["job"].as_str()), (Some("duplicate"), Some(id.as_str())));
}

#[test]
fn a_job_put_in_while_another_process_runs_is_run() {
    let place = Place::new();
    let _running = place.start(&["queue", "run"]);
    until("the run to make the database", || place.path("orchestrator.db").exists());
    let args = ["queue", "enqueue", "--handler", "command", "--wait", "--artifact-id"];
    let good =
        place.expect(0, &[&args[..], &["good", "--payload", r#"{"run": ["echo", "{\"n\": 7}"]}"#]].concat());
    assert!(good.stdout.contains("completed {\"n\": 7}"), "{good:?}");
    let bad = place.expect(
        6,
        &[&args[..], &["bad", "--payload", r#"{"run": ["sh", "-c", "echo out of luck >&2; exit 1"]}"#]]
            .concat(),
    );
    assert!(bad.stdout.contains("failed: ") && bad.stdout.contains("out of luck"), "{bad:?}");
    let json =
        place.json(&[&args[..], &["good", "--payload", r#"{"run": ["echo", "{\"n\": 7}"]}"#]].concat());
    assert_eq!((&json["state"], &json["output"]["n"]), (&"completed".into(), &7.into()));
}

#[test]
fn a_wait_can_time_out() {
    let place = Place::new();
    let args = ["queue", "enqueue", "--artifact-id", "a", "--handler", "noop", "--wait=10ms"];
    let done = place.expect(7, &args);
    assert!(done.stderr.contains("has not ended"), "{done:?}");
    assert_eq!(place.count("queued"), 1);
}

#[test]
fn what_fails_for_good_is_told_and_can_be_retried() {
    let place = Place::new();
    place.enqueue_script("fixable", "test -e fixed", &[]);
    place.enqueue_script("fine", "true", &[]);
    let run = place.expect(6, &["queue", "run", "--drain"]);
    assert!(run.stdout.contains("done 1 · skipped 0 · failed 1"), "{run:?}");
    assert!(run.stdout.lines().any(|line| line.starts_with("fixable  command")), "{run:?}");
    assert!(place.expect(0, &["queue", "stats"]).stdout.contains("→ orchestrator queue retry-failed"));

    let retry = |more: &[&str]| place.json(&[&["queue", "retry-failed"], more].concat());
    assert_eq!(retry(&["--reason", "poison"])["retried"], 0);
    assert_eq!(retry(&["--handler", "sleep"])["retried"], 0);
    assert_eq!(retry(&["--dry-run"])["jobs"][0]["key"], "fixable");
    assert_eq!(place.count("error"), 1, "a dry run changes nothing");
    place.write("fixed", "");
    assert_eq!(retry(&["--reason", "final", "--queue", "default"])["retried"], 1);
    place.expect(0, &["queue", "run", "--drain"]);
    assert_eq!((place.count("done"), place.count("error")), (2, 0));
}

#[test]
fn a_key_that_has_a_newer_job_is_not_retried() {
    let place = Place::new();
    place.enqueue_script("a", "exit 1", &[]);
    place.expect(6, &["queue", "run", "--drain"]);
    place.enqueue_script("a", "true", &[]);
    let retried = place.json(&["queue", "retry-failed"]);
    assert_eq!((&retried["retried"], &retried["superseded"]), (&0.into(), &1.into()));
}

#[test]
fn a_flaky_job_is_retried_to_its_end() {
    let place = Place::new();
    place.write("orchestrator.toml", "[retry]\ninitial = \"1ms\"\n");
    place.enqueue_script("flaky", "test -e again || { touch again; exit 75; }", &[]);
    place.enqueue_script("skip", "exit 3", &[]);
    let summary = place.json(&["queue", "run", "--drain"]);
    assert_eq!((&summary["event"], &summary["ended"]), (&"summary".into(), &"drained".into()));
    assert_eq!(
        (&summary["done"], &summary["skipped"], &summary["retried"]),
        (&1.into(), &1.into(), &1.into())
    );
}

#[test]
fn each_outcome_is_an_event_for_programs() {
    let place = Place::new();
    place.enqueue_script("a", "true", &[]);
    place.enqueue_script("b", "exit 1", &[]);
    let run = place.expect(6, &["queue", "run", "--drain", "--json"]);
    let events: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let settled: Vec<_> = events.iter().filter(|event| event["event"] == "settled").collect();
    assert_eq!(settled.len(), 2, "{run:?}");
    let failed = settled.iter().find(|event| event["artifact_id"] == "b").unwrap();
    assert_eq!((&failed["state"], &failed["dead"]), (&"failed".into(), &"final".into()));
    assert_eq!(events.last().unwrap()["event"], "summary");
    assert!(run.stderr.contains(r#"{"error":{"code":"work_failed""#), "{run:?}");
}

#[test]
fn only_the_named_queues_are_served() {
    let place = Place::new();
    place.enqueue_script("a", "true", &["--queue", "one"]);
    place.enqueue_script("b", "true", &["--queue", "two"]);
    let run = place.expect(0, &["queue", "run", "--drain", "--queue", "one"]);
    assert!(run.stdout.contains("1 of command in queue two (not served)"), "{run:?}");
    assert_eq!((place.count("done"), place.count("queued")), (1, 1));
    place.expect(0, &["queue", "run", "--drain", "--queue", "one", "--queue", "two"]);
    assert_eq!(place.count("done"), 2);
}

#[test]
fn a_job_of_another_program_waits_for_it() {
    let place = Place::new();
    place.expect(
        0,
        &["queue", "enqueue", "--artifact-id", "a", "--handler", "mine", "--allow-unknown-handler"],
    );
    let run = place.expect(0, &["queue", "run", "--drain"]);
    assert!(run.stdout.contains("1 of mine in queue default (not served)"), "{run:?}");
}

#[test]
fn the_demo_shows_everything_and_ends_well() {
    let place = Place::new();
    let demo = place.expect(0, &["demo", "--keep", "kept"]);
    assert!(demo.stdout.contains("done 22 · skipped 1 · failed 1 · retried 1"), "{demo:?}");
    assert!(demo.stdout.contains("this one never works"), "{demo:?}");
    assert!(demo.stderr.contains("put in 24 single jobs, 1 of the lines"), "{demo:?}");
    for part in ["attempt 1 ask failed", "↷ skipped   thumbnail", "✔ completed report"] {
        assert!(demo.stderr.contains(part), "{part}: {demo:?}");
    }
    assert!(demo.stdout.starts_with("{\n  \"kind\": \"numbers\",\n  \"texts\": 6,"), "{demo:?}");
    let flow = place.json(&["--db", "kept/orchestrator.db", "jobs", "list", "--flow", "demo"]);
    assert_eq!(flow["state"], "completed");
    let stats = place.json(&["--db", "kept/orchestrator.db", "queue", "stats"]);
    // Those of the flow are counted with them: its tasks, and each item of one of them.
    assert_eq!((&stats["done"], &stats["error"]), (&32.into(), &1.into()));
    assert!(!place.path("orchestrator.db").exists());
}
