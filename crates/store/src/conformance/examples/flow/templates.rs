//! Examples of templates: what handlers get, and what happens where it cannot be told.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::views::{AttemptEnd, AttemptRecord};
use orchestrator_core::TaskState::{Completed, Failed, Queued, Skipped};
use orchestrator_core::{Counters, DeadReason, ErrorClass, JobState};
use serde_json::json as value;

pub(in crate::conformance::examples) async fn types_are_kept(world: &World) {
    let with = value!({"n": "{{ input.n }}", "list": "{{ input.list }}", "text": "n is {{ input.n }}", "plain": [1, null]});
    let id = world.start_with(flow([task("a").with(with)]), r#"{"n":1.5,"list":[true,null]}"#).await;
    let expected = value!({"n": 1.5, "list": [true, null], "text": "n is 1.5", "plain": [1, null]});
    assert_eq!(world.named(id, "a").await.input.map(|input| input.value()), Some(expected.clone()));
    assert_eq!(world.take("a").await.payload.value(), expected);
}

pub(in crate::conformance::examples) async fn a_literal_is_given_as_it_is(world: &World) {
    let id = world.start_with(flow([task("a").with(value!({"depth": 3}))]), "9").await;
    let task = world.named(id, "a").await;
    let leased = world.take("a").await;
    assert_eq!(leased.payload, json(r#"{"depth":3}"#));
    assert_eq!(task.input, Some(leased.payload));
}

pub(in crate::conformance::examples) async fn what_cannot_resolve_fails_without_an_attempt(world: &World) {
    let broken = task("b").needs(["a"]).with(value!({"x": "{{ tasks.a.output.missing }}"}));
    let id = world.start(flow([task("a"), broken, task("c").needs(["b"])])).await;
    let answer = world.run("a", output(r#"{"there":1}"#)).await;
    assert_eq!(answer.state(), Some(Completed), "the one before has nothing to do with it");
    assert_eq!(world.states(id).await, [Completed, Failed, Skipped]);
    let task = world.named(id, "b").await;
    assert_eq!((task.dead, task.counters, task.input), (Some(DeadReason::Final), Counters::default(), None));
    let dead = world.dead().await;
    let message = dead[0].message.clone();
    assert!(message.contains("missing"), "it names the expression: {message}");
    let how = AttemptEnd::Failed(ErrorClass::Validation);
    assert_eq!(task.history, [AttemptRecord { attempt: 0, at: START, how, message }]);
    assert_eq!(world.job_state(id).await, JobState::Failed);
    assert_eq!(world.lease(9).await, [], "a retry would not help");
}

pub(in crate::conformance::examples) async fn what_is_optional_is_skipped_instead(world: &World) {
    let broken = task("a").optional().with(value!("{{ input.missing }}"));
    let id = world.start_with(flow([broken, task("b").needs(["a"])]), "{}").await;
    assert_eq!(world.states(id).await, [Skipped, Queued]);
    let task = world.named(id, "a").await;
    assert_eq!((task.dead, task.history.len()), (None, 1), "what was wrong is on record");
    assert_eq!(world.dead().await, []);
}

pub(in crate::conformance::examples) async fn an_output_that_cannot_resolve_fails_the_job(world: &World) {
    let id = world.start(chain().output(value!("{{ tasks.c.output.missing }}"))).await;
    world.run_all(&["a", "b", "c"]).await;
    let job = world.job(id).await;
    assert_eq!((job.state, &job.output), (JobState::Failed, &None));
    assert!(job.reason.as_deref().is_some_and(|reason| reason.starts_with("output: ")), "{:?}", job.reason);
    assert_eq!(world.states(id).await, [Completed; 3]);
    assert_eq!(world.dead().await, []);
}

pub(in crate::conformance::examples) async fn a_root_that_cannot_resolve_ends_the_job_at_once(world: &World) {
    let root = task("a").with(value!("{{ input.missing }}"));
    let id = world.start_with(flow([root, task("b").needs(["a"])]), "{}").await;
    assert_eq!(world.states(id).await, [Failed, Skipped]);
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Failed]);
    let job = world.job(id).await;
    assert_eq!((job.started, job.ended, job.deadline), (None, Some(START), None));
}
