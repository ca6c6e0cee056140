//! Examples of taking up again what ended badly: recover and retry.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Beat, Command, Controlled, Settled};
use orchestrator_core::TaskState::{Completed, Failed, Pending, Queued, Running, Skipped};
use orchestrator_core::flow::Flow;
use orchestrator_core::flow::advance::NoRecovery;
use orchestrator_core::{Counters, ErrorClass, JobId, JobState, Key, NewJob, Outcome};
use serde_json::json as value;

/// Two branches and a join.
fn branches() -> Flow {
    let left = task("left").needs(["top"]).with(value!({"top": "{{ tasks.top.output }}"}));
    flow([task("top"), left, task("right").needs(["top"]), task("join").needs(["left", "right"])])
}

/// A job whose left branch failed.
async fn failed_left(world: &World) -> JobId {
    let id = world.start(branches()).await;
    world.run("top", output("1")).await;
    world.run("left", failed(ErrorClass::Permanent)).await;
    world.run("right", output("2")).await;
    assert_eq!(world.states(id).await, [Completed, Failed, Completed, Skipped]);
    id
}

async fn recovered(world: &World, id: JobId, from: Option<&str>) {
    assert_eq!(world.control(recover(id, from)).await, Controlled::Done(JobState::Running));
}

pub(in crate::conformance::examples) async fn only_what_failed_runs_again(world: &World) {
    let id = failed_left(world).await;
    recovered(world, id, None).await;
    assert_eq!(world.states(id).await, [Completed, Queued, Completed, Pending]);
    let job = world.job(id).await;
    assert_eq!((job.state, job.recoveries, job.ended), (JobState::Running, 1, None));
    assert_eq!((world.dead().await, job.tasks[1].history.len()), (vec![], 1), "the record stays");
    let left = world.take("left").await;
    assert_eq!(
        left.counters,
        Counters { attempt: 2, failures: 0, crashes: 0 },
        "counted on, with a clean slate"
    );
    assert_eq!(left.payload, json(r#"{"top":1}"#));
    world.complete(&left).await;
    world.run_all(&["join"]).await;
    let job = world.job(id).await;
    assert_eq!((job.state, job.recoveries), (JobState::Completed, 1));
    assert_eq!(world.task_life(id, 2).await, [(Queued, 0), (Running, 1), (Completed, 1)], "right ran once");
    let left =
        [(Queued, 0), (Running, 1), (Failed, 1), (Pending, 1), (Queued, 1), (Running, 2), (Completed, 2)];
    assert_eq!(world.task_life(id, 1).await, left);
    assert_eq!(world.task_life(id, 3).await[..2], [(Skipped, 0), (Pending, 0)]);
    use JobState as J;
    assert_eq!(
        world.life(id).await,
        [J::Pending, J::Running, J::Failed, J::Recovering, J::Running, J::Completed]
    );
    let line = world.line().await;
    assert_eq!((line.completed, line.failed, line.skipped), (4, 0, 0), "ends that were undone do not count");
}

pub(in crate::conformance::examples) async fn a_task_and_all_behind_it_run_again(world: &World) {
    let id = failed_left(world).await;
    recovered(world, id, Some("top")).await;
    assert_eq!(world.states(id).await, [Queued, Pending, Pending, Pending]);
    assert_eq!(world.named(id, "right").await.output, None);
    world.run("top", output("9")).await;
    assert_eq!(world.named(id, "left").await.input, Some(json(r#"{"top":9}"#)), "with the new output");
    world.run_all(&["left", "right", "join"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
    assert_eq!(world.named(id, "right").await.counters.attempt, 2);
}

pub(in crate::conformance::examples) async fn what_stands_beside_is_left_alone(world: &World) {
    let id = failed_left(world).await;
    assert_eq!(
        world.control(recover(id, Some("join"))).await,
        Controlled::NoRecovery(NoRecovery::Blocked {
            task: "join".to_owned(),
            need: "left".to_owned(),
            state: Failed
        })
    );
    recovered(world, id, Some("left")).await;
    assert_eq!(world.states(id).await, [Completed, Queued, Completed, Pending]);
    assert_eq!(world.control(recover(id, Some("left"))).await, Controlled::Refused(JobState::Running));
}

pub(in crate::conformance::examples) async fn an_unknown_task_is_refused(world: &World) {
    let id = failed_left(world).await;
    let before = world.job(id).await;
    assert_eq!(world.control(recover(id, Some("lef"))).await, Controlled::NoSuchTask);
    assert_eq!(world.job(id).await, before, "and nothing changes");
}

pub(in crate::conformance::examples) async fn recoveries_are_capped(world: &World) {
    let id = world.start(flow([task("a")]).max_recoveries(2)).await;
    for _ in 0..2 {
        world.run("a", failed(ErrorClass::Permanent)).await;
        assert!(world.job(id).await.is_recoverable());
        recovered(world, id, None).await;
    }
    world.run("a", failed(ErrorClass::Permanent)).await;
    let job = world.job(id).await;
    assert_eq!((job.recoveries, job.is_recoverable()), (2, false));
    let exhausted = Controlled::NoRecovery(NoRecovery::Exhausted(2));
    assert_eq!(world.control(recover(id, None)).await, exhausted);
    assert_eq!(world.control(recover(id, Some("a"))).await, exhausted);
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Done(JobState::Running), "not counted");
    assert_eq!(world.job(id).await.recoveries, 2);
    assert_eq!(world.take("a").await.counters.attempt, 4);
}

pub(in crate::conformance::examples) async fn a_retry_is_a_recovery_from_what_failed(world: &World) {
    let id = failed_left(world).await;
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.states(id).await, [Completed, Queued, Completed, Pending]);
    assert_eq!(world.job(id).await.recoveries, 0);
    world.run_all(&["left", "join"]).await;
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Refused(JobState::Completed));
}

pub(in crate::conformance::examples) async fn attempts_of_before_stay_stale(world: &World) {
    let id = world.start(chain()).await;
    let old = world.take("a").await;
    world.complete(&old).await;
    let b = world.take("b").await;
    world.fail(&b).await;
    recovered(world, id, Some("a")).await;
    for held in [old.held(), b.held()] {
        assert_eq!(world.extend(held, TTL).await, Beat::Lost);
        assert_eq!(world.settle(held, done()).await, Settled::Stale);
    }
    assert_eq!(world.states(id).await, [Queued, Pending, Pending]);
    let again = world.take("a").await;
    assert_eq!(again.counters.attempt, 2, "a number is never used again");
    assert_eq!(world.settle(old.held(), done()).await, Settled::Stale, "the old one cannot end the new");
    world.settle(again.held(), Outcome::Released).await;
    world.run_all(&["a"]).await;
    assert_eq!(world.take("b").await.counters.attempt, 2);
    assert_eq!(world.settle(b.held(), done()).await, Settled::Stale);
}

pub(in crate::conformance::examples) async fn attempts_count_on_over_recoveries(world: &World) {
    let id = world.start(flow([task("a"), task("b").needs(["a"])])).await;
    world.run_all(&["a"]).await;
    world.run("b", failed(ErrorClass::Permanent)).await;
    recovered(world, id, Some("a")).await;
    world.run("a", failed(ErrorClass::Permanent)).await;
    assert_eq!(world.named(id, "b").await.counters, Counters { attempt: 1, failures: 0, crashes: 0 });
    recovered(world, id, None).await;
    world.run_all(&["a"]).await;
    let b = world.take("b").await;
    assert_eq!(b.counters.attempt, 2, "though it was reset twice, and skipped in between");
    assert_eq!(world.task_life(id, 1).await.last(), Some(&(Running, 2)));
}

pub(in crate::conformance::examples) async fn a_recovery_of_an_old_key_is_superseded(world: &World) {
    let new = || NewJob::of_flow(plan(chain())).key(Key::new("k"));
    let old = world.add(new()).await;
    world.run("a", failed(ErrorClass::Permanent)).await;
    let newer = world.add(new()).await;
    for command in [recover(old, None), recover(old, Some("a")), Command::Retry(old)] {
        assert_eq!(world.control(command.clone()).await, Controlled::Superseded(newer), "{command:?}");
    }
    let dead = world.dead().await;
    assert_eq!(world.control(Command::Requeue(dead[0].task)).await, Controlled::Superseded(newer));
    assert_eq!(world.job(old).await.recoveries, 0);
}

pub(in crate::conformance::examples) async fn a_queue_has_no_recoveries(world: &World) {
    let id = world.add(job()).await;
    world.fail(&world.lease_one().await).await;
    let view = world.job(id).await;
    assert_eq!((view.recoveries, view.max_recoveries, view.is_recoverable()), (0, 0, false));
    assert_eq!(world.control(recover(id, None)).await, Controlled::Refused(JobState::Failed));
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Done(JobState::Running));
}

pub(in crate::conformance::examples) async fn a_recovery_may_end_at_once(world: &World) {
    let id = world.start_with(flow([task("a").with("{{ input.missing }}")]), "{}").await;
    assert_eq!(world.control(recover(id, None)).await, Controlled::Done(JobState::Failed));
    let task = world.named(id, "a").await;
    assert_eq!((task.state, task.history.len(), world.dead().await.len()), (Failed, 2, 1));
    use JobState as J;
    assert_eq!(world.life(id).await, [J::Pending, J::Failed, J::Recovering, J::Running, J::Failed]);
}
