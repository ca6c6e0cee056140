//! Examples of writes by attempts that do not hold their lease: they change nothing but the record.

use crate::conformance::snapshot::Snapshot;
use crate::conformance::world::*;
use crate::verbs::{Beat, Command, Held, Settled};
use crate::views::{AttemptEnd, AttemptRecord};
use orchestrator_core::outcome::Leg;
use orchestrator_core::{ErrorClass, JobId, Limits, Millis, Outcome, TaskId};

/// Tries every outcome and a heartbeat with `held`; all must be refused and recorded.
async fn refuses_all(world: &World, held: Held) {
    let leg = Leg { checkpoint: json("666"), limits: limits(&["host:stale"]), delay: Millis(0) };
    let outcomes = [
        done(),
        Outcome::Skipped(json("1")),
        failed(ErrorClass::Network),
        failed(ErrorClass::Permanent),
        Outcome::Released,
        Outcome::Continue(leg),
    ];
    for outcome in outcomes {
        let mut before = world.job(held.task.job).await;
        let snapshot = Snapshot::of(&*world.store).await;
        assert_eq!(world.extend(held, Millis::hours(1)).await, Beat::Lost, "{held:?}");
        assert_eq!(Snapshot::of(&*world.store).await, snapshot, "a stale heartbeat changes nothing");
        assert_eq!(world.settle(held, outcome.clone()).await, Settled::Stale, "{held:?} {outcome:?}");
        let after = world.job(held.task.job).await;
        before.tasks[held.task.index as usize].history.push(record(held.attempt, world));
        assert_eq!(after, before, "a stale {outcome:?} changes nothing but the record");
    }
}

fn record(attempt: u32, world: &World) -> AttemptRecord {
    AttemptRecord {
        attempt,
        at: world.now(),
        how: AttemptEnd::Stale,
        message: format!("a write by attempt {attempt} came after its lease was lost"),
    }
}

pub(super) async fn a_second_completion(world: &World) {
    world.add(job()).await;
    let leased = world.lease_one().await;
    world.complete(&leased).await;
    world.advance(Millis(5));
    refuses_all(world, leased.held()).await;
}

pub(super) async fn an_older_attempt(world: &World) {
    world.add(job().limits(limits(&["host:a"]))).await;
    let old = world.lease_one().await;
    world.settle(old.held(), Outcome::Released).await;
    refuses_all(world, old.held()).await;
    let new = world.lease_one().await;
    refuses_all(world, old.held()).await;
    refuses_all(world, Held { attempt: new.counters.attempt + 1, ..new.held() }).await;
    assert_eq!(world.running("host:a").await, 1, "a zombie frees no slot");
    world.complete(&new).await;
}

pub(super) async fn after_a_cancel(world: &World) {
    let id = world.add(job()).await;
    let leased = world.lease_one().await;
    world.control(Command::Cancel(id)).await;
    refuses_all(world, leased.held()).await;
}

pub(super) async fn after_an_expiry(world: &World) {
    world.add(job()).await;
    let leased = world.lease_one().await;
    world.advance(TTL);
    assert_eq!(world.sweep(9).await.ended.len(), 1);
    refuses_all(world, leased.held()).await;
    let again = world.lease_one().await;
    refuses_all(world, leased.held()).await;
    world.complete(&again).await;
}

pub(super) async fn after_a_retry_by_hand(world: &World) {
    let id = world.add(job()).await;
    let leased = world.lease_one().await;
    world.fail(&leased).await;
    world.control(Command::Retry(id)).await;
    refuses_all(world, leased.held()).await;
    let again = world.lease_one().await;
    assert_eq!(again.counters.attempt, 2, "the number of the attempt never starts over");
    refuses_all(world, leased.held()).await;
    world.complete(&again).await;
}

pub(super) async fn of_an_unknown_job(world: &World) {
    let held = Held { task: TaskId::only(JobId::from_parts(START, 0xbad)), attempt: 1 };
    let outcome = Outcome::Continue(Leg { checkpoint: json("1"), limits: Limits::none(), delay: Millis(0) });
    assert_eq!(world.settle(held, outcome).await, Settled::Stale);
    assert_eq!(world.store.job(held.task.job).await.unwrap(), None);
    assert_eq!(world.jobs().await, []);
}

pub(super) async fn every_repetition_is_recorded(world: &World) {
    let id = world.add(job()).await;
    let leased = world.lease_one().await;
    world.fail(&leased).await;
    for _ in 0..3 {
        assert_eq!(world.settle(leased.held(), done()).await, Settled::Stale);
    }
    let history = world.task(id).await.history;
    assert_eq!(history.len(), 4);
    assert_eq!(history[1..], vec![record(1, world); 3]);
    let dead = world.dead().await;
    assert_eq!(dead[0].message, "a permanent error", "a stale write is no last error");
}
