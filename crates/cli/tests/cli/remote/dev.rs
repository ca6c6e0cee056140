//! `dev`: everything in one process, which may be killed at any moment.

use super::url;
use crate::support::{Place, Running, WAIT_FOR_GO, until};
use rustix::process::Signal;

/// Starts it on any port that is free.
fn start(place: &Place, name: &str) -> Running {
    place.start_as(name, &["dev", "--port", "0"])
}

#[test]
fn a_killed_one_goes_on_where_it_was() {
    let place = Place::new();
    place.write("orchestrator.toml", "[queue]\nlease_ttl = \"2s\"\nheartbeat = \"500ms\"\n");
    let mut first = start(&place, "first");
    let server = url(&first);
    until("the greeting", || first.log().contains("Ctrl-C ends it"));
    for part in ["API", "/health", "Try, in another terminal", "jobs list --server"] {
        assert!(first.log().contains(part), "{part} not in {}", first.log());
    }
    let cwd = place.path("");
    let flow = serde_json::json!({
        "flow": "two",
        "tasks": {
            "one": { "handler": "command", "with": { "run": ["sh", "-c", "echo one >> ran"], "cwd": cwd } },
            "two": {
                "handler": "command", "needs": ["one"],
                "with": { "run": ["sh", "-c", format!("echo begun > two; {WAIT_FOR_GO}; echo two >> ran")], "cwd": cwd },
            },
        },
    });
    place.write("two.json", &flow.to_string());
    place.expect(0, &["flows", "apply", "two.json", "--server", &server]);
    place.expect(0, &["jobs", "create", "two", "--server", &server]);
    let state = |server: &str| {
        let job = place.json(&["jobs", "list", "--server", server]);
        job["state"].as_str().unwrap().to_owned()
    };
    // The second begins only when the end of the first is on disk; a file that the first writes
    // would be there before that.
    until("the second task to begin", || place.path("two").exists());
    first.signal(Signal::KILL);
    first.end();
    assert!(place.path(".orchestrator/orchestrator.db").exists());

    let mut second = start(&place, "second");
    let server = url(&second);
    assert_ne!(state(&server), "completed");
    place.write("go", "");
    until("the job to end", || state(&server) == "completed");
    let ran = place.read("ran");
    assert_eq!(ran.matches("one").count(), 1, "what had completed does not run again: {ran}");
    second.signal(Signal::TERM);
    assert_eq!(second.end().code(), Some(0), "{}", second.log());
}
