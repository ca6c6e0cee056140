//! `noop` and `sleep`.

use super::{assert_refused, completed, config, plain, work};
use orchestrator_core::{Json, Outcome};
use orchestrator_worker::builtin::registry;
use serde_json::json;
use std::path::Path;

#[test]
fn the_registry_has_them_all() {
    let registry = registry(config(Path::new("nowhere")));
    let names: Vec<_> = registry.names().map(|name| &**name).collect();
    assert_eq!(names, ["command", "download", "http", "noop", "sleep"]);
}

#[tokio::test]
async fn noop_takes_anything_and_gives_nothing() {
    for payload in [json!(null), json!({"a": 1}), json!([1])] {
        assert!(plain("noop").check(&payload.clone().into()).is_empty());
        assert_eq!(plain("noop").run(work(payload)).await, Outcome::Completed(Json::null()));
    }
}

#[tokio::test(start_paused = true)]
async fn sleep_waits_its_time() {
    let before = tokio::time::Instant::now();
    let output = completed(plain("sleep").run(work(json!({"for": "1h30m"}))).await);
    assert_eq!(output.as_str(), r#"{"slept":"1h30m"}"#);
    assert_eq!(before.elapsed().as_secs(), 5400, "by the paused clock");
}

#[tokio::test]
async fn a_sleeper_wakes_when_it_must_end() {
    let job = work(json!({"for": "1h"}));
    job.cancelled.cancel();
    assert_eq!(plain("sleep").run(job).await, Outcome::Released);
}

#[tokio::test]
async fn sleep_refuses_what_is_no_span() {
    assert_refused(
        &*plain("sleep"),
        vec![
            (json!(null), &["payload"]),
            (json!({}), &["payload.for"]),
            (json!({"for": "soon"}), &["payload.for"]),
            (json!({"for": -1}), &["payload.for"]),
            (json!({"for": "1s", "then": "2s"}), &["payload.then"]),
        ],
    )
    .await;
}
