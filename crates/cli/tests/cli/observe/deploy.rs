//! What `deploy/` gives to Prometheus and Grafana fits what a server shows.

use super::promtool;
use super::server::Server;
use crate::support::Place;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn deploy() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Every word in a text that looks like a metric of ours.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    words.filter(|word| word.starts_with("orchestrator_")).map(str::to_owned).collect()
}

#[test]
fn the_alerts_are_right_and_do_what_their_tests_say() {
    let dir = deploy().join("prometheus");
    promtool::run(&dir, &["check", "rules", "rules.yml"]);
    promtool::run(&dir, &["test", "rules", "rules_test.yml"]);
}

#[test]
fn alerts_and_dashboard_use_only_metrics_that_there_are() {
    let place = Place::new();
    let server = Server::start(&place, "[server]\nmetrics_listen = \"\"\n", &["--workers"]);
    let page = server.get("/metrics").body;
    // A name is announced before it has a series.
    let mut known: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .map(str::to_owned)
        .collect();
    let reference = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    known.extend(names(&std::fs::read_to_string(reference).unwrap()));
    let read = |file: &str| std::fs::read_to_string(deploy().join(file)).unwrap();
    let used =
        [read("grafana/orchestrator.json"), read("prometheus/rules.yml"), read("prometheus/rules_test.yml")];
    for name in used.iter().flat_map(|text| names(text)) {
        let bare =
            ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(&name);
        assert!(known.contains(&name) || known.contains(bare), "there is no metric {name}");
    }
    serde_json::from_str::<serde_json::Value>(&used[0]).unwrap();
}
