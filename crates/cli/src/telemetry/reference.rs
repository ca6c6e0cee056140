//! The reference page of the metrics, made from their tables.

use super::metrics::all;
use orchestrator_store::meter::{Kind, Meter, Whose};
use std::fmt::Write as _;

const HEAD: &str = "# Metrics\n\n\
Generated from the tables beside the code that records; `UPDATE_DOCS=1 cargo test -p orchestrator` writes it anew.\n\n\
`serve` shows them at `/metrics` of the API and, with health, on a port of their own (`server.metrics_listen`, 9090 of this \
machine), `dev` on the API only, `worker` where `--metrics-listen` says. `server.metrics = \"off\"` switches them off: then \
nothing is measured. [Observe a server](../how-to/observe.md) tells how to use them.\n\n\
No label holds an id, a tenant or a text of a caller. Names of queues and tasks are bounded: beyond 100 queues, and 200 \
pairs of task and handler, the rest is called `other`. A path is the route as it is written down, such as `/jobs/{id}`.\n";

const PROCESS: &str = "\n## What each process did\n\n\
Over replicas and workers these are put together with `sum`. A server counts what goes through it, so tasks of workers that \
work for a server are counted there, save for how long handlers ran and how many slots there are: that only the worker \
knows.\n\n";

const STORE: &str = "\n## Facts of the store\n\n\
Every replica on one database shows the same numbers, also of what others did, and after a restart: put them together with \
`max`, never with `sum`. They are read when somebody looks, at most once per second. While the store cannot be read they \
stay as they were, and `orchestrator_store_up` is 0.\n\n";

fn page() -> String {
    let mut text = HEAD.to_owned();
    for (heading, whose) in [(PROCESS, Whose::Process), (STORE, Whose::Store)] {
        text.push_str(heading);
        text.push_str("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n");
        let mut rows: Vec<&Meter> = all().filter(|meter| meter.whose == whose).collect();
        rows.sort_by_key(|meter| meter.name);
        for meter in rows {
            let kind = match meter.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram(_) => "histogram",
            };
            let labels: Vec<_> = meter.labels.iter().map(|label| format!("`{label}`")).collect();
            let _ = writeln!(text, "| `{}` | {kind} | {} | {} |", meter.name, labels.join(", "), meter.help);
        }
    }
    text
}

#[test]
fn the_reference_in_the_docs_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let wanted = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, wanted,
        "docs/reference/metrics.md is stale: run UPDATE_DOCS=1 cargo test -p orchestrator"
    );
}

#[test]
fn every_metric_is_named_by_the_rules() {
    let mut names: Vec<&str> = all().map(|meter| meter.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name stands twice");
    for meter in all() {
        let total = meter.name.ends_with("_total");
        assert_eq!(total, meter.kind == Kind::Counter, "{}", meter.name);
        assert!(meter.name.starts_with("orchestrator_") && meter.help.ends_with('.'), "{}", meter.name);
    }
}
