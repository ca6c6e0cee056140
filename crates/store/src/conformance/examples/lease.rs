//! Examples of `lease`: what is handed out, and to whom.

use crate::conformance::world::*;
use crate::verbs::Leased;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{
    Counters, JobState, Key, Millis, NewJob, Outcome, TaskId, TaskSpec, TaskState, WorkerId,
};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

pub(super) async fn a_lease_tells_all(world: &World) {
    let spec = Arc::new(spec().with_timeout(Some(Millis::mins(2))));
    let new = NewJob::with_spec(spec.clone()).tenant("acme").key(Key::new("k")).payload(json("[1]"));
    let id = world.add(new.limits(limits(&["host:a"]))).await;
    let grant = world.grant(1).await;
    let expected = Leased {
        task: TaskId::only(id),
        name: "main".into(),
        flow: None,
        counters: Counters { attempt: 1, ..Counters::default() },
        spec,
        tenant: "acme".into(),
        key: Some("k".into()),
        payload: json("[1]"),
        checkpoint: None,
        meta: Default::default(),
        limits: limits(&["host:a"]),
        expires: START + TTL,
        times_out: Some(START + Millis::mins(2)),
    };
    assert_eq!(grant.tasks, [expected]);
    let job = world.job(id).await;
    assert_eq!((job.state, job.task().state), (JobState::Running, TaskState::Running));
    assert_eq!((&job.task().worker, job.task().expires), (&Some(WorkerId::new("w1")), Some(START + TTL)));
}

pub(super) async fn slots_bound_a_grant(world: &World) {
    world.store.submit(vec![job(); 5]).await.unwrap();
    assert_eq!(world.lease(2).await.len(), 2);
    assert_eq!(world.lease(10).await.len(), 3);
    let grant = world.grant(10).await;
    assert_eq!((grant.tasks, grant.next_at), (vec![], None));
}

pub(super) async fn only_asked_lines_are_served(world: &World) {
    let on = |queue: &str, handler: &str| NewJob::with_spec(Arc::new(TaskSpec::new(handler).on_queue(queue)));
    let mut ids = vec![];
    for (queue, handler) in [("q1", "a"), ("q1", "b"), ("q2", "a"), ("q2", "b")] {
        ids.push(world.add(on(queue, handler)).await);
    }
    for (queues, handlers) in
        [(&["q3"][..], &["a", "b"][..]), (&["q1"], &["c"]), (&[], &["a"]), (&["q1"], &[])]
    {
        let grant = world.store.lease(ask_for(queues, handlers, 9)).await.unwrap();
        assert_eq!(grant.tasks, [], "{queues:?} {handlers:?}");
    }
    let jobs = |tasks: Vec<Leased>| tasks.into_iter().map(|leased| leased.task.job).collect::<Vec<_>>();
    let one = world.store.lease(ask_for(&["q2"], &["a", "c"], 9)).await.unwrap();
    assert_eq!(jobs(one.tasks), [ids[2]]);
    let mut rest = jobs(world.store.lease(ask_for(&["q1", "q2"], &["a", "b"], 9)).await.unwrap().tasks);
    rest.sort();
    assert_eq!(rest, [ids[0], ids[1], ids[3]]);
}

pub(super) async fn a_leased_task_is_not_leased_again(world: &World) {
    world.add(job()).await;
    let first = world.lease_one().await;
    assert_eq!(world.lease(5).await, []);
    world.advance(Millis::hours(1));
    assert_eq!(world.lease(5).await, [], "an overdue lease is held until a sweep ends it");
    assert_eq!(world.state(first.task.job).await, TaskState::Running);
}

pub(super) async fn a_delayed_job_waits_for_its_moment(world: &World) {
    let at = START + Millis::secs(60);
    let id = world.add(job().run_at(at)).await;
    let waiting = world.job(id).await;
    assert_eq!((waiting.task().state, waiting.task().due), (TaskState::Queued, Some(at)));
    assert_eq!(world.line().await.scheduled, 1);
    let grant = world.grant(1).await;
    assert_eq!((grant.tasks.len(), grant.next_at), (0, Some(at)));
    let elsewhere = world.store.lease(ask_for(&[DEFAULT_QUEUE], &["other"], 1)).await.unwrap();
    assert_eq!(elsewhere.next_at, None, "a moment of another line is no hint");
    world.advance(Millis(59_999));
    assert_eq!(world.lease(1).await, []);
    world.advance(Millis(1));
    assert_eq!(world.lease_one().await.task.job, id);
    assert_eq!(world.job(id).await.task().due, None);
}

pub(super) async fn a_moment_in_the_past_is_now(world: &World) {
    let past = world.add(job().run_at(START - Millis::hours(1))).await;
    let now = world.add(job().run_at(START)).await;
    assert_eq!(world.line().await.scheduled, 0);
    assert_eq!(world.work_off(9).await, [past, now]);
}

pub(super) async fn attempts_are_counted(world: &World) {
    let id = world.add(job()).await;
    for attempt in 1..=5 {
        let leased = world.lease_one().await;
        assert_eq!(leased.counters, Counters { attempt, ..Counters::default() });
        world.settle(leased.held(), Outcome::Released).await;
    }
    assert_eq!(world.job(id).await.task().counters.attempt, 5);
}

/// Whoever asks may go away when the answer is already on its way.
pub(super) async fn an_answer_that_nobody_takes_goes_back(world: &World) {
    let id = world.add(job()).await;
    let state = || async { world.task(id).await.state };
    let mut asked = world.store.lease(ask(1));
    let early = std::future::poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await;
    if early.is_pending() {
        until(|| async { state().await == TaskState::Running }).await;
        drop(asked);
        until(|| async { state().await == TaskState::Queued }).await;
        assert_eq!(world.lease_one().await.counters.failures, 0, "it costs nothing");
    }
}

/// Waits for what a store does on its own.
async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    for _ in 0..2000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it does not happen");
}
