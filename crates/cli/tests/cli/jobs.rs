//! Looked at: lists, status, progress, watch, stats, stuck, tasks, ids.

use crate::support::{Place, WAIT_FOR_GO, until};
use serde_json::{Value, json};

/// A place with a job that completed, one that failed, and one that waits for a worker.
fn three_jobs() -> (Place, [String; 3]) {
    let place = Place::new();
    place.flow("good.json", &[("a", &[], "echo 1")], json!({}));
    place.expect(0, &["run", "good.json"]);
    let good = place.newest();
    place.flow("bad.json", &[("a", &[], "echo 'no luck' >&2; exit 1"), ("b", &["a"], "true")], json!({}));
    place.expect(6, &["run", "bad.json"]);
    let bad = place.newest();
    place.expect(0, &["jobs", "create", "good"]);
    let waiting = place.newest();
    (place, [good, bad, waiting])
}

fn ids(place: &Place, args: &[&str]) -> Vec<String> {
    let done = place.expect(0, &[&["jobs", "list", "--json"], args].concat());
    let jobs: Value = serde_json::from_str(&done.stdout).unwrap();
    jobs.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn jobs_are_listed_by_what_they_are() {
    let (place, [good, bad, waiting]) = three_jobs();
    assert_eq!(ids(&place, &[]), [waiting.clone(), bad.clone(), good.clone()]);
    assert_eq!(ids(&place, &["--oldest-first", "--limit", "2"]), [good.clone(), bad.clone()]);
    assert_eq!(ids(&place, &["--active"]), [&*waiting]);
    assert_eq!(ids(&place, &["--failed"]), [&*bad]);
    assert_eq!(
        ids(&place, &["--status", "completed", "--status", "pending"]),
        [waiting.clone(), good.clone()]
    );
    assert_eq!(ids(&place, &["--flow", "bad"]), [&*bad]);
    let table = place.expect(0, &["jobs", "list"]).stdout;
    let line = table.lines().find(|line| line.starts_with(&bad)).unwrap();
    assert!(line.contains("failed") && line.contains("bad@1") && line.contains("no luck"), "{table}");
    let wrong = place.expect(2, &["jobs", "list", "--status", "done"]);
    assert!(wrong.stderr.contains("pending, running"), "{wrong:?}");
}

#[test]
fn a_job_is_shown_whole_or_in_part() {
    let (place, [good, bad, _]) = three_jobs();
    let status = place.expect(0, &["jobs", "status", &bad]).stdout;
    for part in [&*bad, "failed", "bad@1", "✘ failed", "↷ skipped", "no luck"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let failed = place.expect(0, &["jobs", "status", &bad, "--failed"]).stdout;
    assert!(failed.contains("attempt 1: sh ended with exit code 1: no luck"), "{failed}");
    assert!(place.expect(0, &["jobs", "status", &good]).stdout.contains("output\n1\n"));
    let progress = place.json(&["jobs", "status", &bad, "--progress"]);
    for field in [
        "workflow_id",
        "job_id",
        "status",
        "progress",
        "current_step",
        "total_steps",
        "completed_tasks",
        "failed_tasks",
        "running_tasks",
        "recovery_attempts",
        "tasks",
    ] {
        assert!(!progress[field].is_null(), "{field}: {progress}");
    }
    for field in ["id", "name", "type", "status", "retry_count", "error_message"] {
        assert!(!progress["tasks"][0][field].is_null(), "{field}: {progress}");
    }
    let shown = place.expect(0, &["jobs", "progress", &good]).stdout;
    assert!(shown.starts_with("100%  completed  1 of 1 tasks completed"), "{shown}");
}

#[test]
fn a_task_is_shown_by_name_by_item_and_by_number() {
    let place = Place::new();
    let flow = json!({
        "flow": "t",
        "defaults": { "retries": 1, "backoff": { "initial": "1ms" } },
        "tasks": {
            "each": {
                "handler": "command", "for_each": ["x", "y"], "limits": { "host": "{{ item }}.example" },
                "with": { "run": ["sh", "-c", "[ $ORCHESTRATOR_ATTEMPT -gt 1 ] || exit 75; echo \"\\\"$1\\\"\"", "sh", "{{ item }}"] },
            },
        },
    });
    place.write("t.json", &flow.to_string());
    place.expect(0, &["run", "t.json"]);
    let id = place.newest();
    let item = place.json(&["tasks", "show", &id, "each[1]"]);
    assert_eq!((&item["output"], &item["counters"]["failures"]), (&"y".into(), &1.into()));
    assert_eq!(place.json(&["tasks", "show", &id, "2"])["name"], "each[1]");
    let shown = place.expect(0, &["tasks", "show", &id, "each[0]"]).stdout;
    for part in [
        "✔ each[0]  completed",
        "attempt   2, of which at most 2 may fail",
        "limits    host:x.example",
        "input\n",
        "output\n  \"x\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("transient: sh ended with exit code 75"), "{shown}");
    let group = place.expect(0, &["tasks", "show", &id]).stdout;
    assert!(group.contains("2/2 ended") && group.contains("each[1]"), "{group}");
    let all = place.expect(0, &["tasks", "list", &id, "--items"]).stdout;
    assert_eq!(all.lines().count(), 4, "{all}");
    for wrong in ["eahc", "each[2]", "9"] {
        let done = place.expect(3, &["tasks", "show", &id, wrong]);
        assert!(done.stderr.contains(&format!("has no task {wrong:?}")), "{done:?}");
    }
}

#[test]
fn an_id_may_be_cut_short_as_long_as_it_is_one() {
    let (place, [good, bad, waiting]) = three_jobs();
    let shared =
        good.chars().zip(bad.chars()).zip(waiting.chars()).take_while(|((a, b), c)| a == b && b == c);
    let shared: String = shared.map(|((a, _), _)| a).collect();
    let several = place.expect(2, &["jobs", "status", &shared]);
    for id in [&good, &bad, &waiting] {
        assert!(several.stderr.contains(&**id), "{several:?}");
    }
    // All but the last digit: two of the ids may share it, then the whole one is needed.
    let unique = &good[..good.len() - 1];
    let same = [&bad, &waiting].iter().any(|id| id.starts_with(unique));
    assert_eq!(place.run(&["jobs", "status", unique]).code, if same { 2 } else { 0 });
    assert!(place.expect(0, &["jobs", "status", &good.to_uppercase()]).stdout.starts_with(&good));
    for unknown in ["ffffffff", "ffffffff-ffff-7fff-bfff-ffffffffffff"] {
        let done = place.expect(3, &["jobs", "status", unknown]);
        assert!(done.stderr.contains("there is no job"), "{done:?}");
    }
    place.expect(2, &["jobs", "status", "my-job"]);
    place.expect(3, &["jobs", "cancel", &good, "ffffffff"]);
    assert_eq!(place.job(&waiting)["state"], "pending");
}

#[test]
fn a_watch_exits_by_the_result() {
    let place = Place::new();
    place.flow("w.json", &[("a", &[], WAIT_FOR_GO), ("b", &["a"], "echo 6")], json!({}));
    let mut run = place.start(&["run", "w.json"]);
    until("it to run", || run.log().contains("running   a"));
    let id = place.newest();
    let early = place.expect(7, &["jobs", "watch", &id, "--timeout", "50ms"]);
    assert!(early.stderr.contains("has not ended: it is running"), "{early:?}");
    place.write("go", "");
    assert_eq!(place.expect(0, &["jobs", "watch", &id]).stdout, "6\n");
    assert_eq!(run.end().code(), Some(0));
    place.flow("f.json", &[("a", &[], "exit 1")], json!({}));
    place.expect(6, &["run", "f.json"]);
    place.expect(6, &["jobs", "watch", &place.newest()]);
}

#[test]
fn a_job_is_created_for_others_to_run() {
    let place = Place::new();
    let created =
        place.json(&["jobs", "create", "--handler", "sleep", "--input", r#"{"for": "1ms"}"#, "--key", "nap"]);
    assert_eq!((&created["result"], &created["state"]), (&"created".into(), &"pending".into()));
    let again =
        place.json(&["jobs", "create", "--handler", "sleep", "--input", r#"{"for": "1ms"}"#, "--key", "nap"]);
    assert_eq!((&again["result"], &again["job"]), (&"existing".into(), &created["job"]));
    place.expect(2, &["jobs", "create", "--handler", "slep"]);
    place.expect(2, &["jobs", "create"]);
    place.flow("g.json", &[("a", &[], "echo 1")], json!({}));
    let mut worker = place.start(&["queue", "run"]);
    assert_eq!(place.expect(0, &["jobs", "create", "g.json", "--wait"]).stdout.lines().last(), Some("1"));
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.end().code(), Some(0));
    assert_eq!(place.json(&["jobs", "list", "--status", "completed", "--limit", "9"])["state"], "completed");
}

#[test]
fn jobs_are_counted_by_flow_and_state() {
    let (place, _) = three_jobs();
    let stats = place.json(&["jobs", "stats"]);
    assert_eq!((&stats["jobs"]["total"], &stats["jobs"]["failed"]), (&3.into(), &1.into()));
    let good = &stats["flows"]["good"];
    assert_eq!(
        (&good["completed"], &good["pending"], &stats["complete"]),
        (&1.into(), &1.into(), &true.into())
    );
    let table = place.expect(0, &["jobs", "stats"]).stdout;
    assert!(table.lines().next().unwrap().starts_with("FLOW  JOBS  PENDING  COMPLETED  FAILED"), "{table}");
    assert_eq!(place.json(&["jobs", "stats", "--limit", "1"])["complete"], false);
}

#[test]
fn a_job_that_stands_still_says_why() {
    let place = Place::new();
    place.expect(0, &["limits", "set", "gate:main", "--concurrency", "0"]);
    let flow = json!({ "flow": "g", "tasks": { "a": { "handler": "noop", "limits": { "gate": "main" } } } });
    place.write("g.json", &flow.to_string());
    place.expect(7, &["run", "g.json", "--wait-timeout", "300ms"]);
    let gated = place.newest();
    place.expect(0, &["jobs", "create", "--handler", "noop", "--after", &gated]);
    let after = place.newest();
    place.expect(0, &["jobs", "create", "--handler", "noop"]);
    let lonely = place.newest();
    place.expect(0, &["jobs", "create", "--handler", "noop"]);
    let paused = place.newest();
    place.expect(0, &["jobs", "pause", &paused]);
    let done = place.expect(0, &["jobs", "stuck", "--older-than", "0s", "--json"]);
    let stuck: Value = serde_json::from_str(&done.stdout).unwrap();
    let why = |id: &str| {
        let job = stuck.as_array().unwrap().iter().find(|job| job["id"] == id).unwrap();
        (job["reasons"][0]["code"].as_str().unwrap().to_owned(), job["reasons"][0]["reason"].to_string())
    };
    assert_eq!(why(&gated).0, "limit");
    assert!(why(&gated).1.contains("gate:main (0 of 0 run)"), "{stuck}");
    assert_eq!(why(&after).0, "waits_for_job");
    assert_eq!(why(&lonely).0, "no_worker");
    assert_eq!(why(&paused).0, "paused");
    let table = place.expect(0, &["jobs", "stuck", "--older-than", "0s"]).stdout;
    assert!(table.contains("waits for room under gate:main"), "{table}");
    let calm = place.expect(0, &["jobs", "stuck"]);
    assert!(calm.stdout.is_empty() && calm.stderr.contains("everything moves"), "{calm:?}");
}
