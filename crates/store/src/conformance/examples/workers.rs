//! Examples of workers that tell of themselves.

use crate::conformance::world::*;
use crate::verbs::{WORKER_REMEMBERED, WorkerNote};
use crate::views::WorkerView;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{Millis, WorkerId};

pub(super) fn note(name: &str) -> WorkerNote {
    WorkerNote {
        name: WorkerId::new(name),
        host: "host \u{e4}".into(),
        version: "orchestrator 0.1.0".into(),
        queues: vec![DEFAULT_QUEUE.into(), "q".into()],
        handlers: vec![HANDLER.into()],
        slots: 8,
        gone: false,
    }
}

pub(super) async fn they_tell_of_themselves(world: &World) {
    let workers = async || world.store.workers().await.unwrap();
    assert_eq!(workers().await, []);
    world.store.register(vec![note("b"), note("a")]).await.unwrap();
    world.advance(Millis::secs(10));
    let changed = WorkerNote { slots: 2, queues: vec![], ..note("b") };
    world.store.register(vec![note("b"), changed.clone()]).await.unwrap();
    let seen = |note: WorkerNote, last| {
        let last_seen = START + Millis::secs(last);
        WorkerView { note, first_seen: START, last_seen, running: 0 }
    };
    assert_eq!(workers().await, [seen(note("a"), 0), seen(changed, 10)], "in order, and as they said last");
    let gone = WorkerNote { gone: true, ..note("a") };
    world.store.register(vec![gone.clone()]).await.unwrap();
    assert_eq!(workers().await[0], seen(gone, 10), "one that is gone is remembered for a while");
    world.store.register(vec![note("a")]).await.unwrap();
    assert_eq!(workers().await[0], seen(note("a"), 10), "and may come back");
    world.store.register(vec![]).await.unwrap();
}

pub(super) async fn what_they_hold_is_counted(world: &World) {
    world.store.register(vec![note("w1"), note("w2")]).await.unwrap();
    world.store.submit(vec![job(); 3]).await.unwrap();
    // Leases of the examples are those of w1.
    let leased = world.lease(2).await;
    let running = async || {
        let workers = world.store.workers().await.unwrap();
        workers.iter().map(|worker| worker.running).collect::<Vec<_>>()
    };
    assert_eq!(running().await, [2, 0]);
    world.complete(&leased[0]).await;
    assert_eq!(running().await, [1, 0]);
}

pub(super) async fn who_says_nothing_is_forgotten(world: &World) {
    let names = async || {
        let workers = world.store.workers().await.unwrap();
        workers.iter().map(|worker| (worker.note.name.to_string(), worker.first_seen)).collect::<Vec<_>>()
    };
    let day = WORKER_REMEMBERED;
    world.store.register(vec![note("a"), note("b")]).await.unwrap();
    world.advance(Millis(day.0 - 1));
    world.store.register(vec![note("b")]).await.unwrap();
    assert_eq!(names().await, [("a".to_owned(), START), ("b".to_owned(), START)]);
    world.advance(Millis(1));
    assert_eq!(names().await, [("b".to_owned(), START)]);
    world.store.register(vec![note("a")]).await.unwrap();
    assert_eq!(
        names().await,
        [("a".to_owned(), START + day), ("b".to_owned(), START)],
        "as one that just came"
    );
    world.advance(Millis(2 * day.0));
    assert_eq!(names().await, [], "also where nobody says anything any more");
}
