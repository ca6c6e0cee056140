//! Examples of joins: a task that needs several, under each rule.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use orchestrator_core::TaskState::{Completed, Failed, Pending, Queued, Running, Skipped};
use orchestrator_core::flow::{Flow, JoinRule};
use orchestrator_core::{ErrorClass, JobState};
use serde_json::json as value;

fn diamond() -> Flow {
    let join = task("join").needs(["left", "right"]);
    let join = join.with(value!(["{{ tasks.left.output }}", "{{ tasks.right.output }}"]));
    flow([task("top"), task("left").needs(["top"]), task("right").needs(["top"]), join])
}

pub(in crate::conformance::examples) async fn a_diamond_joins_once(world: &World) {
    for swapped in [false, true] {
        let id = world.start(diamond()).await;
        world.run("top", output("0")).await;
        assert_eq!(world.states(id).await, [Completed, Queued, Queued, Pending]);
        let mut sides = world.lease(9).await;
        let names: Vec<_> = sides.iter().map(|leased| leased.name.to_string()).collect();
        assert_eq!(names, ["left", "right"], "both may run at once");
        if swapped {
            sides.reverse();
        }
        let result = |name: &str| output(if name == "left" { "1" } else { "2" });
        world.settle(sides[0].held(), result(&sides[0].name)).await;
        assert_eq!(world.states(id).await[3], Pending, "a join waits for all");
        world.settle(sides[1].held(), result(&sides[1].name)).await;
        let join = world.take("join").await;
        assert_eq!(join.payload, json("[1,2]"));
        world.complete(&join).await;
        assert_eq!(world.task_life(id, 3).await, [(Queued, 0), (Running, 1), (Completed, 1)], "once");
        assert_eq!(world.job_state(id).await, JobState::Completed);
    }
}

/// `a` and `b`, and a task that needs both under a rule.
fn joined(rule: JoinRule) -> Flow {
    flow([task("a"), task("b"), task("join").needs(["a", "b"]).join(rule)])
}

/// Runs `a` to a good end and `b` to a bad one.
async fn one_fails(world: &World, rule: JoinRule) -> orchestrator_core::JobId {
    let id = world.start(joined(rule)).await;
    world.run("a", done()).await;
    world.run("b", failed(ErrorClass::Permanent)).await;
    id
}

pub(in crate::conformance::examples) async fn by_default_all_must_have_completed(world: &World) {
    let id = one_fails(world, JoinRule::AllCompleted).await;
    assert_eq!(world.states(id).await, [Completed, Failed, Skipped]);
    assert_eq!(world.job_state(id).await, JobState::Failed);
}

pub(in crate::conformance::examples) async fn a_rule_may_take_any_end(world: &World) {
    let id = one_fails(world, JoinRule::AllDone).await;
    world.run_all(&["join"]).await;
    assert_eq!(world.states(id).await, [Completed, Failed, Completed]);
    assert_eq!(world.job_state(id).await, JobState::Failed, "a task failed, whatever ran after it");
}

pub(in crate::conformance::examples) async fn a_rule_may_want_a_failure(world: &World) {
    let id = one_fails(world, JoinRule::AnyFailed).await;
    assert_eq!(world.job_state(id).await, JobState::Running, "the clean-up is still to run");
    world.run_all(&["join"]).await;
    assert_eq!(world.states(id).await, [Completed, Failed, Completed]);
    let id = world.start(joined(JoinRule::AnyFailed)).await;
    world.run_all(&["a", "b"]).await;
    assert_eq!(world.states(id).await, [Completed, Completed, Skipped]);
    assert_eq!(world.job_state(id).await, JobState::Completed, "what is not needed is no failure");
}

pub(in crate::conformance::examples) async fn a_failure_is_found_through_what_it_blocked(world: &World) {
    let cleanup = task("cleanup").needs(["b"]).join(JoinRule::AnyFailed);
    let id = world.start(flow([task("a"), task("b").needs(["a"]), cleanup])).await;
    world.run("a", failed(ErrorClass::Permanent)).await;
    assert_eq!(world.states(id).await, [Failed, Skipped, Queued]);
    let leased = world.take("cleanup").await;
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Running], "it has not ended yet");
    world.complete(&leased).await;
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Running, JobState::Failed]);
}

pub(in crate::conformance::examples) async fn a_cleanup_sees_what_went_wrong(world: &World) {
    let about = value!({"state": "{{ tasks.a.state }}", "error": "{{ tasks.a.error }}"});
    let cleanup = task("cleanup").needs(["a"]).join(JoinRule::AnyFailed).with(about);
    world.start(flow([task("a"), cleanup])).await;
    let leased = world.take("a").await;
    world.settle(leased.held(), failed(ErrorClass::Permanent)).await;
    let seen = world.take("cleanup").await.payload.value();
    assert_eq!(seen, value!({"state": "failed", "error": "a permanent error"}));
}
