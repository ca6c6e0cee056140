//! Examples of the journal, and the check that it tells the truth.

use crate::conformance::replay::Lives;
use crate::conformance::world::*;
use crate::verbs::Command;
use orchestrator_core::{ErrorClass, Event, Millis, Outcome, TaskEvent, TaskId, TaskState};

/// Replays the journal: at its end stands what the catalog shows.
pub(super) async fn agrees_with_the_catalog(world: &World) {
    let lives = Lives::of(&*world.store).await;
    lives.agree_with(&*world.store, &world.jobs().await).await;
}

pub(super) async fn it_pages_by_entry(world: &World) {
    for _ in 0..5 {
        world.store.submit(vec![job(); 2]).await.unwrap();
        world.advance(Millis(1));
    }
    world.lease(3).await;
    let all = world.store.journal(0, ALL).await.unwrap();
    assert_eq!(all.iter().flat_map(|entry| &entry.events).count(), 13);
    let mut paged = vec![];
    let mut after = 0;
    loop {
        let page = world.store.journal(after, 1).await.unwrap();
        assert!(page.len() <= 1);
        let Some(entry) = page.into_iter().next() else { break };
        after = entry.n;
        paged.push(entry);
    }
    assert_eq!(paged, all);
    assert_eq!(world.store.journal(after, 1).await.unwrap(), [], "nothing comes after the last");
}

pub(super) async fn it_tells_a_whole_life(world: &World) {
    let id = world.add(job().run_at(START + Millis(5))).await;
    world.advance(Millis(5));
    world.settle(world.lease_one().await.held(), Outcome::Released).await;
    world.settle(world.lease_one().await.held(), failed(ErrorClass::Network)).await;
    world.advance(Millis::secs(1));
    world.lease_one().await;
    world.advance(TTL);
    world.sweep(1).await;
    world.fail(&world.lease_one().await).await;
    world.control(Command::Retry(id)).await;
    world.complete(&world.lease_one().await).await;
    use TaskState::*;
    let expected = [
        (Queued, 0),
        (Running, 1),
        (Queued, 1),
        (Running, 2),
        (Retrying, 2),
        (Queued, 2),
        (Running, 3),
        (Queued, 3),
        (Running, 4),
        (Failed, 4),
        (Queued, 4),
        (Running, 5),
        (Completed, 5),
    ];
    let entries = world.store.journal(0, ALL).await.unwrap();
    let told = |(state, attempt)| Event::Task(TaskEvent { task: TaskId::only(id), state, attempt });
    let events: Vec<_> = entries.iter().flat_map(|entry| entry.events.clone()).collect();
    assert_eq!(events, expected.map(told), "and nothing of the job: its one task says it all");
    assert_eq!(entries[0].at, START);
    assert_eq!(entries.last().map(|entry| entry.at), Some(world.now()));
}

pub(super) async fn reads_and_stale_writes_leave_no_entry(world: &World) {
    let id = world.add(job()).await;
    let leased = world.lease_one().await;
    world.complete(&leased).await;
    let before = world.store.journal(0, ALL).await.unwrap();
    world.settle(leased.held(), done()).await;
    world.extend(leased.held(), TTL).await;
    world.control(Command::Retry(id)).await;
    world.lease(3).await;
    world.sweep(3).await;
    world.limit("host:a", None).await;
    world.store.stats().await.unwrap();
    assert_eq!(world.store.journal(0, ALL).await.unwrap(), before);
}
