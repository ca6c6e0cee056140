//! Examples of `expired`: attempts that the clock ends.

use crate::conformance::world::*;
use crate::verbs::{Beat, Settled};
use crate::views::{AttemptEnd, AttemptRecord};
use orchestrator_core::{
    Counters, DeadReason, ErrorClass, JobId, JobState, Millis, NewJob, TaskSpec, TaskState,
};
use std::sync::Arc;

fn with(spec: TaskSpec) -> NewJob {
    NewJob::with_spec(Arc::new(spec))
}

pub(super) async fn nothing_is_overdue_too_early(world: &World) {
    world.add(job()).await;
    world.lease_one().await;
    world.advance(Millis(TTL.0 - 1));
    let swept = world.sweep(9).await;
    assert_eq!((swept.ended, swept.more), (vec![], false));
    world.advance(Millis(1));
    assert_eq!(world.sweep(9).await.ended.len(), 1, "a lease holds up to its expiry, not beyond");
}

pub(super) async fn a_vanished_worker(world: &World) {
    let id = world.add(job().limits(limits(&["host:a"]))).await;
    let leased = world.lease_one().await;
    world.advance(TTL);
    let swept = world.sweep(9).await;
    let requeued = Settled::Applied { state: TaskState::Queued, due: None, dead: None, job_ended: false };
    assert_eq!((swept.ended, swept.more), (vec![(leased.held(), requeued)], false));
    let view = world.job(id).await;
    assert_eq!(view.task().counters, Counters { attempt: 1, failures: 0, crashes: 1 });
    let message = "the worker vanished: its lease ran out".to_owned();
    assert_eq!(
        view.task().history,
        [AttemptRecord { attempt: 1, at: START + TTL, how: AttemptEnd::Lost, message }]
    );
    assert_eq!((&view.task().worker, world.running("host:a").await), (&None, 0));
    assert_eq!(world.lease_one().await.counters.attempt, 2);
}

pub(super) async fn a_slow_attempt(world: &World) {
    let id = world.add(with(spec().with_timeout(Some(Millis::secs(20))))).await;
    let leased = world.lease_one().await;
    assert_eq!(leased.times_out, Some(START + Millis::secs(20)));
    world.advance(Millis::secs(20));
    let swept = world.sweep(9).await;
    let due = Some(world.now() + Millis::secs(1));
    let retried = Settled::Applied { state: TaskState::Retrying, due, dead: None, job_ended: false };
    assert_eq!(swept.ended, [(leased.held(), retried)]);
    let view = world.job(id).await;
    assert_eq!(view.task().counters, Counters { attempt: 1, failures: 1, crashes: 0 });
    assert_eq!(view.task().history[0].how, AttemptEnd::Failed(ErrorClass::Timeout));
    assert_eq!(view.task().history[0].message, "the attempt took longer than 20s");
}

pub(super) async fn what_comes_first_decides(world: &World) {
    let same = world.add(with(spec().with_timeout(Some(TTL)))).await;
    let later = world.add(with(spec().with_timeout(Some(Millis(TTL.0 + 1))))).await;
    let never = world.add(with(spec().with_timeout(None))).await;
    world.lease(3).await;
    world.advance(Millis::hours(1));
    assert_eq!(world.sweep(9).await.ended.len(), 3);
    assert_eq!(world.job(same).await.task().history[0].how, AttemptEnd::Failed(ErrorClass::Timeout));
    assert_eq!(world.job(later).await.task().history[0].how, AttemptEnd::Lost, "its lease ran out before");
    assert_eq!(world.job(never).await.task().history[0].how, AttemptEnd::Lost);
}

pub(super) async fn vanishing_workers_make_a_poison(world: &World) {
    let id = world.add(with(TaskSpec { max_crashes: 2, ..spec() })).await;
    world.lease_one().await;
    world.advance(TTL);
    assert_eq!(world.sweep(9).await.ended[0].1.state(), Some(TaskState::Queued));
    let second = world.lease_one().await;
    world.advance(TTL);
    let swept = world.sweep(9).await;
    let poison = Settled::Applied {
        state: TaskState::Failed,
        due: None,
        dead: Some(DeadReason::Poison),
        job_ended: true,
    };
    assert_eq!(swept.ended, [(second.held(), poison)]);
    let view = world.job(id).await;
    assert_eq!((view.state, view.task().dead), (JobState::Failed, Some(DeadReason::Poison)));
    assert_eq!(view.task().counters, Counters { attempt: 2, failures: 0, crashes: 2 });
    assert_eq!(world.lease(1).await, []);
    let dead = world.dead().await;
    assert_eq!((dead[0].task.job, &*dead[0].message), (id, "the worker vanished: its lease ran out"));
}

pub(super) async fn a_sweep_pages_through_all(world: &World) {
    let mut ids: Vec<JobId> = vec![];
    for _ in 0..5 {
        ids.push(world.add(with(TaskSpec { max_crashes: 1, ..spec() })).await);
        world.lease_one().await;
        world.advance(Millis(1));
    }
    let fresh = world.add(job()).await;
    world.advance(TTL);
    world.lease_one().await;
    let mut swept = vec![];
    loop {
        let page = world.sweep(1).await;
        assert!(page.ended.len() <= 1, "at most the limit");
        swept.extend(page.ended.iter().map(|(held, _)| held.task.job));
        assert_eq!(page.more, swept.len() < ids.len(), "after {} of {}", swept.len(), ids.len());
        if !page.more {
            break;
        }
    }
    assert_eq!(swept, ids, "the longest overdue first, each once");
    assert_eq!(world.state(fresh).await, TaskState::Running);
}

pub(super) async fn heartbeats_do_not_stop_the_timeout(world: &World) {
    world.add(with(spec().with_timeout(Some(Millis::secs(50))))).await;
    let held = world.lease_one().await.held();
    for _ in 0..5 {
        world.advance(Millis::secs(10));
        assert_eq!(world.extend(held, TTL).await, Beat::Until(world.now() + TTL));
    }
    let swept = world.sweep(9).await;
    assert_eq!(swept.ended[0].1.state(), Some(TaskState::Retrying), "a timeout is a failure, not a crash");
}
