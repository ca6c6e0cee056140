//! Examples of `extend`.

use crate::conformance::world::*;
use crate::verbs::{Beat, Held};
use orchestrator_core::{JobId, Millis, TaskId, TaskState};

pub(super) async fn a_heartbeat_prolongs(world: &World) {
    let id = world.add(job()).await;
    let held = world.lease_one().await.held();
    world.advance(Millis::secs(20));
    let until = START + Millis::secs(20) + TTL;
    assert_eq!(world.extend(held, TTL).await, Beat::Until(until));
    assert_eq!(world.job(id).await.task().expires, Some(until));
    world.advance(Millis::secs(20));
    assert_eq!(world.sweep(9).await.ended, [], "the first expiry has passed, the new one has not");
    assert_eq!(
        world.extend(held, Millis::secs(5)).await,
        Beat::Until(world.now() + Millis::secs(5)),
        "shorter is fine"
    );
    world.advance(Millis::secs(5));
    assert_eq!(world.sweep(9).await.ended.len(), 1);
}

pub(super) async fn an_overdue_lease_is_held_until_it_is_swept(world: &World) {
    let id = world.add(job()).await;
    let held = world.lease_one().await.held();
    world.advance(Millis::secs(40));
    assert_eq!(world.extend(held, TTL).await, Beat::Until(world.now() + TTL));
    assert_eq!(world.sweep(9).await.ended, []);
    assert_eq!(world.state(id).await, TaskState::Running);
}

pub(super) async fn a_lease_not_held_is_lost(world: &World) {
    let id = world.add(job()).await;
    let queued = world.add(job().run_at(START + Millis::hours(1))).await;
    let held = world.lease_one().await.held();
    let unknown = TaskId::only(JobId::from_parts(START, 0xbad));
    for other in [
        Held { attempt: 2, ..held },
        Held { attempt: 0, ..held },
        Held { task: TaskId::only(queued), attempt: 0 },
        Held { task: unknown, attempt: 1 },
    ] {
        assert_eq!(world.extend(other, TTL).await, Beat::Lost, "{other:?}");
    }
    let before = world.job(id).await;
    let beats = world.store.extend(vec![Held { attempt: 9, ..held }, held], TTL).await.unwrap();
    assert_eq!(beats, [Beat::Lost, Beat::Until(START + TTL)], "answers stand in the order of the batch");
    assert_eq!(world.job(id).await, before);
    assert_eq!(world.settle(held, done()).await.state(), Some(TaskState::Completed));
    assert_eq!(world.extend(held, TTL).await, Beat::Lost);
}
