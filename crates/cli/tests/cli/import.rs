//! Many jobs from a file.

use crate::support::Place;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

fn lines(range: std::ops::Range<u32>) -> String {
    range
        .map(|n| format!("{{\"artifact_id\":\"{n}\",\"handler\":\"noop\",\"payload\":{{\"n\":{n}}}}}\n"))
        .collect()
}

#[test]
fn bad_lines_go_to_the_rejects_and_the_rest_goes_in() {
    let place = Place::new();
    let mut text = lines(0..3000);
    text += "{\"artifact_id\": \"x\", \"handler\": \"nop\"}\n";
    text += "not json\n\n";
    text += "{\"artifact_id\": \"7\", \"handler\": \"noop\", \"payload\": \"another\"}\n";
    text += &lines(10..15);
    place.write("papers.jsonl", &text);
    let import = place.expect(1, &["queue", "import", "papers.jsonl"]);
    let summary = "imported 3,000 · duplicate 5 · conflict 1 · invalid 2 (papers.jsonl.rejects)";
    assert!(import.stdout.starts_with(summary), "{import:?}");
    assert!(import.stderr.contains("papers.jsonl:3001  handler: \"nop\" is not known here"), "{import:?}");

    let rejects = place.read("papers.jsonl.rejects");
    let rejects: Vec<Value> = rejects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> =
        rejects.iter().map(|r| (r["line"].as_u64().unwrap(), r["reason"].as_str().unwrap())).collect();
    assert_eq!(shown.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3001, 3002, 3004]);
    assert!(shown[0].1.contains("did you mean noop?"), "{shown:?}");
    assert!(shown[1].1.starts_with("json: "), "{shown:?}");
    assert!(shown[2].1.starts_with("conflict: job "), "{shown:?}");
    assert_eq!(rejects[1]["text"], "not json");

    place.write("papers.jsonl", &lines(0..3000));
    let again = place.json(&["queue", "import", "papers.jsonl"]);
    assert_eq!(
        (&again["imported"], &again["duplicate"], &again["rejects"]),
        (&0.into(), &3000.into(), &Value::Null)
    );
    assert!(!place.path("papers.jsonl.rejects").exists(), "the rejects of an earlier import are gone");
    place.expect(0, &["queue", "run", "--drain"]);
    assert_eq!(place.count("done"), 3000);
}

#[test]
fn stdin_is_read_too() {
    let place = Place::new();
    let mut command = place.command(&["queue", "import", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines(0..10).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["imported"], 10);
    assert_eq!(place.count("queued"), 10);
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = Place::new();
    place.write("a.jsonl", &(lines(0..5) + "oops\n"));
    let dry = place.expect(1, &["queue", "import", "a.jsonl", "--dry-run"]);
    assert!(dry.stdout.starts_with("valid 5 · duplicate 0 · invalid 1 "), "{dry:?}");
    assert!(dry.stderr.contains("a.jsonl:6  json: "), "{dry:?}");
    assert!(!place.path("orchestrator.db").exists() && !place.path("a.jsonl.rejects").exists());
}

#[test]
fn several_imports_and_a_run_share_one_database() {
    let place = Place::new();
    let mut running = place.start(&["queue", "run", "--max-workers", "4"]);
    let imports: Vec<_> = (0..3u32)
        .map(|n| {
            let name = format!("{n}.jsonl");
            place.write(&name, &lines(n * 500..n * 500 + 1000));
            place.command(&["queue", "import", &name, "-q"]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut import in imports {
        assert!(import.wait().unwrap().success());
    }
    crate::support::until("all to end", || place.count("done") == 2000);
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.end().code(), Some(0));
    assert_eq!((place.count("done"), place.count("error"), place.count("queued")), (2000, 0, 0));
}
