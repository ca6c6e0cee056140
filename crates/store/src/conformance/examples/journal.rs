//! Examples of the journal, and the check that it tells the truth.

use crate::conformance::flows::{flow, new, task};
use crate::conformance::replay::Lives;
use crate::conformance::world::*;
use crate::journal::{EventId, JournalEvent};
use crate::verbs::Command;
use orchestrator_core::{ErrorClass, Event, Millis, Outcome, TaskEvent, TaskId, TaskState};

/// Replays the journal: at its end stands what the catalog shows.
pub(super) async fn agrees_with_the_catalog(world: &World) {
    let lives = Lives::of(&*world.store).await;
    lives.agree_with(&*world.store, &world.jobs().await).await;
}

pub(super) async fn it_pages_by_event(world: &World) {
    for _ in 0..5 {
        world.store.submit(vec![job(); 3]).await.unwrap();
        world.advance(Millis(1));
    }
    world.lease(3).await;
    let all = world.store.journal(EventId::START, ALL).await.unwrap();
    assert_eq!((all.events.len(), all.missed), (18, false));
    for limit in [1, 2, 3, 4, 18, 19] {
        let mut paged = vec![];
        let mut after = EventId::START;
        loop {
            let page = world.store.journal(after, limit).await.unwrap();
            assert!(page.events.len() <= limit as usize && !page.missed);
            if page.next == after {
                assert_eq!(page.events, [], "nothing comes after the last");
                break;
            }
            assert_eq!(page.events.last().map(|told| told.id), Some(page.next));
            after = page.next;
            paged.extend(page.events);
        }
        assert_eq!(paged, all.events, "by {limit}");
    }
}

pub(super) async fn it_tells_whose_events_they_are(world: &World) {
    let each = task("each").needs(["list"]).for_each("{{ tasks.list.output }}");
    let of_flow = world.add(new(flow([task("list"), each])).tenant("lab")).await;
    let of_queue = world.add(job()).await;
    world.settle(world.lease_one().await.held(), Outcome::Completed(json("[1, 2]"))).await;
    let told = journal(&*world.store).await;
    let about = |job, index: Option<u32>| {
        let of = |told: &&JournalEvent| match told.event {
            Event::Task(event) => event.task.job == job && Some(event.task.index) == index,
            Event::Job(event) => event.job == job && index.is_none(),
        };
        let told = told.iter().find(of).unwrap_or_else(|| panic!("nothing of {job} {index:?}: {told:?}"));
        (told.name.as_deref(), &*told.tenant, told.flow.as_deref())
    };
    assert_eq!(about(of_flow, None), (None, "lab", Some("flow")));
    assert_eq!(about(of_flow, Some(0)), (Some("list"), "lab", Some("flow")));
    assert_eq!(about(of_flow, Some(1)), (Some("each"), "lab", Some("flow")));
    assert_eq!(about(of_flow, Some(3)), (Some("each[1]"), "lab", Some("flow")));
    assert_eq!(about(of_queue, Some(0)), (Some("main"), "default", None));
}

/// Ids are those of the commit, whatever has been removed since.
pub(super) async fn what_is_removed_leaves_the_ids_of_others(world: &World) {
    let ids = world.store.submit(vec![job(); 3]).await.unwrap();
    let before = journal(&*world.store).await;
    world.complete(&world.lease_one().await).await;
    world.forget(ids[0].id()).await;
    let after = journal(&*world.store).await;
    assert_eq!(after, before[1..], "the rest is told as before");
    assert_eq!(after[0].id.index, 1);
    let page = world.store.journal(EventId::START, 1).await.unwrap();
    assert_eq!(
        (page.events, page.next),
        (vec![], before[0].id),
        "what went counts, so that a page is bounded"
    );
    let range = world.store.journal_range().await.unwrap();
    let end = world.store.journal(EventId::START, ALL).await.unwrap().next;
    assert_eq!(
        (range.oldest, range.newest),
        (before[0].id.entry, end),
        "its events are gone, its entries are not"
    );
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
    let entries = journal(&*world.store).await;
    let told = |(state, attempt)| Event::Task(TaskEvent { task: TaskId::only(id), state, attempt });
    let events: Vec<_> = entries.iter().map(|told| told.event).collect();
    assert_eq!(events, expected.map(told), "and nothing of the job: its one task says it all");
    assert_eq!(entries[0].at, START);
    assert_eq!(entries.last().map(|told| told.at), Some(world.now()));
}

pub(super) async fn reads_and_stale_writes_leave_no_entry(world: &World) {
    let id = world.add(job()).await;
    let leased = world.lease_one().await;
    world.complete(&leased).await;
    let before = journal(&*world.store).await;
    world.settle(leased.held(), done()).await;
    world.extend(leased.held(), TTL).await;
    world.control(Command::Retry(id)).await;
    world.lease(3).await;
    world.sweep(3).await;
    world.limit("host:a", None).await;
    world.store.stats().await.unwrap();
    assert_eq!(journal(&*world.store).await, before);
}
