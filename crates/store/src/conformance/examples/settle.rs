//! Examples of `settle`: every outcome.

use crate::conformance::world::*;
use crate::verbs::{Settled, Settlement};
use crate::views::{AttemptEnd, AttemptRecord};
use orchestrator_core::outcome::Leg;
use orchestrator_core::{
    Counters, DeadReason, ErrorClass, Failure, JobState, LimitRule, Limits, Millis, NewJob, Outcome,
    RetryPolicy, TaskState,
};
use std::sync::Arc;

fn ended(state: TaskState, dead: Option<DeadReason>) -> Settled {
    Settled::Applied { state, due: None, dead, job_ended: state.is_terminal() }
}

pub(super) async fn completed(world: &World) {
    let id = world.add(job()).await;
    let held = world.lease_one().await.held();
    world.advance(Millis(7));
    let output = json(r#"{ "found": ["ü", 1] }"#);
    let answer = world.settle(held, Outcome::Completed(output.clone())).await;
    assert_eq!(answer, ended(TaskState::Completed, None));
    let job = world.job(id).await;
    assert_eq!((job.state, job.task().state), (JobState::Completed, TaskState::Completed));
    assert_eq!(job.task().output.as_ref().map(|json| json.as_str()), Some(output.as_str()), "to the letter");
    assert_eq!((job.task().ended, job.task().dead), (Some(START + Millis(7)), None));
    assert_eq!((&job.task().worker, job.task().expires), (&None, None));
    assert_eq!(job.task().history, []);
}

pub(super) async fn skipped(world: &World) {
    let id = world.add(job()).await;
    let held = world.lease_one().await.held();
    let answer = world.settle(held, Outcome::Skipped(json("\"already there\""))).await;
    assert_eq!(answer, ended(TaskState::Skipped, None));
    let job = world.job(id).await;
    assert_eq!((job.state, job.task().state), (JobState::Completed, TaskState::Skipped));
    assert_eq!(job.task().output, Some(json("\"already there\"")));
}

pub(super) async fn a_passing_error_is_retried(world: &World) {
    let id = world.add(job()).await;
    let leased = world.lease_one().await;
    let due = START + Millis::secs(1);
    let answer = world.settle(leased.held(), failed(ErrorClass::Network)).await;
    assert_eq!(
        answer,
        Settled::Applied { state: TaskState::Retrying, due: Some(due), dead: None, job_ended: false }
    );
    let view = world.job(id).await;
    assert_eq!(
        (view.state, view.task().state, view.task().due),
        (JobState::Running, TaskState::Retrying, Some(due))
    );
    assert_eq!(view.task().counters, Counters { attempt: 1, failures: 1, crashes: 0 });
    let record = AttemptRecord {
        attempt: 1,
        at: START,
        how: AttemptEnd::Failed(ErrorClass::Network),
        message: "a network error".to_owned(),
    };
    assert_eq!(view.task().history, [record]);
    assert_eq!(world.grant(1).await.next_at, Some(due));
    world.advance(Millis::secs(1));
    let again = world.lease_one().await;
    assert_eq!(again.counters, Counters { attempt: 2, failures: 1, crashes: 0 });
    world.complete(&again).await;
}

pub(super) async fn retries_run_out(world: &World) {
    let spec = spec().with_retry(RetryPolicy { jitter_percent: 0, ..RetryPolicy::with_retries(2) });
    let id = world.add(NewJob::with_spec(Arc::new(spec))).await;
    for wait in [1, 2] {
        let held = world.lease_one().await.held();
        let due = world.now() + Millis::secs(wait);
        let answer = world.settle(held, failed(ErrorClass::Unavailable)).await;
        assert_eq!(
            answer,
            Settled::Applied { state: TaskState::Retrying, due: Some(due), dead: None, job_ended: false }
        );
        world.advance(Millis::secs(wait));
    }
    let held = world.lease_one().await.held();
    let answer = world.settle(held, failed(ErrorClass::Timeout)).await;
    assert_eq!(answer, ended(TaskState::Failed, Some(DeadReason::Exhausted)));
    let job = world.job(id).await;
    assert_eq!((job.state, job.task().dead), (JobState::Failed, Some(DeadReason::Exhausted)));
    assert_eq!(job.task().counters, Counters { attempt: 3, failures: 3, crashes: 0 });
    assert_eq!(job.task().history.len(), 3);
    let dead = world.dead().await;
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].task.job, dead[0].reason, &*dead[0].message),
        (id, DeadReason::Exhausted, "a timeout error")
    );
    assert_eq!((dead[0].at, dead[0].counters), (world.now(), job.task().counters));
}

pub(super) async fn a_final_error_is_not_retried(world: &World) {
    let id = world.add(job()).await;
    let held = world.lease_one().await.held();
    let answer = world.settle(held, failed(ErrorClass::NotFound)).await;
    assert_eq!(answer, ended(TaskState::Failed, Some(DeadReason::Final)));
    let task = world.task(id).await;
    assert_eq!((task.ended, task.output), (Some(START), None));
    assert_eq!(world.lease(1).await, []);
}

pub(super) async fn retry_after_is_kept(world: &World) {
    world.add(job()).await;
    let held = world.lease_one().await.held();
    let failure = Failure::new(ErrorClass::RateLimited, "slow down").retry_after(Millis::mins(10));
    let answer = world.settle(held, Outcome::Failed(failure)).await;
    let due = Some(START + Millis::mins(10));
    assert_eq!(answer, Settled::Applied { state: TaskState::Retrying, due, dead: None, job_ended: false });
}

pub(super) async fn released_costs_nothing(world: &World) {
    let id = world.add(job().limits(limits(&["host:a"]))).await;
    let held = world.lease_one().await.held();
    let answer = world.settle(held, Outcome::Released).await;
    assert_eq!(answer, ended(TaskState::Queued, None));
    let job = world.job(id).await;
    assert_eq!(job.task().counters, Counters { attempt: 1, failures: 0, crashes: 0 });
    assert_eq!(
        (job.state, job.task().state, job.task().history.len()),
        (JobState::Running, TaskState::Queued, 0)
    );
    assert_eq!(world.running("host:a").await, 0);
    assert_eq!(world.lease_one().await.counters.attempt, 2);
}

fn leg(delay: Millis, limits: Limits) -> Outcome {
    Outcome::Continue(Leg { checkpoint: json(r#"{"tried":1}"#), limits, delay })
}

pub(super) async fn continue_goes_on_at_once(world: &World) {
    world.limit("host:*", Some(LimitRule::at_most(1))).await;
    let id = world.add(job().limits(limits(&["host:a"]))).await;
    world.add(job().limits(limits(&["host:b"]))).await;
    let leased = world.lease(2).await;
    let answer = world.settle(leased[0].held(), leg(Millis(0), limits(&["host:b", "res:x"]))).await;
    assert_eq!(answer, ended(TaskState::Queued, None));
    let view = world.job(id).await;
    assert_eq!(view.task().checkpoint, Some(json(r#"{"tried":1}"#)));
    assert_eq!(view.task().limits, limits(&["host:b", "res:x"]));
    assert_eq!(view.task().counters, Counters { attempt: 1, failures: 0, crashes: 0 });
    assert_eq!(world.lease(1).await, [], "the next leg runs under its own limits, and host b is full");
    world.complete(&leased[1]).await;
    let next = world.lease_one().await;
    assert_eq!((next.task.job, next.counters.attempt), (id, 2));
    assert_eq!(next.checkpoint, Some(json(r#"{"tried":1}"#)));
    assert_eq!(
        (world.running("host:a").await, world.running("host:b").await, world.running("res:x").await),
        (0, 1, 1)
    );
}

pub(super) async fn continue_can_wait(world: &World) {
    let id = world.add(job()).await;
    let held = world.lease_one().await.held();
    let due = Some(START + Millis(50));
    let answer = world.settle(held, leg(Millis(50), Limits::none())).await;
    assert_eq!(answer, Settled::Applied { state: TaskState::Queued, due, dead: None, job_ended: false });
    let line = world.line().await;
    assert_eq!((line.scheduled, line.retrying), (1, 0), "no failure, so it is not retrying");
    assert_eq!(world.lease(1).await, []);
    world.advance(Millis(50));
    let leased = world.lease_one().await;
    world.settle(leased.held(), failed(ErrorClass::Network)).await;
    world.advance(Millis::secs(1));
    let leased = world.lease_one().await;
    let answer = world.settle(leased.held(), leg(Millis(50), Limits::none())).await;
    assert_eq!(answer.state(), Some(TaskState::Retrying), "after a failure a waiting task is retrying");
    assert_eq!(world.state(id).await, TaskState::Retrying);
}

pub(super) async fn a_failure_keeps_the_checkpoint(world: &World) {
    world.add(job()).await;
    let held = world.lease_one().await.held();
    world.settle(held, leg(Millis(0), limits(&["host:z"]))).await;
    let held = world.lease_one().await.held();
    world.settle(held, failed(ErrorClass::Network)).await;
    world.advance(Millis::secs(1));
    let next = world.lease_one().await;
    assert_eq!(next.checkpoint, Some(json(r#"{"tried":1}"#)));
    assert_eq!(next.limits, limits(&["host:z"]));
}

pub(super) async fn one_batch_ends_many(world: &World) {
    world.store.submit(vec![job(); 4]).await.unwrap();
    let leased = world.lease(4).await;
    let outcomes = [done(), failed(ErrorClass::Permanent), Outcome::Released, failed(ErrorClass::Transient)];
    let mut batch: Vec<_> = leased
        .iter()
        .zip(outcomes)
        .map(|(leased, outcome)| Settlement { held: leased.held(), outcome, jitter: 0.0 })
        .collect();
    batch.push(batch[0].clone());
    let answers = world.store.settle(batch).await.unwrap();
    let states: Vec<_> = answers.iter().map(Settled::state).collect();
    use TaskState::*;
    assert_eq!(states, [Some(Completed), Some(Failed), Some(Queued), Some(Retrying), None]);
}
