//! Asks for work that the store keeps until there is some.
//!
//! A request is in the writer's mailbox when its future was polled once, and the writer answers in
//! order: after a later verb was answered, an ask before it is held, served or let go.

use crate::support::{ask, completed, job, open, scratch};
use orchestrator_core::{Millis, NewJob, TaskState, WorkerId};
use orchestrator_store::{Catalog, LeaseAsk, LeaseGrant, QueueChange, Store, StoreError, StoreResult};
use orchestrator_store_sqlite::SqliteStore;
use std::pin::Pin;
use std::time::Duration;

type Asked<'a> = Pin<Box<dyn Future<Output = StoreResult<LeaseGrant>> + Send + 'a>>;

/// An ask of a worker for tasks of one handler, to be held for far longer than any test lasts.
fn held(worker: &str, handler: &str) -> LeaseAsk {
    let (worker, handlers) = (WorkerId::new(worker), vec![handler.into()]);
    LeaseAsk { worker, handlers, hold: Millis::hours(1), ..ask(4) }
}

/// The answer, if there is one by now.
async fn answer(asked: &mut Asked<'_>) -> Option<StoreResult<LeaseGrant>> {
    tokio::select! {
        biased;
        grant = asked => Some(grant),
        () = std::future::ready(()) => None,
    }
}

/// Waits until the writer has seen all that was asked before.
async fn seen(store: &SqliteStore) {
    store.extend(vec![], Millis(1)).await.unwrap();
}

#[tokio::test]
async fn each_ask_gets_what_it_asked_for_also_after_another_has_gone() {
    let dir = scratch();
    let store = open(&dir.path().join("held.db"));
    let asks = [("w1", "one"), ("w2", "two"), ("w3", "three")];
    let mut asked = asks.map(|(worker, handler)| store.lease(held(worker, handler)));
    for asked in &mut asked {
        assert!(answer(asked).await.is_none());
    }
    seen(&store).await;
    let [gone, second, third] = asked;
    drop(gone);
    store.submit(["one", "two", "three"].map(NewJob::new).to_vec()).await.unwrap();
    for (mut asked, (worker, handler)) in [second, third].into_iter().zip(&asks[1..]) {
        let grant = answer(&mut asked).await.expect("its work has come").unwrap();
        let handlers: Vec<_> = grant.tasks.iter().map(|task| &*task.spec.handler).collect();
        assert_eq!(handlers, [*handler], "{worker}");
        let task = store.job(grant.tasks[0].task.job).await.unwrap().unwrap().task().clone();
        assert_eq!(task.worker, Some(WorkerId::new(*worker)));
    }
    let left = store.lease(held("w4", "one")).await.unwrap().tasks;
    assert_eq!(left.len(), 1, "what the one who has gone asked for is there for others");
}

#[tokio::test]
async fn a_held_ask_waits_for_its_queue_to_go_on() {
    let dir = scratch();
    let store = open(&dir.path().join("held.db"));
    let set = |paused| store.set_queues(vec![QueueChange { queue: "default".into(), paused }]);
    set(true).await.unwrap();
    let mut asked = store.lease(held("w1", "work"));
    assert!(answer(&mut asked).await.is_none());
    store.submit(vec![NewJob::new("work")]).await.unwrap();
    assert!(answer(&mut asked).await.is_none(), "the commit that brings work brings none of a paused queue");
    set(false).await.unwrap();
    let grant = answer(&mut asked).await.expect("it goes on").unwrap();
    assert_eq!(grant.tasks.len(), 1);
}

#[tokio::test]
async fn a_held_ask_is_told_when_time_will_bring_work() {
    let dir = scratch();
    let store = open(&dir.path().join("held.db"));
    let mut asked = store.lease(held("w1", "work"));
    assert!(answer(&mut asked).await.is_none());
    seen(&store).await;
    let due = store.now() + Millis::mins(1);
    store.submit(vec![job("1").run_at(due)]).await.unwrap();
    let grant = answer(&mut asked).await.expect("it cannot be held past the moment").unwrap();
    assert_eq!((grant.tasks.len(), grant.next_at), (0, Some(due)));
}

#[tokio::test]
async fn an_ask_that_is_dropped_leaves_no_lease() {
    let dir = scratch();
    let path = dir.path().join("held.db");
    let store = open(&path);
    let ids = store.submit(vec![job("1"); 3]).await.unwrap();
    // Under somebody else's lock it cannot be answered before it is dropped.
    let lock = rusqlite::Connection::open(&path).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut asked = store.lease(ask(2));
    assert!(answer(&mut asked).await.is_none());
    drop(asked);
    lock.execute_batch("ROLLBACK").unwrap();
    // The first may share the transaction of the ask; the second comes after what follows from it.
    seen(&store).await;
    seen(&store).await;
    for id in ids {
        let task = store.job(id.id()).await.unwrap().unwrap().task().clone();
        assert_eq!((task.state, task.worker), (TaskState::Queued, None));
    }
    let leased = store.lease(ask(9)).await.unwrap().tasks;
    assert_eq!(leased.len(), 3);
    store.settle(leased.iter().map(|task| completed(task.held())).collect()).await.unwrap();
}

#[tokio::test]
async fn closing_does_not_wait_for_held_asks() {
    let dir = scratch();
    let store = open(&dir.path().join("held.db"));
    let mut asked = store.lease(held("w1", "work"));
    assert!(answer(&mut asked).await.is_none());
    seen(&store).await;
    let (closed, done) = tokio::sync::oneshot::channel();
    let closing = store.clone();
    // A thread of its own, so that a close that hangs fails the test instead of hanging it.
    std::thread::spawn(move || {
        closing.close();
        closed.send(()).unwrap();
    });
    tokio::time::timeout(Duration::from_secs(30), done).await.expect("it hangs").unwrap();
    assert!(matches!(answer(&mut asked).await, Some(Err(StoreError::Closed))));
}

/// Requests that come without a pause must not keep an ask past its time. Each takes the writer a
/// while, so that the next ones are there before it looks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ask_is_let_go_in_time_beside_steady_traffic() {
    let dir = scratch();
    let store = open(&dir.path().join("held.db"));
    let busy = |batches: u32| {
        let store = store.clone();
        async move {
            for _ in 0..batches {
                store.submit(vec![NewJob::new("other"); 300]).await.unwrap();
            }
        }
    };
    let mut traffic = tokio::task::JoinSet::new();
    for _ in 0..4 {
        traffic.spawn(busy(u32::MAX));
    }
    let short = LeaseAsk { hold: Millis(1), ..held("w1", "one") };
    tokio::select! {
        biased;
        grant = store.lease(short) => assert!(grant.unwrap().tasks.is_empty()),
        () = busy(60) => panic!("the ask was kept past its time"),
    }
    traffic.shutdown().await;
}
