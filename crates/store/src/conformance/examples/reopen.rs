//! What is kept when a store is closed and opened again: everything.

use crate::conformance::Fixture;
use crate::conformance::snapshot::Snapshot;
use crate::conformance::world::*;
use crate::verbs::{Beat, Command, Controlled, RuleOrigin, Settled, Submitted};
use orchestrator_core::order::Priority;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{ErrorClass, JobState, Key, LimitRule, Millis, Outcome, Rate, TaskState};

/// Passes at once for stores that keep nothing.
pub(super) async fn everything_is_kept(fixture: &dyn Fixture) {
    let mut world = World::new(fixture).await;
    let rate = LimitRule { concurrency: None, rate: Some(Rate::new(1, Millis::secs(10))) };
    world.limit("rate:r", Some(rate)).await;
    world.limit("host:a", Some(LimitRule::at_most(1))).await;
    world.set_limit("host:*", Some(LimitRule::at_most(4)), RuleOrigin::Config).await;

    let completed = world.add(job().key(Key::new("k")).payload(json("[1]"))).await;
    world.complete(&world.lease_one().await).await;
    let old = world.add(job().key(Key::new("again"))).await;
    let zombie = world.lease_one().await;
    world.fail(&zombie).await;
    world.settle(zombie.held(), done()).await;
    let again = world.add(job().key(Key::new("again"))).await;
    let leg = Leg { checkpoint: json("{\"x\":1}"), limits: limits(&["host:a"]), delay: Millis(0) };
    world.settle(world.lease_one().await.held(), Outcome::Continue(leg)).await;
    let held = world.lease_one().await;
    assert_eq!(held.task.job, again);
    world.add(job()).await;
    world.settle(world.lease_one().await.held(), failed(ErrorClass::Network)).await;
    world.store.submit(vec![job().limits(limits(&["rate:r"])); 2]).await.unwrap();
    world.complete(&world.lease_one().await).await;
    let delayed = world.add(job().run_at(START + Millis::hours(1))).await;
    world.add(job().limits(limits(&["host:a"])).tenant("t2")).await;
    world.add(job().priority(Priority::Critical).limits(limits(&["host:a"]))).await;
    let cancelled = world.add(job()).await;
    world.control(Command::Cancel(cancelled)).await;
    assert_eq!(world.lease(9).await, [], "all that is in line waits for a limit");

    let before = Snapshot::of(&*world.store).await;
    let ids: Vec<_> = world.jobs().await.iter().map(|job| job.id).collect();
    let journal = world.store.journal(0, ALL).await.unwrap();
    let Some(store) = fixture.reopen(world.store, world.clock.clone()).await else { return };
    world.store = store;
    if let Err(difference) = Snapshot::of(&*world.store).await.same_as(&before) {
        panic!("after reopening, {difference}");
    }
    assert_eq!(world.jobs().await.iter().map(|job| job.id).collect::<Vec<_>>(), ids, "ids are for ever");
    assert_eq!(world.store.journal(0, ALL).await.unwrap(), journal);

    assert_eq!(world.lease(9).await, [], "caps and buckets are kept");
    let same = world.submit(job().key(Key::new("k")).payload(json("[1]"))).await;
    assert_eq!(same, Submitted::Existing { id: completed, state: JobState::Completed });
    assert_eq!(world.control(Command::Retry(old)).await, Controlled::Superseded(again));
    assert_eq!(world.settle(zombie.held(), done()).await, Settled::Stale, "fences are kept");
    assert_eq!(world.extend(held.held(), TTL).await, Beat::Until(world.now() + TTL), "and leases");
    assert_eq!(world.settle(held.held(), done()).await.state(), Some(TaskState::Completed));
    assert_eq!(world.lease(9).await.len(), 1, "the slot of before is free now");
    let newest = world.add(job()).await;
    assert_eq!(world.jobs().await.last().map(|job| job.id), Some(newest), "new jobs come after the old");
    world.advance(Millis::secs(10));
    assert_eq!(world.lease(9).await.len(), 3, "the retry, the one under the rate, and the newest");
    world.advance(Millis::hours(1));
    world.sweep(99).await;
    assert!(world.work_off(99).await.contains(&delayed));
    super::journal::agrees_with_the_catalog(&world).await;
}
