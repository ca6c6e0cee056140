//! Examples of the journal, and the check that it tells the truth.

use crate::conformance::world::*;
use crate::verbs::Command;
use orchestrator_core::{ErrorClass, Event, Millis, Outcome, TaskId, TaskState};
use std::collections::BTreeMap;

/// Replays the journal: only legal moves, attempts that never fall, numbers that rise, and at the
/// end the states that the catalog shows.
pub(super) async fn agrees_with_the_catalog(world: &World) {
    let entries = world.store.journal(0, ALL).await.expect("journal");
    let mut tasks: BTreeMap<TaskId, Event> = BTreeMap::new();
    for pair in entries.windows(2) {
        assert!(pair[0].n < pair[1].n && pair[0].at <= pair[1].at, "entries stand in order: {pair:?}");
    }
    for event in entries.iter().flat_map(|entry| &entry.events) {
        let before = tasks.insert(event.task, *event);
        let from = before.map_or(TaskState::Pending, |event| event.state);
        assert!(from.can_become(event.state), "no legal move: {from} to {event:?}");
        let attempt = before.map_or(0, |event| event.attempt);
        let started = u32::from(event.state == TaskState::Running);
        assert_eq!(
            event.attempt,
            attempt + started,
            "an attempt counts when it starts: {before:?} then {event:?}"
        );
    }
    let jobs = world.jobs().await;
    assert_eq!(tasks.len(), jobs.len(), "the journal knows every job and no other");
    for job in jobs {
        let told = tasks.get(&TaskId::only(job.id)).map(|event| (event.state, event.attempt));
        assert_eq!(told, Some((job.task.state, job.task.counters.attempt)), "the journal of {job:?}");
    }
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
    let told: Vec<_> = entries.iter().flat_map(|entry| &entry.events).map(|e| (e.state, e.attempt)).collect();
    assert_eq!(told, expected);
    let first = &entries[0];
    assert_eq!((first.at, first.events[0].task), (START, TaskId::only(id)));
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
