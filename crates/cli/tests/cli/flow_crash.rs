//! kill -9 in the middle of a flow: it goes on where it was, and nothing that had completed runs again.

use crate::support::{Place, WAIT_FOR_GO, until};
use rustix::process::Signal;
use serde_json::json;

#[test]
fn after_kill_9_only_what_had_not_completed_runs() {
    let place = Place::new();
    let middle = format!("echo b >> ran; {WAIT_FOR_GO}");
    let tasks: [(&str, &[&str], &str); 3] =
        [("a", &[], "echo a >> ran; echo 1"), ("b", &["a"], &middle), ("c", &["b"], "echo c >> ran; echo 7")];
    place.flow("f.json", &tasks, json!({}));
    let mut run = place.start(&["run", "f.json", "--lease-ttl", "1s"]);
    until("the middle to run", || place.read("ran") == "a\nb\n");
    let id = place.newest();
    run.signal(Signal::KILL);
    assert_eq!(run.end().code(), None);
    assert_eq!((place.task(&id, "a"), place.task(&id, "c")), ("completed".into(), "pending".into()));
    place.write("go", "");
    let resumed = place.expect(0, &["run", "--resume", &id, "--lease-ttl", "1s"]);
    assert_eq!(resumed.stdout, "7\n");
    assert!(resumed.stderr.contains("1 of 3 tasks have ended"), "{resumed:?}");
    assert_eq!(place.read("ran"), "a\nb\nb\nc\n", "what was running ran again, and nothing else");
    assert_eq!(place.json(&["tasks", "show", &id, "b"])["counters"]["crashes"], 1);
}

#[test]
fn items_that_had_ended_stay_after_kill_9() {
    let place = Place::new();
    let item = "echo $1 >> ran; if [ $1 -ge 3 ]; then while [ ! -e go ]; do sleep 0.02; done; fi; echo $1";
    let flow = json!({
        "flow": "each",
        "tasks": {
            "each": {
                "handler": "command", "for_each": [1, 2, 3, 4], "concurrency": 1, "retries": 0,
                "with": { "run": ["sh", "-c", item, "sh", "{{ item | string }}"], "cwd": "." },
            },
            "sum": { "handler": "noop", "needs": ["each"] },
        },
        "output": "{{ tasks.each.output | sum }}",
    });
    place.write("each.json", &flow.to_string());
    let mut run = place.start(&["run", "each.json", "--lease-ttl", "1s"]);
    until("the third to run", || place.read("ran") == "1\n2\n3\n");
    let id = place.newest();
    run.signal(Signal::KILL);
    run.end();
    place.write("go", "");
    assert_eq!(place.expect(0, &["run", "--resume", &id, "--lease-ttl", "1s"]).stdout, "10\n");
    assert_eq!(place.read("ran"), "1\n2\n3\n3\n4\n");
}
