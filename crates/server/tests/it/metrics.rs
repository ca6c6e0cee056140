//! Labels are bounded however many names callers make up, and a store that is away is told of.

use metrics_exporter_prometheus::PrometheusBuilder;
use orchestrator_core::{Failure, Millis, NewJob, Outcome, RetryPolicy, TaskSpec, WorkerId};
use orchestrator_engine::{Facts, Measured};
use orchestrator_store::{LeaseAsk, Settlement, Store};
use orchestrator_store_sqlite::{Options, SqliteStore};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Runs with a recorder of its own, and gives the page at the end.
fn recorded(work: impl AsyncFnOnce(Arc<dyn Store>)) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let store = SqliteStore::open(&dir.path().join("jobs.db"), Options::default()).unwrap();
            work(Measured::wrap(store)).await;
        });
    });
    page.render()
}

fn job(queue: &str, handler: &str) -> NewJob {
    let retry = RetryPolicy { initial: Millis(0), ..RetryPolicy::default() };
    NewJob::with_spec(Arc::new(TaskSpec::new(handler).on_queue(queue).with_retry(retry)))
}

/// The values of a label of a metric.
fn values(page: &str, metric: &str, label: &str) -> BTreeSet<String> {
    let start = format!("{label}=\"");
    let lines = page.lines().filter(|line| line.starts_with(metric));
    lines.filter_map(|line| Some(line.split_once(&start)?.1.split('"').next()?.to_owned())).collect()
}

#[test]
fn names_beyond_the_bound_are_called_other() {
    let page = recorded(async |store: Arc<dyn Store>| {
        let jobs = (0..130).map(|n| job(&format!("q{n:03}"), "h")).collect();
        store.submit(jobs).await.unwrap();
        Facts::new(store).refresh().await;
    });
    let queues = values(&page, "orchestrator_queue_depth", "queue");
    assert_eq!((queues.len(), queues.contains("other")), (101, true), "{queues:?}");
    let rest = "orchestrator_queue_depth{queue=\"other\",state=\"ready\"} 30";
    assert!(page.contains(rest), "{page}");
}

#[test]
fn retries_of_many_handlers_are_bounded() {
    let page = recorded(async |store: Arc<dyn Store>| {
        let handlers: Vec<Arc<str>> = (0..230).map(|n| format!("h{n}").into()).collect();
        store.submit(handlers.iter().map(|handler| job("default", handler)).collect()).await.unwrap();
        for _ in 0..2 {
            let ask = LeaseAsk {
                worker: WorkerId::new("w"),
                queues: vec!["default".into()],
                handlers: handlers.clone(),
                slots: 1000,
                ttl: Millis::mins(1),
                hold: Millis(0),
            };
            let leased = store.lease(ask).await.unwrap().tasks;
            assert_eq!(leased.len(), 230);
            let failed =
                |held| Settlement { held, outcome: Outcome::Failed(Failure::transient("no")), jitter: 0.0 };
            store.settle(leased.iter().map(|leased| failed(leased.held())).collect()).await.unwrap();
        }
    });
    let handlers = values(&page, "orchestrator_retry_attempts_total", "handler");
    assert_eq!((handlers.len(), handlers.contains("other")), (201, true), "{handlers:?}");
    assert!(
        page.contains("orchestrator_retry_attempts_total{task=\"other\",handler=\"other\"} 30"),
        "{page}"
    );
    assert!(page.contains("orchestrator_tasks_scheduled_total 460"), "{page}");
}

#[test]
fn a_store_that_is_away_is_told_of() {
    let page = recorded(async |store: Arc<dyn Store>| {
        Facts::new(store.clone()).refresh().await;
        store.close().await;
        Facts::new(store.clone()).refresh().await;
        assert!(store.submit(vec![job("default", "h")]).await.is_err());
    });
    assert!(page.contains("orchestrator_store_up 0"), "{page}");
    assert_eq!(values(&page, "orchestrator_store_errors_total", "code"), ["store_closed".to_owned()].into());
}
