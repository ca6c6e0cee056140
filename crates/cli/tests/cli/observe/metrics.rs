//! Metrics of the real server: on the API and on a port of their own, with what really happened in them.

use super::http::get;
use super::promtool;
use super::server::Server;
use crate::support::{Place, until};
use serde_json::json;

const CONFIG: &str =
    "[server]\nmetrics_listen = \"127.0.0.1:0\"\n[retry]\ninitial = \"1ms\"\nmax_retries = 1\n";

/// The value of a series, as the page writes it.
fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn what_happened_is_counted() {
    let place = Place::new();
    let mut server = Server::start(&place, CONFIG, &["--workers"]);
    let aside = server.metrics();
    assert_eq!(get(&aside, "/health").status, 200);
    assert_eq!(get(&aside, "/jobs").status, 404, "only what watchers need");
    let job = json!({ "artifact_id": "a", "handler": "sleep", "payload": { "for": "1ms" } });
    let done = server.run(&[], &job);
    assert_eq!(server.post("/jobs", &[], &job).status, 200);
    let failing =
        json!({ "handler": "command", "payload": { "run": ["false"], "exit": { "retryable": [1] } } });
    server.run(&[], &failing);
    server.get("/no/such/path");
    let page = get(&aside, "/metrics");
    assert_eq!(page.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let page = page.body;
    let expected = [
        ("orchestrator_flow_runs_processed_total{status=\"completed\"}", 1.0),
        ("orchestrator_flow_runs_processed_total{status=\"failed\"}", 1.0),
        ("orchestrator_jobs_submitted_total{result=\"created\"}", 2.0),
        ("orchestrator_jobs_submitted_total{result=\"existing\"}", 1.0),
        ("orchestrator_run_execution_seconds_count", 2.0),
        ("orchestrator_active_runs", 0.0),
        ("orchestrator_tasks_scheduled_total", 3.0),
        ("orchestrator_tasks_completed_total{status=\"completed\"}", 1.0),
        ("orchestrator_tasks_completed_total{status=\"failed\"}", 1.0),
        ("orchestrator_task_execution_seconds_count{handler=\"sleep\"}", 1.0),
        ("orchestrator_task_execution_seconds_count{handler=\"command\"}", 2.0),
        ("orchestrator_active_tasks{queue=\"default\"}", 0.0),
        ("orchestrator_retry_attempts_total{task=\"main\",handler=\"command\"}", 1.0),
        ("orchestrator_dead_letter_queue_size{queue=\"default\"}", 1.0),
        ("orchestrator_queue_depth{queue=\"default\",state=\"ready\"}", 0.0),
        ("orchestrator_queue_oldest_seconds{queue=\"default\"}", 0.0),
        ("orchestrator_worker_slots", 8.0),
        ("orchestrator_worker_slots_busy", 0.0),
        ("orchestrator_store_up", 1.0),
        ("orchestrator_store_writable", 1.0),
        ("orchestrator_store_batch_size_count{verb=\"submit\"}", 3.0),
        ("orchestrator_http_request_seconds_count{method=\"GET\",path=\"other\",status=\"4xx\"}", 1.0),
        ("orchestrator_http_request_seconds_count{method=\"POST\",path=\"/jobs\",status=\"2xx\"}", 3.0),
    ];
    for (series, wanted) in expected {
        assert_eq!(value(&page, series), Some(wanted), "{series}\n{page}");
    }
    assert!(value(&page, "orchestrator_commit_seconds_count{store=\"sqlite\"}").unwrap() >= 3.0);
    let id = done["id"].as_str().unwrap();
    assert!(!page.contains(id) && !page.contains("/no/such"), "labels are bounded");
    promtool::check_metrics(&page);

    // What is taken up again is active again.
    let failed = server.get("/jobs?state=failed").json()["jobs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.post(&format!("/jobs/{failed}/retry"), &[], &json!(null)).status, 200);
    let twice = "orchestrator_flow_runs_processed_total{status=\"failed\"}";
    until("it to fail again", || value(&server.get("/metrics").body, twice) == Some(2.0));
    let page = server.get("/metrics").body;
    assert_eq!(value(&page, "orchestrator_active_runs"), Some(0.0), "{page}");
    server.stop();
}

#[test]
fn metrics_can_be_switched_off() {
    let place = Place::new();
    let server = Server::start(&place, "[server]\nmetrics = \"off\"\n", &[]);
    assert_eq!(server.get("/metrics").status, 404);
    assert!(!server.running.log().contains("metrics on"));
}

#[test]
fn a_worker_shows_its_own() {
    let place = Place::new();
    let server = Server::start(&place, "[server]\nmetrics_listen = \"\"\n", &[]);
    let url = format!("http://{}", server.address);
    let worker = place.start_as("worker", &["worker", "--server", &url, "--metrics-listen", "127.0.0.1:0"]);
    let worker = Server { running: worker, address: String::new() };
    let aside = worker.metrics();
    server.run(&[], &json!({ "handler": "sleep", "payload": { "for": "1ms" } }));
    let ran = "orchestrator_task_execution_seconds_count{handler=\"sleep\"}";
    assert_eq!(value(&get(&aside, "/metrics").body, ran), Some(1.0));
    let page = server.get("/metrics").body;
    assert_eq!(value(&page, "orchestrator_tasks_completed_total{status=\"completed\"}"), Some(1.0), "{page}");
}
