//! `run`: exits by the result, waits no longer than it may, joins what runs already, and resumes.

use crate::support::{Place, WAIT_FOR_GO, until};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn stdout_has_the_output_and_stderr_the_rest() {
    let place = Place::new();
    place.flow("two.json", &[("a", &[], "echo 1"), ("b", &["a"], "echo '{\"n\": 2}'")], json!({}));
    let run = place.expect(0, &["run", "two.json"]);
    assert_eq!(run.stdout, "{\n  \"n\": 2\n}\n");
    for part in ["applied two@1 from two.json", "✔ completed b", "completed in ", "2 tasks"] {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
    let document = place.json(&["run", "two.json"]);
    assert_eq!((&document["state"], &document["output"]["n"]), (&"completed".into(), &2.into()));
    let quiet = place.expect(0, &["run", "two.json", "-q"]);
    assert_eq!(quiet.stderr, "");
    let sparing = place.expect(0, &["run", "two.json", "--no-progress"]);
    assert!(!sparing.stderr.contains('✔') && sparing.stderr.contains("completed in"), "{sparing:?}");
}

#[test]
fn a_failed_job_is_told_and_exits_with_6() {
    let place = Place::new();
    place.flow("f.json", &[("a", &[], "echo 'out of luck' >&2; exit 1"), ("b", &["a"], "true")], json!({}));
    let run = place.expect(6, &["run", "f.json"]);
    let id = place.newest();
    for part in ["the job failed", "out of luck", &format!("orchestrator jobs recover {id}")] {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
    assert_eq!(run.stdout, "");
    let json = place.expect(6, &["run", "f.json", "--json"]);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["state"], "failed");
    assert!(json.stderr.contains(r#""code":"work_failed""#), "{json:?}");
}

#[test]
fn a_job_that_takes_too_long_times_out() {
    let place = Place::new();
    place.flow("slow.json", &[("a", &[], "sleep 600")], json!({ "timeout": "300ms" }));
    let run = place.expect(6, &["run", "slow.json"]);
    assert!(run.stderr.contains("the job timed out: it took longer than 300ms"), "{run:?}");
    assert_eq!(place.job(&place.newest())["state"], "timed_out");
}

#[test]
fn a_wait_that_is_over_leaves_the_job_to_be_resumed() {
    let place = Place::new();
    place.write("orchestrator.toml", "[queue]\ngrace = \"1ms\"\n");
    place.flow("w.json", &[("a", &[], WAIT_FOR_GO), ("b", &["a"], "echo 3")], json!({}));
    let run = place.expect(7, &["run", "w.json", "--wait-timeout", "200ms"]);
    let id = place.newest();
    assert!(run.stderr.contains(&format!("orchestrator run --resume {id}")), "{run:?}");
    place.write("go", "");
    let resumed = place.expect(0, &["run", "--resume", &id[..23]]);
    assert_eq!(resumed.stdout, "3\n");
    let again = place.expect(0, &["run", "--resume", &id]);
    assert_eq!(again.stdout, "3\n", "it has ended: its result is told again");
}

#[test]
fn ctrl_c_lets_what_runs_finish_and_says_how_to_resume() {
    let place = Place::new();
    let first = format!("echo a >> ran; {WAIT_FOR_GO}");
    place.flow("c.json", &[("a", &[], &first), ("b", &["a"], "echo b >> ran; echo 5")], json!({}));
    let mut run = place.start(&["run", "c.json"]);
    until("it to run", || place.read("ran") == "a\n");
    let id = place.newest();
    run.signal(Signal::INT);
    until("the run to say so", || run.log().contains("stopping: 1 running"));
    place.write("go", "");
    assert_eq!(run.end().code(), Some(130), "{}", run.log());
    assert!(run.log().contains(&format!("`orchestrator run --resume {id}` goes on")), "{}", run.log());
    assert_eq!(place.task(&id, "a"), "completed");
    assert_eq!(place.expect(0, &["run", "--resume", &id]).stdout, "5\n");
    assert_eq!(place.read("ran"), "a\nb\n", "nothing ran twice");
}

#[test]
fn a_key_joins_the_job_that_has_it() {
    let place = Place::new();
    place.flow("k.json", &[("a", &[], "echo once >> ran; echo 9")], json!({}));
    let args = ["run", "k.json", "--key", "k1", "--input", r#"{"n": 1}"#];
    assert_eq!(place.expect(0, &args).stdout, "9\n");
    let again = place.expect(0, &args);
    assert!(again.stdout == "9\n" && again.stderr.contains("has the same key already"), "{again:?}");
    place.expect(5, &["run", "k.json", "--key", "k1", "--input", r#"{"n": 2}"#]);
    assert_eq!(place.read("ran"), "once\n");
}

#[test]
fn a_flow_makes_its_own_key() {
    let place = Place::new();
    let idempotency = json!({ "key": "{{ input.url | normalize_url }}", "window": "24h" });
    place.flow("u.json", &[("a", &[], "echo once >> ran")], json!({ "idempotency": idempotency }));
    place.expect(0, &["run", "u.json", "--input-field", "url=http://Example.org:80/a/../b?utm_source=x"]);
    place.expect(0, &["run", "u.json", "--input-field", "url=http://example.org/b"]);
    assert_eq!(place.read("ran"), "once\n");
}

#[test]
fn only_the_handlers_of_the_flow_are_served() {
    let place = Place::new();
    place.expect(0, &["jobs", "create", "--handler", "sleep", "--input", r#"{"for": "1ms"}"#]);
    let other = place.newest();
    place.flow("one.json", &[("a", &[], "true")], json!({}));
    place.expect(0, &["run", "one.json"]);
    assert_eq!(place.job(&other)["state"], "pending");
    place.expect(0, &["run", "--resume", &other]);
}

#[test]
fn a_job_runs_after_another() {
    let place = Place::new();
    place.flow("x.json", &[("a", &[], "echo x >> ran")], json!({}));
    place.expect(0, &["jobs", "create", "x.json"]);
    let first = place.newest();
    place.expect(0, &["jobs", "create", "x.json", "--after", &first]);
    let second = place.newest();
    assert_eq!(place.job(&second)["waits_for"][0], first.as_str());
    let done = place.expect(0, &["run", "--resume", &second, "--concurrency", "1"]);
    assert!(done.stderr.contains("completed"), "{done:?}");
    assert_eq!(place.job(&first)["state"], "completed", "the same workers served it");
    place.flow("bad.json", &[("a", &[], "exit 1")], json!({}));
    place.expect(6, &["run", "bad.json"]);
    let bad = place.newest();
    let after = place.expect(6, &["run", "x.json", "--after", &bad]);
    assert!(
        after.stderr.contains("the job was cancelled") && after.stderr.contains("which is failed"),
        "{after:?}"
    );
    place.expect(3, &["run", "x.json", "--after", "ffffffff"]);
}
