//! The arrows between the crates point one way, as `docs/ARCHITECTURE.md` draws them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Which of our crates each crate may use. Dev-dependencies are free: tests and examples may reach
/// further.
const ARROWS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("flowfile", &["core"]),
    ("store", &["core"]),
    ("store-sqlite", &["core", "store"]),
    ("store-postgres", &["core", "store"]),
    ("pg-harness", &[]),
    ("worker", &["core", "store"]),
    ("engine", &["core", "store", "worker"]),
    ("api", &["core", "store"]),
    ("server", &["core", "flowfile", "store", "worker", "engine", "api"]),
    ("client", &["core", "store", "worker", "engine", "api"]),
    ("history", &["core"]),
    ("sim", &["core", "store", "worker", "engine", "history"]),
    ("planted", &["core"]),
    ("storm", &["core", "history"]),
    (
        "cli",
        &[
            "core",
            "flowfile",
            "store",
            "store-sqlite",
            "store-postgres",
            "worker",
            "engine",
            "server",
            "client",
        ],
    ),
];

/// What the pure core may not ask for: input and output, and chance. Of `jiff` it uses the calendar, never the clock.
const NOT_IN_CORE: &[&str] = &["tokio", "rusqlite", "reqwest", "fastrand", "rand", "chrono", "async-trait"];

#[test]
fn the_arrows_point_one_way() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let allowed: BTreeMap<_, BTreeSet<_>> =
        ARROWS.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let dir = entry.unwrap().path();
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let allowed =
            allowed.get(name.as_str()).unwrap_or_else(|| panic!("crates/{name} is not in the table"));
        for used in dependencies(&dir) {
            if let Some(ours) = used.strip_prefix("orchestrator-") {
                assert!(allowed.contains(ours), "crates/{name} must not use crates/{ours}");
            }
            assert!(name != "core" || !NOT_IN_CORE.contains(&used.as_str()), "the core is pure: no {used}");
            let backend = ["rusqlite", "tokio-postgres"].contains(&used.as_str());
            assert!(
                !backend || ["store-sqlite", "store-postgres", "cli"].contains(&name.as_str()),
                "{name} must not name a backend"
            );
        }
        seen.insert(name);
    }
    assert_eq!(
        seen,
        allowed.keys().map(|name| name.to_string()).collect(),
        "a crate of the table is missing"
    );
}

fn dependencies(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let table =
        manifest.get("dependencies").and_then(toml::Value::as_table).expect("every crate has dependencies");
    table.keys().cloned().collect()
}
