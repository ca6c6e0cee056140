//! Examples of `control`.

use crate::conformance::world::*;
use crate::verbs::{Command, Controlled, Wish};
use orchestrator_core::outcome::Leg;
use orchestrator_core::{Counters, ErrorClass, JobId, JobState, Key, Millis, Outcome, TaskId, TaskState};

pub(super) async fn retry_starts_over(world: &World) {
    let id = world.add(job()).await;
    world.settle(world.lease_one().await.held(), failed(ErrorClass::Network)).await;
    world.advance(Millis::secs(1));
    world.fail(&world.lease_one().await).await;
    assert_eq!(world.line().await.failed, 1);
    world.advance(Millis::secs(1));
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Done(JobState::Running));
    let view = world.job(id).await;
    assert_eq!((view.task().state, view.task().dead, view.task().ended), (TaskState::Queued, None, None));
    assert_eq!(view.task().counters, Counters { attempt: 2, failures: 0, crashes: 0 });
    assert_eq!(view.task().history.len(), 2, "the record stays");
    assert_eq!(world.dead().await, []);
    assert_eq!(world.line().await.failed, 0);
    let leased = world.lease_one().await;
    assert_eq!(leased.counters, Counters { attempt: 3, failures: 0, crashes: 0 });
    world.complete(&leased).await;
}

pub(super) async fn retry_restores_the_submitted_limits(world: &World) {
    let id = world.add(job().limits(limits(&["host:a"]))).await;
    let leg = Leg { checkpoint: json("1"), limits: limits(&["host:b"]), delay: Millis(0) };
    world.settle(world.lease_one().await.held(), Outcome::Continue(leg)).await;
    world.fail(&world.lease_one().await).await;
    let view = world.job(id).await;
    assert_eq!(view.task().limits, limits(&["host:b"]), "the limits under which it ran last");
    world.control(Command::Retry(id)).await;
    let task = world.task(id).await;
    assert_eq!((task.checkpoint, task.limits), (None, limits(&["host:a"])));
    let leased = world.lease_one().await;
    assert_eq!((leased.checkpoint, leased.limits), (None, limits(&["host:a"])));
}

pub(super) async fn only_what_failed_is_retried(world: &World) {
    let id = world.add(job()).await;
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Refused(JobState::Pending));
    let leased = world.lease_one().await;
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Refused(JobState::Running));
    world.complete(&leased).await;
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Refused(JobState::Completed));
    let cancelled = world.add(job()).await;
    world.control(Command::Cancel(cancelled)).await;
    assert_eq!(world.control(Command::Retry(cancelled)).await, Controlled::Refused(JobState::Cancelled));
}

pub(super) async fn a_retry_is_superseded(world: &World) {
    let old = world.add(job().key(Key::new("k"))).await;
    world.fail(&world.lease_one().await).await;
    let new = world.add(job().key(Key::new("k"))).await;
    assert_eq!(world.control(Command::Retry(old)).await, Controlled::Superseded(new));
    world.fail(&world.lease_one().await).await;
    assert_eq!(
        world.control(Command::Retry(old)).await,
        Controlled::Superseded(new),
        "also when both failed"
    );
    assert_eq!(world.control(Command::Retry(new)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.state(old).await, TaskState::Failed);
}

pub(super) async fn cancel_ends_any_live_job(world: &World) {
    let running = world.add(job().limits(limits(&["host:a"]))).await;
    let leased = world.lease_one().await;
    let retrying = world.add(job()).await;
    world.settle(world.lease_one().await.held(), failed(ErrorClass::Network)).await;
    let queued = world.add(job()).await;
    let delayed = world.add(job().run_at(START + Millis::hours(1))).await;
    let all = [running, retrying, queued, delayed];
    let answers = world.store.control(all.map(|id| Command::Cancel(id).into()).to_vec()).await.unwrap();
    assert_eq!(answers, vec![Controlled::Done(JobState::Cancelled); 4]);
    for id in all {
        let view = world.job(id).await;
        assert_eq!((view.state, view.task().state), (JobState::Cancelled, TaskState::Cancelled));
        assert_eq!((view.task().ended, view.task().due, &view.task().worker), (Some(START), None, &None));
    }
    assert_eq!(world.running("host:a").await, 0);
    assert_eq!(
        world.settle(leased.held(), done()).await.state(),
        None,
        "no completion after an acked cancel"
    );
    world.advance(Millis::hours(2));
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at), (0, None));
    assert_eq!(world.sweep(9).await.ended, []);
    assert_eq!(world.line().await.cancelled, 4);
}

pub(super) async fn an_ended_job_is_not_cancelled(world: &World) {
    let done = world.add(job()).await;
    world.complete(&world.lease_one().await).await;
    let failed = world.add(job()).await;
    world.fail(&world.lease_one().await).await;
    assert_eq!(world.control(Command::Cancel(done)).await, Controlled::Refused(JobState::Completed));
    assert_eq!(world.control(Command::Cancel(failed)).await, Controlled::Refused(JobState::Failed));
    let live = world.add(job()).await;
    let twice = world.store.control(vec![Command::Cancel(live).into(); 2]).await.unwrap();
    assert_eq!(twice, [Controlled::Done(JobState::Cancelled), Controlled::Refused(JobState::Cancelled)]);
}

pub(super) async fn unknown_jobs_are_not_found(world: &World) {
    let unknown = JobId::from_parts(START, 0xbad);
    let wishes = vec![
        Command::Retry(unknown).into(),
        Command::Cancel(unknown).into(),
        Wish::expecting(Command::Cancel(unknown), JobState::Running),
    ];
    let answers = world.store.control(wishes).await.unwrap();
    assert_eq!(answers, vec![Controlled::NotFound; 3]);
}

pub(super) async fn what_has_moved_on_is_left_alone(world: &World) {
    let id = world.add(job()).await;
    let cancel = |state| Wish::expecting(Command::Cancel(id), state);
    assert_eq!(world.wish(cancel(JobState::Running)).await, Controlled::Changed(JobState::Pending));
    let leased = world.lease_one().await;
    assert_eq!(world.wish(cancel(JobState::Pending)).await, Controlled::Changed(JobState::Running));
    let retry = Wish::expecting(Command::Retry(id), JobState::Failed);
    assert_eq!(
        world.wish(retry).await,
        Controlled::Changed(JobState::Running),
        "that comes before a refusal"
    );
    let dead = TaskId { job: id, index: 7 };
    let discard = Wish::expecting(Command::Discard(dead), JobState::Failed);
    assert_eq!(world.wish(discard).await, Controlled::Changed(JobState::Running), "and before the task");
    world.complete(&leased).await;
    assert_eq!(world.wish(cancel(JobState::Running)).await, Controlled::Changed(JobState::Completed));
    assert_eq!(world.wish(cancel(JobState::Completed)).await, Controlled::Refused(JobState::Completed));
    assert_eq!(world.job(id).await.state, JobState::Completed);
}

pub(super) async fn an_expectation_that_holds_is_no_hindrance(world: &World) {
    let flow = world.start(crate::conformance::flows::chain()).await;
    let pause = Wish::expecting(Command::Pause(flow), JobState::Pending);
    let resume = |state| Wish::expecting(Command::Resume(flow), state);
    let cancel = Wish::expecting(Command::Cancel(flow), JobState::Running);
    let wishes = vec![pause, resume(JobState::Running), resume(JobState::Paused), cancel];
    let answers = world.store.control(wishes).await.unwrap();
    let expected = [
        Controlled::Done(JobState::Paused),
        Controlled::Changed(JobState::Paused),
        Controlled::Done(JobState::Running),
        Controlled::Done(JobState::Cancelled),
    ];
    assert_eq!(answers, expected, "each sees what those before it have done");
}
