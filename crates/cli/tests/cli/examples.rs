//! The flows in `examples/flows`, each run as the documentation says.

use crate::support::{Done, Place, examples};
use serde_json::{Value, json};

fn run(place: &Place, file: &str, more: &[&str]) -> (Done, Value) {
    let path = examples().join(file).display().to_string();
    let done = place.expect(0, &[&["run", &path], more].concat());
    let output = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:#?}"));
    (done, output)
}

#[test]
fn the_dataset_is_built() {
    let place = Place::new();
    let dir = place.path("data").display().to_string();
    let (done, output) = run(
        &place,
        "dataset-build.yaml",
        &["--input-field", "images=24", "--input-field", &format!("dir={dir}")],
    );
    assert_eq!(output["downloaded"], 24);
    assert_eq!((&output["broken"], &output["duplicates"]), (&json!(4), &json!(4)), "{output}");
    let labels: u64 = output["labels"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(labels, 24 - 4 - 4);
    assert_eq!(place.read("data/dataset.csv").lines().count() as u64, labels + 1);
    assert!(done.stderr.contains("attempt 1 download failed"), "a retry is seen: {done:#?}");
    assert!(done.stderr.contains("the source is busy"), "{done:#?}");
}

#[test]
fn the_diamond_joins() {
    let (done, output) = run(&Place::new(), "diamond.yaml", &[]);
    assert_eq!(output, json!({ "smallest": 3, "largest": 19, "spread": 16 }));
    assert!(done.stderr.contains("✔ completed spread"), "{done:#?}");
}

#[test]
fn the_fan_out_adds_up() {
    let place = Place::new();
    let (done, output) = run(&place, "fan-out.yaml", &["--input-field", "n=5"]);
    assert_eq!(output, 55);
    assert!(done.stderr.contains("✔ completed square[4]") && done.stderr.contains("5 items"), "{done:#?}");
    let (_, empty) = run(&place, "fan-out.yaml", &["--input", r#"{"n": 0}"#]);
    assert_eq!(empty, 0);
}

#[test]
fn the_optional_branch_goes_on() {
    let place = Place::new();
    let (done, output) = run(&place, "optional-branch.yaml", &[]);
    assert_eq!(output, json!({ "title": "A paper", "enriched": false, "audited": false }));
    assert!(done.stderr.contains("no such record"), "what went wrong is told: {done:#?}");
    let id = place.newest();
    for (task, state) in
        [("enrich", "skipped"), ("audit", "skipped"), ("tidy", "completed"), ("alarm", "skipped")]
    {
        assert_eq!(place.task(&id, task), state, "{task}");
    }
    let (_, audited) = run(&place, "optional-branch.yaml", &["--input-field", "audit=true"]);
    assert_eq!(audited["audited"], true);
}

#[test]
fn the_flaky_task_is_retried() {
    let place = Place::new();
    let (done, output) = run(&place, "flaky.yaml", &[]);
    assert_eq!(output, json!({ "attempt": 3 }));
    for attempt in ["attempt 1 call failed", "attempt 2 call failed"] {
        assert!(done.stderr.contains(attempt), "{done:#?}");
    }
    assert!(done.stderr.contains("2 failed attempts"), "{done:#?}");
}

#[test]
fn toml_and_json_are_flows_too() {
    let place = Place::new();
    let (_, words) = run(&place, "words.toml", &[]);
    assert_eq!(words, json!({ "words": 10, "texts": 2 }));
    let (_, words) = run(&place, "words.toml", &["--input", r#"{"texts": ["one two", "three"]}"#]);
    assert_eq!(words, json!({ "words": 3, "texts": 2 }));
    let (_, sums) = run(&place, "checksums.json", &[]);
    assert_eq!(sums, json!({ "files": 3, "distinct": 2 }));
}

#[test]
fn every_example_is_sound_and_can_be_drawn() {
    let place = Place::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| ["yaml", "toml", "json"].iter().any(|known| end == *known)) {
            let path = path.display().to_string();
            assert!(place.expect(0, &["flows", "validate", &path]).stdout.contains("  ok  "), "{path}");
            let graph = place.expect(0, &["flows", "graph", &path]).stdout;
            assert!(graph.lines().all(|line| line.chars().count() <= 80), "{graph}");
            seen += 1;
        }
    }
    assert_eq!(seen, 7);
}
