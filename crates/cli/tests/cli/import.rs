//! Many jobs from a file.

use crate::support::Place;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
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

#[test]
fn each_line_is_answered_before_the_next_is_there() {
    let place = Place::new();
    let mut command = place.command(&["queue", "import", "-", "-o", "jsonl", "-q"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answer = || -> Value { serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() };
    // A half line at the end must not keep the whole ones waiting.
    let text = lines(0..10) + "{\"artifact_id\":\"3\",";
    stdin.write_all(text.as_bytes()).unwrap();
    let first: Vec<Value> = (0..10).map(|_| answer()).collect();
    for (n, answer) in first.iter().enumerate() {
        assert_eq!((&answer["line"], &answer["outcome"]), (&json!(n + 1), &json!("created")), "{answer}");
        assert_eq!(answer["artifact_id"], n.to_string());
        assert_eq!(place.job(answer["id"].as_str().unwrap())["payload"]["n"], n, "an answer means durable");
    }
    stdin.write_all(b"\"handler\":\"noop\",\"payload\":{\"n\":3}}\n").unwrap();
    assert_eq!(
        answer(),
        json!({ "line": 11, "artifact_id": "3", "id": first[3]["id"], "outcome": "duplicate" })
    );
    stdin.write_all(b"{\"artifact_id\":\"3\",\"handler\":\"noop\"}\n\n{}\n").unwrap();
    assert_eq!(
        answer(),
        json!({ "line": 12, "artifact_id": "3", "id": first[3]["id"], "outcome": "conflict" })
    );
    let invalid = answer();
    assert_eq!((&invalid["line"], &invalid["outcome"]), (&json!(14), &json!("invalid")), "{invalid}");
    assert!(invalid["reason"].as_str().unwrap().contains("artifact_id"), "{invalid}");
    drop(stdin);
    let summary = answer();
    assert_eq!((&summary["imported"], &summary["duplicate"]), (&json!(10), &json!(1)), "{summary}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn lines_may_name_flows() {
    let place = Place::new();
    let input = json!({ "input": { "type": "object", "required": ["n"] } });
    place.flow("greet.json", &[("a", &[], "echo 1"), ("b", &["a"], "echo 2")], input);
    place.expect(0, &["flows", "apply", "greet.json"]);
    let text = [
        r#"{"artifact_id": "x", "flow": "greet", "input": {"n": 1}, "priority": "high"}"#,
        r#"{"artifact_id": "x", "handler": "noop"}"#,
        r#"{"artifact_id": "x", "flow": "greet", "input": {"n": 1}}"#,
        r#"{"artifact_id": "y", "flow": "great", "input": {"n": 1}}"#,
        r#"{"artifact_id": "z", "flow": "greet", "limits": {"lab": "x"}}"#,
    ];
    place.write("jobs.jsonl", &text.join("\n"));
    let dry = place.expect(1, &["queue", "import", "jobs.jsonl", "--dry-run"]);
    assert!(dry.stdout.starts_with("valid 3 · duplicate 0 · invalid 2 "), "{dry:?}");
    let import = place.expect(1, &["queue", "import", "jobs.jsonl", "-o", "jsonl"]);
    let answers: Vec<Value> = import.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<_> = answers[..5].iter().map(|answer| answer["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["created", "created", "duplicate", "invalid", "invalid"], "{import:?}");
    let reason = |n: usize| answers[n]["reason"].as_str().unwrap();
    assert!(reason(3).starts_with("flow: there is no flow \"great\""), "{}", reason(3));
    assert!(
        reason(4).contains("limits: is for a handler") && reason(4).contains("input.n: is required"),
        "{}",
        reason(4)
    );

    place.expect(0, &["queue", "run", "--drain"]);
    let job = place.job(answers[0]["id"].as_str().unwrap());
    assert_eq!(
        (&job["state"], &job["key"], &job["priority"]),
        (&json!("completed"), &json!("x"), &json!("high"))
    );
    assert_eq!((&job["flow"]["name"], &job["payload"]), (&json!("greet"), &json!({ "n": 1 })));

    let whole = place.expect(0, &["jobs", "list", "--full", "--oldest-first"]);
    let whole: Vec<Value> = whole.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(whole.len(), 2);
    assert_eq!(whole[0], job, "each as `jobs status` shows it");
}
