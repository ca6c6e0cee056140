//! Removing jobs while others submit and retry, the rows that are left, and who is to do it.

use orchestrator_core::{
    ErrorClass, Failure, JobId, Json, Key, Millis, NewJob, Outcome, Timestamp, WorkerId,
};
use orchestrator_store::{
    Bygone, Catalog, Command, Controlled, Forget, Forgot, LeaseAsk, Removable, RemovableAsk, Settlement,
    Store, Submitted,
};
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::Server;
use std::sync::Arc;

/// Tables in which every row belongs to a job.
const OF_JOBS: [&str; 8] = ["jobs", "keys", "former_keys", "runs", "tasks", "ended", "dead", "attempts"];

async fn open(url: &str) -> Arc<PostgresStore> {
    PostgresStore::open(Options::new(url)).await.unwrap()
}

fn keyed(key: &str) -> NewJob {
    NewJob::new("work").payload(Json::null()).key(Key::new(key))
}

/// Works off everything that is in line, with one outcome.
async fn work_off(store: &PostgresStore, outcome: &Outcome) {
    let ask = LeaseAsk {
        worker: WorkerId::new("w"),
        queues: vec!["default".into()],
        handlers: vec!["work".into()],
        slots: 100,
        ttl: Millis::mins(10),
        hold: Millis(0),
    };
    loop {
        let tasks = store.lease(ask.clone()).await.unwrap().tasks;
        if tasks.is_empty() {
            return;
        }
        let end = |leased: &orchestrator_store::Leased| Settlement {
            held: leased.held(),
            outcome: outcome.clone(),
            jitter: 0.0,
        };
        store.settle(tasks.iter().map(end).collect()).await.unwrap();
    }
}

fn failed() -> Outcome {
    Outcome::Failed(Failure::new(ErrorClass::Permanent, "no"))
}

async fn removable(store: &PostgresStore) -> Vec<Forget> {
    let bygone = Bygone::before(Timestamp::from_millis(i64::MAX));
    let ask = RemovableAsk { bygone, after: None, limit: 10_000, look: 10_000 };
    store.removable(ask).await.unwrap().jobs.iter().map(Removable::forget).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_processes_leads() {
    let url = Server::shared().database();
    let (a, b) = (open(&url).await, open(&url).await);
    assert_ne!(a.leads().await, b.leads().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_row_of_a_job_stays() {
    let url = Server::shared().database();
    let store = open(&url).await;
    for _ in 0..3 {
        store.submit(vec![keyed("a"), keyed("b")]).await.unwrap();
        work_off(&store, &failed()).await;
    }
    store.submit(vec![keyed("a")]).await.unwrap();
    work_off(&store, &Outcome::Completed(Json::null())).await;
    let jobs = removable(&store).await;
    assert_eq!(jobs.len(), 7);
    // The newest first: its key goes from one to the other.
    for wish in jobs.iter().rev() {
        assert_eq!(store.forget(vec![*wish, *wish]).await.unwrap(), [Forgot::Done, Forgot::NotFound]);
    }
    let name = url.rsplit('/').next().unwrap();
    for table in OF_JOBS {
        let count = Server::shared().sql(name, &format!("SELECT count(*) FROM orchestrator.{table}"));
        assert_eq!(count.trim(), "0", "{table}");
    }
}

/// Each round a job with a key has failed; then it is removed, retried and submitted again at the same time. Whoever
/// comes first, at most one live job has the key, and every answer fits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_races_a_retry_and_a_submit() {
    let url = Server::shared().database();
    let (a, b) = (open(&url).await, open(&url).await);
    for round in 0..40 {
        let key = round.to_string();
        let old: JobId = a.submit(vec![keyed(&key)]).await.unwrap()[0].id();
        work_off(&a, &failed()).await;
        let wish = removable(&a).await.into_iter().find(|wish| wish.job == old).unwrap();
        let (forgot, retried, submitted) = tokio::join!(
            a.forget(vec![wish]),
            b.control(vec![Command::Retry(old).into()]),
            b.submit(vec![keyed(&key)]),
        );
        let (forgot, retried) = (forgot.unwrap()[0], retried.unwrap().remove(0));
        let submitted = submitted.unwrap().remove(0);
        let runs_again = matches!(retried, Controlled::Done(_));
        assert_eq!(forgot == Forgot::Done, a.job(old).await.unwrap().is_none(), "{forgot:?}");
        assert!(!(runs_again && forgot == Forgot::Done), "a job that runs again is not removed");
        match submitted {
            Submitted::Existing { id, .. } => assert!(id == old && runs_again),
            Submitted::Created { id, .. } => assert!(id != old && !runs_again, "two live jobs of one key"),
            Submitted::Conflict { .. } => panic!("the payload is the same"),
        }
        assert_eq!(b.submit(vec![keyed(&key)]).await.unwrap()[0].id(), submitted.id());
        work_off(&a, &failed()).await;
    }
}
