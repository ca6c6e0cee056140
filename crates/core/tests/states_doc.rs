//! `docs/states.md` is made from the transition tables; it must not grow stale.

use std::path::Path;

#[test]
fn the_state_diagram_in_the_docs_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md");
    let wanted = orchestrator_core::state::diagram();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, wanted, "docs/states.md is stale: run UPDATE_DOCS=1 cargo test -p orchestrator-core");
}
