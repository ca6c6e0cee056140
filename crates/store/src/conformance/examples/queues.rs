//! Examples of pausing queues.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Beat, QueueChange};
use crate::views::PausedQueue;
use orchestrator_core::order::Priority;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{ErrorClass, JobState, LimitRule, Millis, NewJob, TaskSpec, TaskState};
use std::sync::Arc;

fn on(queue: &str) -> NewJob {
    NewJob::with_spec(Arc::new(spec().on_queue(queue)))
}

pub(super) async fn nothing_of_a_paused_queue_is_handed_out(world: &World) {
    let before = world.add(job()).await;
    world.pause_queue(DEFAULT_QUEUE).await;
    let after = world.add(job().priority(Priority::Critical)).await;
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks, grant.next_at), (vec![], None), "time alone changes nothing");
    world.advance(Millis::hours(1));
    assert_eq!(world.lease(9).await, []);
    for id in [before, after] {
        assert_eq!(world.state(id).await, TaskState::Queued, "it stays in line");
    }
    let line = world.line().await;
    assert_eq!((line.ready + line.parked, line.paused), (2, 0), "a paused queue is not a paused job");
    world.resume_queue(DEFAULT_QUEUE).await;
    assert_eq!(world.lease(9).await.len(), 2);
}

pub(super) async fn what_runs_of_it_may_finish(world: &World) {
    let (id, other) = (world.add(job()).await, world.add(job()).await);
    let leased = world.lease(2).await;
    world.pause_queue(DEFAULT_QUEUE).await;
    assert_eq!(world.extend(leased[0].held(), TTL).await, Beat::Until(world.now() + TTL));
    world.complete(&leased[0]).await;
    world.settle(leased[1].held(), failed(ErrorClass::Network)).await;
    assert_eq!(
        (world.state(id).await, world.state(other).await),
        (TaskState::Completed, TaskState::Retrying)
    );
    world.advance(Millis::mins(1));
    assert_eq!(world.lease(9).await, [], "its next attempt is a new one");
    world.resume_queue(DEFAULT_QUEUE).await;
    assert_eq!(world.lease_one().await.task.job, other);
}

pub(super) async fn a_queue_goes_on_where_it_was(world: &World) {
    let mut ids = vec![];
    for _ in 0..3 {
        ids.push(world.add(job()).await);
    }
    assert_eq!(world.work_off(1).await, ids[..1]);
    world.pause_queue(DEFAULT_QUEUE).await;
    ids.push(world.add(job()).await);
    assert_eq!(world.lease(9).await, []);
    world.resume_queue(DEFAULT_QUEUE).await;
    assert_eq!(world.work_off(9).await, ids[1..], "everybody has the place that it had");
}

pub(super) async fn what_falls_due_meanwhile_waits(world: &World) {
    let id = world.add(job().run_at(START + Millis::secs(5))).await;
    world.pause_queue(DEFAULT_QUEUE).await;
    world.advance(Millis::secs(9));
    assert_eq!(world.lease(9).await, []);
    world.advance(Millis::secs(9));
    assert_eq!(world.lease(9).await, []);
    world.resume_queue(DEFAULT_QUEUE).await;
    assert_eq!(world.lease_one().await.task.job, id);
}

pub(super) async fn tasks_of_flows_wait_too(world: &World) {
    let id = world.start(flow([task("a"), task("b").needs(["a"]).queue("q")])).await;
    world.pause_queue("q").await;
    world.run_all(&["a"]).await;
    let both = ask_for(&[DEFAULT_QUEUE, "q"], &[HANDLER], 9);
    assert_eq!(world.store.lease(both.clone()).await.unwrap().tasks, []);
    assert_eq!(world.job(id).await.state, JobState::Running);
    world.resume_queue("q").await;
    let b = world.store.lease(both).await.unwrap().tasks;
    assert_eq!(b.iter().map(|leased| &*leased.name).collect::<Vec<_>>(), ["b"]);
}

pub(super) async fn what_waits_for_a_limit_waits_on(world: &World) {
    world.limit("host:a", Some(LimitRule::at_most(1))).await;
    let limited = || job().limits(limits(&["host:a"]));
    let (first, second) = (world.add(limited()).await, world.add(limited()).await);
    let leased = world.lease(9).await;
    assert_eq!(leased.iter().map(|leased| leased.task.job).collect::<Vec<_>>(), [first]);
    world.pause_queue(DEFAULT_QUEUE).await;
    world.complete(&leased[0]).await;
    assert_eq!(world.lease(9).await, [], "there is room, but nobody is let in");
    let elsewhere = world.add(on("q").limits(limits(&["host:a"]))).await;
    let other = world.store.lease(ask_for(&["q"], &[HANDLER], 9)).await.unwrap().tasks;
    assert_eq!(
        other.iter().map(|leased| leased.task.job).collect::<Vec<_>>(),
        [elsewhere],
        "the room is free for others"
    );
    world.resume_queue(DEFAULT_QUEUE).await;
    assert_eq!(world.lease(9).await, []);
    world.complete(&other[0]).await;
    assert_eq!(world.lease_one().await.task.job, second);
}

pub(super) async fn pauses_are_listed(world: &World) {
    let paused = async || world.store.paused_queues().await.unwrap();
    assert_eq!(paused().await, []);
    world.pause_queue("b").await;
    world.advance(Millis(7));
    let change = |queue: &str, paused| QueueChange { queue: queue.into(), paused };
    let changes = vec![change("b", true), change("a", true), change("c", true), change("c", false)];
    world.store.set_queues(changes).await.unwrap();
    let since = |queue: &str, ms| PausedQueue { queue: queue.into(), since: START + Millis(ms) };
    assert_eq!(paused().await, [since("a", 7), since("b", 0)], "once more is no news");
    world.resume_queue("b").await;
    world.resume_queue("nobody's").await;
    assert_eq!(paused().await, [since("a", 7)]);
    world.store.set_queues(vec![]).await.unwrap();
}

pub(super) async fn a_resumed_queue_rings_the_bell(world: &World) {
    world.pause_queue(DEFAULT_QUEUE).await;
    world.add(job()).await;
    let bell = world.store.changes();
    let before = *bell.borrow();
    world.resume_queue(DEFAULT_QUEUE).await;
    assert!(*bell.borrow() > before, "who waits for work is told");
}

pub(super) async fn others_are_served_meanwhile(world: &World) {
    world.add(on("closed").priority(Priority::Critical)).await;
    let open = world.add(on("open").priority(Priority::Low)).await;
    let elsewhere = world.add(NewJob::with_spec(Arc::new(TaskSpec::new("other").on_queue("open")))).await;
    world.pause_queue("closed").await;
    let ask = ask_for(&["closed", "open"], &[HANDLER, "other"], 1);
    let mut served = vec![];
    while let Some(leased) = world.store.lease(ask.clone()).await.unwrap().tasks.pop() {
        world.complete(&leased).await;
        served.push(leased.task.job);
    }
    assert_eq!(served, [elsewhere, open]);
    world.resume_queue("closed").await;
    assert_eq!(world.store.lease(ask).await.unwrap().tasks.len(), 1);
}
