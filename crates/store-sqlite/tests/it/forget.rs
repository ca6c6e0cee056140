//! What is removed leaves no row behind, and the other processes on the file know.

use crate::support::{ask, assert_sound, completed, job, open, scratch};
use orchestrator_core::flow::{Flow, Task};
use orchestrator_core::{ErrorClass, Failure, JobId, Json, Key, NewJob, Outcome, Timestamp};
use orchestrator_store::{Bygone, Catalog, Forgot, Removable, RemovableAsk, Settlement, Store, Submitted};
use orchestrator_store_sqlite::SqliteStore;
use std::path::Path;
use std::sync::Arc;

/// Tables in which every row belongs to a job.
const OF_JOBS: [&str; 13] = [
    "jobs", "runs", "alive", "bad", "tasks", "held", "waits", "idem", "ready", "parked", "delayed", "leases",
    "ended",
];

fn keyed() -> NewJob {
    job("1").key(Key::new("k"))
}

async fn created(store: &SqliteStore, job: NewJob) -> JobId {
    match &store.submit(vec![job]).await.unwrap()[0] {
        Submitted::Created { id, .. } => *id,
        other => panic!("it should be new: {other:?}"),
    }
}

/// Works off everything that is in line; what is at its first attempt and says so fails for good.
async fn work_off(store: &SqliteStore) {
    loop {
        let tasks = store.lease(ask(100)).await.unwrap().tasks;
        if tasks.is_empty() {
            return;
        }
        let end = |leased: &orchestrator_store::Leased| match leased.payload.as_str() {
            "\"fail\"" => {
                let outcome = Outcome::Failed(Failure::new(ErrorClass::Permanent, "no"));
                Settlement { held: leased.held(), outcome, jitter: 0.0 }
            }
            _ => completed(leased.held()),
        };
        store.settle(tasks.iter().map(end).collect()).await.unwrap();
    }
}

/// Removes everything that has ended.
async fn forget_all(store: &SqliteStore) -> usize {
    let bygone = Bygone::before(Timestamp::from_millis(i64::MAX));
    let ask = RemovableAsk { bygone, after: None, limit: 1000, look: 1000 };
    let jobs = store.removable(ask).await.unwrap().jobs;
    let forgot = store.forget(jobs.iter().map(Removable::forget).collect()).await.unwrap();
    assert!(forgot.iter().all(|forgot| *forgot == Forgot::Done), "{forgot:?}");
    forgot.len()
}

fn rows(path: &Path, table: &str) -> i64 {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn no_row_of_a_job_stays() {
    let dir = scratch();
    let path = dir.path().join("forget.db");
    let store = open(&path);
    let each = Flow::new("list")
        .task(Task::new("each", "work").for_each("{{ input }}"))
        .task(Task::new("last", "work").needs(["each"]));
    let each = Arc::new(each.plan().unwrap());
    let list = |text: &str| NewJob::of_flow(each.clone()).payload(Json::parse(text).unwrap());
    let first = created(&store, keyed()).await;
    store
        .submit(vec![
            list("[1,2,3]"),
            list("[1,\"fail\"]").key(Key::new("flow")),
            job("\"fail\"").key(Key::new("bad")),
            job("2").after(first),
        ])
        .await
        .unwrap();
    work_off(&store).await;
    created(&store, job("\"fail\"").key(Key::new("bad"))).await;
    work_off(&store).await;
    for table in ["jobs", "runs", "tasks", "ended", "dead", "attempts", "bad"] {
        assert!(rows(&path, table) > 0, "{table}");
    }
    assert_eq!(forget_all(&store).await, 6);
    for table in OF_JOBS.iter().chain(&["dead", "attempts"]) {
        assert_eq!(rows(&path, table), 0, "{table}");
    }
    let left = store.stats().await.unwrap().lines;
    assert!(left.iter().all(|line| line.completed + line.failed + line.skipped == 0), "{left:?}");
    store.close();
    assert_sound(&path);
}

#[tokio::test]
async fn what_one_removes_the_other_does_not_know() {
    let dir = scratch();
    let path = dir.path().join("forget.db");
    let (a, b) = (open(&path), open(&path));
    let old = created(&a, keyed()).await;
    work_off(&b).await;
    assert_eq!(b.submit(vec![keyed()]).await.unwrap()[0].id(), old, "both know the key");
    assert_eq!(forget_all(&a).await, 1);
    assert_eq!(b.job(old).await.unwrap(), None);
    let new = created(&b, keyed().rerun_of(old)).await;
    assert_ne!(new.free_bits(), old.free_bits(), "a number is given out once");
    assert_eq!(a.submit(vec![keyed()]).await.unwrap()[0].id(), new);
    assert_eq!(a.job(new).await.unwrap().unwrap().previous, None);
}

/// More than the keys that are held in memory before they are moved into the index.
const KEYS: usize = 140_000;

#[tokio::test]
async fn keys_that_were_moved_into_the_index_go_too() {
    let dir = scratch();
    let path = dir.path().join("forget.db");
    let store = open(&path);
    let nth = |n: usize| job("1").key(Key::new(n.to_string()));
    let mut first = vec![];
    for from in (0..KEYS).step_by(10_000) {
        let answers = store.submit((from..from + 10_000).map(nth).collect()).await.unwrap();
        first.extend(answers.iter().take(1).map(Submitted::id));
    }
    // A slice is moved with each commit; the watermark is written with the last.
    while rows(&path, "meta WHERE name = 'idem_watermark'") == 0 {
        created(&store, job("1")).await;
    }
    let before = rows(&path, "idem");
    store
        .control(first.iter().map(|id| orchestrator_store::Command::Cancel(*id).into()).collect())
        .await
        .unwrap();
    let bygone = Bygone::before(Timestamp::from_millis(i64::MAX));
    let ask = RemovableAsk { bygone, after: None, limit: u32::MAX, look: u32::MAX };
    let jobs = store.removable(ask).await.unwrap().jobs;
    assert_eq!(jobs.len(), first.len());
    store.forget(jobs.iter().map(Removable::forget).collect()).await.unwrap();
    assert_eq!(rows(&path, "idem"), before - first.len() as i64);
    for from in (0..KEYS).step_by(10_000) {
        created(&store, nth(from)).await;
        let same = store.submit(vec![nth(from + 1)]).await.unwrap();
        assert!(matches!(same[0], Submitted::Existing { .. }), "{same:?}");
    }
}
