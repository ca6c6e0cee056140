//! Examples of tasks without which a flow goes on.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::Settled;
use crate::views::AttemptEnd;
use orchestrator_core::TaskState::{Completed, Queued, Retrying, Skipped};
use orchestrator_core::flow::Flow;
use orchestrator_core::{ErrorClass, JobState, Millis, Outcome};
use serde_json::json as value;

fn with_extra() -> Flow {
    let after = task("after").needs(["extra"]).with(value!({"extra": "{{ tasks.extra.output }}"}));
    flow([task("extra").optional().retries(1).max_crashes(1), after])
}

pub(in crate::conformance::examples) async fn its_failure_is_a_skip(world: &World) {
    let id = world.start(with_extra()).await;
    let answer = world.run("extra", failed(ErrorClass::Permanent)).await;
    assert_eq!(answer, Settled::Applied { state: Skipped, due: None, dead: None, job_ended: false });
    let extra = world.named(id, "extra").await;
    assert_eq!((extra.state, extra.output, extra.dead), (Skipped, None, None));
    assert_eq!((extra.counters.failures, extra.history.len()), (1, 1), "what happened is on record");
    assert_eq!(extra.history[0].how, AttemptEnd::Failed(ErrorClass::Permanent));
    assert_eq!(world.dead().await, []);
    let after = world.take("after").await;
    assert_eq!(after.payload, json(r#"{"extra":null}"#));
    world.complete(&after).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
    let line = world.line().await;
    assert_eq!((line.skipped, line.failed, line.oldest_failed), (1, 0, None));
}

pub(in crate::conformance::examples) async fn it_is_retried_like_any_other(world: &World) {
    let id = world.start(with_extra()).await;
    world.run("extra", failed(ErrorClass::Network)).await;
    assert_eq!(world.states(id).await[0], Retrying);
    world.advance(Millis::secs(1));
    world.run("extra", failed(ErrorClass::Network)).await;
    assert_eq!(world.states(id).await, [Skipped, Queued], "only then it is given up");
}

pub(in crate::conformance::examples) async fn a_vanished_worker_is_a_skip_too(world: &World) {
    let id = world.start(with_extra()).await;
    world.take("extra").await;
    world.advance(TTL);
    assert_eq!(world.sweep(9).await.ended[0].1.state(), Some(Skipped));
    assert_eq!(world.states(id).await, [Skipped, Queued]);
}

pub(in crate::conformance::examples) async fn its_result_counts_if_there_is_one(world: &World) {
    let id = world.start(with_extra()).await;
    world.run("extra", output("3")).await;
    let after = world.take("after").await;
    assert_eq!(after.payload, json(r#"{"extra":3}"#));
    world.complete(&after).await;
    assert_eq!(world.states(id).await, [Completed, Completed]);
}

pub(in crate::conformance::examples) async fn a_skip_of_another_holds_up_those_behind(world: &World) {
    let id = world.start(chain()).await;
    let answer = world.run("a", Outcome::Skipped(json("\"nothing new\""))).await;
    assert_eq!(answer, Settled::Applied { state: Skipped, due: None, dead: None, job_ended: true });
    assert_eq!(world.states(id).await, [Skipped, Skipped, Skipped], "only an optional one may be missing");
    let job = world.job(id).await;
    assert_eq!((job.state, job.output), (JobState::Completed, None), "and that is no failure");
    assert_eq!(job.tasks[0].output, Some(json("\"nothing new\"")));
}
