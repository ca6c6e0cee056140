//! Failed tasks that wait for a decision.

use crate::support::Place;
use serde_json::{Value, json};

/// A flow of which two items fail until `fixed` is there.
fn failed_items(place: &Place) -> String {
    let flow = json!({
        "flow": "items",
        "tasks": {
            "each": {
                "handler": "command", "for_each": [0, 1, 2], "retries": 0,
                "with": {
                    "run": ["sh", "-c", "echo $1 >> ran; [ $1 = 0 ] || test -e fixed || { echo broken >&2; exit 1; }; echo $1", "sh", "{{ item | string }}"],
                    "cwd": ".",
                },
            },
            "sum": { "handler": "command", "needs": ["each"], "with": { "run": ["echo", "{{ tasks.each.output | sum | string }}"] } },
        },
    });
    place.write("items.json", &flow.to_string());
    place.expect(6, &["run", "items.json"]);
    place.newest()
}

fn letters(place: &Place, args: &[&str]) -> Vec<Value> {
    let done = place.expect(0, &[&["dead-letter", "list", "--json"], args].concat());
    serde_json::from_str::<Value>(&done.stdout).unwrap().as_array().unwrap().clone()
}

#[test]
fn dead_letters_are_listed_and_shown() {
    let place = Place::new();
    let id = failed_items(&place);
    place.enqueue_script("q", "exit 1", &["--queue", "other"]);
    place.expect(6, &["queue", "run", "--drain", "--queue", "other"]);
    assert_eq!(letters(&place, &[]).len(), 3);
    assert_eq!(letters(&place, &["--queue", "other"]).len(), 1);
    assert_eq!(letters(&place, &["--handler", "http"]).len(), 0);
    let table = place.expect(0, &["dead-letter", "list"]).stdout;
    assert!(table.contains(&format!("{id}/each[1]")) && table.contains("broken"), "{table}");
    let shown = place.expect(0, &["dead-letter", "show", &format!("{id}/each[2]")]).stdout;
    assert!(shown.contains("final") && shown.contains("flow items") && shown.contains("broken"), "{shown}");
    let missing = place.expect(3, &["dead-letter", "show", &format!("{id}/each[0]")]);
    assert!(missing.stderr.contains("is not in the dead letters"), "{missing:?}");
}

#[test]
fn a_job_is_requeued_whole_or_by_task() {
    let place = Place::new();
    let id = failed_items(&place);
    place.write("fixed", "");
    assert_eq!(place.expect(0, &["dead-letter", "requeue", &format!("{id}/each[1]")]).stdout, "requeued 1\n");
    place.expect(6, &["run", "--resume", &id]);
    assert_eq!(letters(&place, &[]).len(), 1, "the other one stays");
    assert_eq!(place.expect(0, &["dead-letter", "requeue", &id]).stdout, "requeued 1\n");
    assert_eq!(place.expect(0, &["run", "--resume", &id]).stdout, "3\n");
    let mut ran: Vec<_> = place.read("ran").lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran, ["0", "1", "1", "2", "2"], "only what failed ran again");
    place.expect(3, &["dead-letter", "requeue", &id]);
}

#[test]
fn all_are_requeued_or_discarded() {
    let place = Place::new();
    let id = failed_items(&place);
    place.enqueue_script("q", "exit 1", &["--queue", "other"]);
    place.expect(6, &["queue", "run", "--drain", "--queue", "other"]);
    place.expect(2, &["dead-letter", "discard"]);
    assert_eq!(place.json(&["dead-letter", "discard", "--all", "--queue", "other"])["count"], 1);
    assert_eq!(letters(&place, &[]).len(), 2);
    place.write("fixed", "");
    assert_eq!(place.json(&["dead-letter", "requeue", "--all"])["count"], 2);
    assert_eq!(place.expect(0, &["run", "--resume", &id]).stdout, "3\n");
    assert!(letters(&place, &[]).is_empty());
}
