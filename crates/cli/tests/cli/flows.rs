//! Definitions: checked, applied, shown, drawn, deleted.

use crate::support::{Place, WAIT_FOR_GO, until};
use serde_json::{Value, json};

const CHAIN: &[(&str, &[&str], &str)] = &[("one", &[], "echo 1"), ("two", &["one"], "echo 2")];

#[test]
fn a_version_is_made_only_when_something_changed() {
    let place = Place::new();
    place.flow("chain.json", CHAIN, json!({}));
    assert_eq!(place.expect(0, &["flows", "apply", "chain.json"]).stdout, "chain@1  created\n");
    assert_eq!(place.expect(0, &["flows", "apply", "chain.json"]).stdout, "chain@1  unchanged\n");
    place.flow("chain.json", CHAIN, json!({ "description": "two steps" }));
    assert_eq!(place.json(&["flows", "apply", "chain.json"])["result"], "created");
    let list = place.expect(0, &["flows", "list"]).stdout;
    assert!(
        list.lines().any(|line| line.starts_with("chain        2") && line.ends_with("two steps")),
        "{list}"
    );
    let versions = place.expect(0, &["flows", "show", "chain", "--versions"]).stdout;
    assert_eq!(versions.lines().count(), 3, "{versions}");
    let first = place.json(&["flows", "show", "chain@1"]);
    assert_eq!((&first["version"], &first["current"]), (&1.into(), &false.into()));
    assert_eq!(first["definition"]["description"], Value::Null);
    place.flow("chain.json", CHAIN, json!({}));
    assert_eq!(place.expect(0, &["flows", "apply", "chain.json"]).stdout, "chain@1  restored\n");
}

#[test]
fn a_flow_runs_by_its_name_and_version() {
    let place = Place::new();
    place.flow("chain.json", CHAIN, json!({}));
    place.expect(0, &["flows", "apply", "chain.json"]);
    place.flow("chain.json", &[("one", &[], "echo 11")], json!({}));
    place.expect(0, &["flows", "apply", "chain.json"]);
    assert_eq!(place.expect(0, &["run", "chain"]).stdout, "11\n");
    assert_eq!(place.expect(0, &["run", "chain@1"]).stdout, "2\n");
    let missing = place.expect(3, &["run", "chian"]);
    assert!(missing.stderr.contains("did you mean chain?"), "{missing:?}");
    place.expect(3, &["run", "chain@9"]);
    place.expect(2, &["run", "chain@new"]);
}

#[test]
fn a_flow_that_is_deleted_lets_its_jobs_end() {
    let place = Place::new();
    place.flow("slow.json", &[("wait", &[], WAIT_FOR_GO), ("then", &["wait"], "echo 7")], json!({}));
    let mut run = place.start(&["run", "slow.json"]);
    until("it to run", || run.log().contains("running   wait"));
    let id = place.newest();
    assert_eq!(place.expect(0, &["flows", "delete", "slow"]).stdout, "slow  deleted; its jobs go on\n");
    place.expect(3, &["flows", "delete", "slow"]);
    place.expect(3, &["flows", "show", "slow"]);
    place.write("go", "");
    assert_eq!(run.end().code(), Some(0), "{}", run.log());
    assert_eq!(place.job(&id)["output"], 7);
    assert_eq!(place.json(&["jobs", "progress", &id])["progress"], 100);
}

#[test]
fn a_graph_comes_in_all_forms() {
    let place = Place::new();
    place.flow("d.json", CHAIN, json!({}));
    assert_eq!(
        place.expect(0, &["flows", "graph", "d.json"]).stdout,
        "●  one  command\n│\n●  two  command\n"
    );
    assert!(
        place.expect(0, &["flows", "graph", "d.json", "--format", "mermaid"]).stdout.contains("t0 --> t1")
    );
    let dot = place.expect(0, &["flows", "graph", "d.json", "--format", "dot"]).stdout;
    assert!(dot.contains("\"one\" -> \"two\";"), "{dot}");
    assert_eq!(place.json(&["flows", "graph", "d.json"])["tasks"][1]["needs"], json!(["one"]));
    place.expect(0, &["flows", "apply", "d.json"]);
    assert!(place.expect(0, &["flows", "graph", "d@1"]).stdout.starts_with('●'));
    assert!(!place.path("x.db").exists());
}

#[test]
fn the_schema_is_json() {
    let schema = Place::new().json(&["flows", "schema"]);
    assert!(schema["properties"]["tasks"].is_object(), "{schema}");
}
