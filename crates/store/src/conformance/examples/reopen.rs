//! What is kept when a store is closed and opened again: everything.

use crate::conformance::Fixture;
use crate::conformance::flows::*;
use crate::conformance::snapshot::Snapshot;
use crate::conformance::world::*;
use crate::verbs::{Beat, Command, Controlled, FlowChange, RuleOrigin, Settled, Submitted};
use orchestrator_core::order::Priority;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{
    Document, ErrorClass, JobState, Key, LimitRule, Meta, Millis, Outcome, Rate, TaskState,
};

/// Closes and opens the store, which must look as before; `None` for stores that keep nothing.
async fn reopened(fixture: &dyn Fixture, world: World) -> Option<World> {
    let before = Snapshot::of(&*world.store).await;
    let ids: Vec<_> = world.jobs().await.iter().map(|job| job.id).collect();
    let told = journal(&*world.store).await;
    let World { store, clock } = world;
    let world = World { store: fixture.reopen(store, clock.clone()).await?, clock };
    if let Err(difference) = Snapshot::of(&*world.store).await.same_as(&before) {
        panic!("after reopening, {difference}");
    }
    assert_eq!(world.jobs().await.iter().map(|job| job.id).collect::<Vec<_>>(), ids, "ids are for ever");
    assert_eq!(journal(&*world.store).await, told);
    Some(world)
}

/// Passes at once for stores that keep nothing.
pub(super) async fn everything_is_kept(fixture: &dyn Fixture) {
    let world = World::new(fixture).await;
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
    let meta = Meta { user: Some("ann".into()), ..with_context(r#"{ "n": 1.50 }"#) };
    let document = Document::new("a.bin", "application/octet-stream", [0, 255, 7]);
    let later = world.add(job().meta(meta).document(document.clone()).run_at(START + Millis::hours(3))).await;
    world.pause_queue("closed").await;
    world.store.register(vec![super::workers::note("w1")]).await.unwrap();
    assert_eq!(world.lease(9).await, [], "all that is in line waits for a limit");

    let Some(world) = reopened(fixture, world).await else { return };
    assert_eq!(world.lease(9).await, [], "caps and buckets are kept");
    assert_eq!(world.store.document(later).await.unwrap(), Some(document));
    assert_eq!(world.listed(super::meta::by_context("n", "1.5")).await, [later]);
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

/// Passes at once for stores that keep nothing.
pub(super) async fn flows_are_kept(fixture: &dyn Fixture) {
    let world = World::new(fixture).await;
    let each = || {
        let each = task("each").for_each("{{ input }}").concurrency(1).retries(0);
        flow([each, task("join").needs(["each"]).with("{{ tasks.each.output }}")])
    };
    world.store.change_flows(vec![FlowChange::Apply(plan(each()))]).await.unwrap();
    let items = world.start_with(each(), "[1,2,3]").await;
    world.run("each[0]", output("10")).await;
    let held = world.take("each[1]").await;

    let recovered = world.start(chain().description("recovered")).await;
    world.run_all(&["a"]).await;
    let old = world.take("b").await;
    world.fail(&old).await;
    world.control(recover(recovered, None)).await;

    let paused = world.start(chain().description("paused").timeout(Millis::hours(1))).await;
    let first = world.lease(9).await.into_iter().find(|leased| leased.task.job == paused);
    world.settle(first.expect("its first task").held(), failed(ErrorClass::Network)).await;
    world.control(Command::Pause(paused)).await;
    let queue = world.add(job()).await;
    world.control(Command::Pause(queue)).await;
    let waiting = world.add(job().after(paused).after(items)).await;
    world.advance(Millis::secs(10));

    let Some(world) = reopened(fixture, world).await else { return };
    assert_eq!(world.settle(old.held(), done()).await, Settled::Stale, "the attempts of before are known");
    world.settle(held.held(), output("20")).await;
    world.run("each[2]", output("30")).await;
    let join = world.take("join").await;
    assert_eq!(join.payload, json("[10,20,30]"));
    world.complete(&join).await;
    let again = world.job(recovered).await;
    assert_eq!((again.tasks[1].counters.attempt, again.recoveries), (2, 1), "it runs");
    assert_eq!(world.control(Command::Resume(paused)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.job(paused).await.deadline, Some(START + Millis::hours(1) + Millis::secs(10)));
    world.run_all(&["a", "b", "c"]).await;
    assert_eq!(world.job(waiting).await.waits_for, []);
    assert_eq!(world.work_off(9).await, [waiting]);
    assert_eq!(world.control(Command::Resume(queue)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.work_off(9).await, [queue]);
    let again = world.start_with(each(), "[]").await;
    let view = world.job(again).await;
    assert_eq!(view.flow.map(|flow| flow.version), Some(1), "the registry is kept");
    assert_eq!(view.tasks[0].usual, Some(Millis(3333)), "and what the past has told");
    super::journal::agrees_with_the_catalog(&world).await;
}

/// Passes at once for stores that keep nothing.
pub(super) async fn what_is_held_goes_back_to_its_line(fixture: &dyn Fixture) {
    let world = World::new(fixture).await;
    let id = world.add(job().limits(limits(&["host:a"]))).await;
    world.control(Command::Pause(id)).await;
    let Some(world) = reopened(fixture, world).await else { return };
    assert_eq!(world.control(Command::Resume(id)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.state(id).await, TaskState::Queued);
    assert_eq!(world.lease_one().await.task.job, id);
}
