//! What is wrong is said, with what to do and the right exit code; nothing panics, nothing is lost.

use crate::support::Place;
use serde_json::Value;
use std::process::Stdio;

const ENQUEUE: [&str; 4] = ["queue", "enqueue", "--artifact-id", "a"];

#[test]
fn an_unknown_handler_names_the_known_ones() {
    let place = Place::new();
    let done = place.expect(2, &[&ENQUEUE[..], &["--handler", "dowload"]].concat());
    for part in [
        "\"dowload\" is not known here",
        "command, download, http, noop, sleep",
        "did you mean download?",
        "hint: --allow-unknown-handler",
    ] {
        assert!(done.stderr.contains(part), "{part}: {done:?}");
    }
    assert!(!place.path("orchestrator.db").exists(), "nothing was made");
}

#[test]
fn broken_json_and_wrong_payloads_are_refused() {
    let place = Place::new();
    let broken = place.expect(2, &[&ENQUEUE[..], &["--handler", "noop", "--payload", "{\"a\": }"]].concat());
    assert!(broken.stderr.contains("not JSON") && broken.stderr.contains("line 1 column 7"), "{broken:?}");
    let wrong = place.expect(
        2,
        &[&ENQUEUE[..], &["--handler", "sleep", "--payload", "{\"for\": \"soon\", \"colour\": 1}"]].concat(),
    );
    assert!(wrong.stderr.contains("payload.for:") && wrong.stderr.contains("payload.colour:"), "{wrong:?}");
    place.write("p.json", "[1, 2");
    let file = place.expect(2, &[&ENQUEUE[..], &["--handler", "noop", "--payload-file", "p.json"]].concat());
    assert!(file.stderr.contains("p.json"), "{file:?}");
    place.expect(3, &[&ENQUEUE[..], &["--handler", "noop", "--payload-file", "missing.json"]].concat());
}

#[test]
fn a_payload_over_the_limit_is_refused() {
    let place = Place::new();
    let fat = format!("\"{}\"", "x".repeat(200));
    let args = [&ENQUEUE[..], &["--handler", "noop", "--payload", &fat]].concat();
    let done = place.run_with(&[("ORCHESTRATOR_MAX_PAYLOAD", "100")], &args);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("payload: 202 bytes is over the limit of 100"), "{done:?}");
    place.write("fat.json", &format!("\"{}\"", "x".repeat(200_000)));
    let args = [&ENQUEUE[..], &["--handler", "noop", "--payload-file", "fat.json"]].concat();
    assert_eq!(place.run_with(&[("ORCHESTRATOR_MAX_PAYLOAD", "100")], &args).code, 2);
}

#[test]
fn a_missing_database_says_how_to_make_one() {
    let place = Place::new();
    for args in [&["queue", "stats"][..], &["queue", "retry-failed"], &["limits", "list"]] {
        let done = place.expect(3, args);
        assert!(
            done.stderr.contains("there is no database yet") && done.stderr.contains("hint:"),
            "{done:?}"
        );
        assert!(!place.path("orchestrator.db").exists());
    }
    place.expect(3, &["queue", "import", "missing.jsonl"]);
    place.expect(3, &["queue", "stats", "--config", "missing.toml"]);
    let nowhere =
        place.expect(1, &[&ENQUEUE[..], &["--handler", "noop", "--db", "no/such/dir/x.db"]].concat());
    assert!(nowhere.stderr.contains("no/such/dir/x.db"), "{nowhere:?}");
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let place = Place::new();
    let text = "my thesis\n".repeat(1000);
    place.write("thesis.txt", &text);
    for args in [
        &["queue", "stats"][..],
        &["queue", "run", "--drain"],
        &["queue", "enqueue", "--artifact-id", "a", "--handler", "noop"],
    ] {
        let done = place.expect(1, &[args, &["--db", "thesis.txt"]].concat());
        assert!(
            done.stderr.contains("not an orchestrator database") && done.stderr.contains("thesis.txt"),
            "{done:?}"
        );
    }
    assert_eq!(place.read("thesis.txt"), text);
}

#[test]
fn a_newer_schema_is_refused() {
    let place = Place::new();
    place.expect(0, &[&ENQUEUE[..], &["--handler", "noop"]].concat());
    let raise = |version: i64| {
        let db = rusqlite::Connection::open(place.path("orchestrator.db")).unwrap();
        let before: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        db.pragma_update(None, "user_version", version).unwrap();
        before
    };
    let before = raise(9999);
    let done = place.expect(1, &["queue", "stats"]);
    assert!(
        done.stderr.contains("schema version 9999") && done.stderr.contains("newer orchestrator"),
        "{done:?}"
    );
    raise(before);
    assert_eq!(place.count("queued"), 1, "nothing was lost");
}

#[test]
fn errors_are_json_too_for_programs() {
    let place = Place::new();
    let done = place.expect(3, &["queue", "stats", "--json"]);
    let error: Value = serde_json::from_str(done.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["exit"]), (&"not_found".into(), &3.into()));
    let usage = place.expect(2, &["queue", "stats", "--json", "--no-such-flag"]);
    let error: Value = serde_json::from_str(usage.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(error["error"]["code"], "usage", "{usage:?}");
    assert_eq!(done.stdout, "");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let place = Place::new();
    place.expect(0, &[&ENQUEUE[..], &["--handler", "noop"]].concat());
    for args in [
        &["config", "show", "--default"][..],
        &["completions", "bash"],
        &["queue", "stats"],
        &["queue", "stats", "--watch", "--interval", "10ms"],
    ] {
        let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""), "{args:?}");
    }
}
