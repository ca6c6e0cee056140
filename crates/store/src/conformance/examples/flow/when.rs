//! Examples of conditions.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::views::AttemptEnd;
use orchestrator_core::TaskState::{Completed, Failed, Queued, Skipped};
use orchestrator_core::{DeadReason, ErrorClass, JobState};

pub(in crate::conformance::examples) async fn a_condition_decides_when_its_needs_have_ended(world: &World) {
    let conditional = || {
        let often = task("often").needs(["count"]).when("tasks.count.output.n > 3");
        let rare = task("rare").needs(["count"]).when("tasks.count.output.n <= 3");
        flow([task("count"), often, rare])
    };
    let id = world.start(conditional()).await;
    world.run("count", output(r#"{"n":5}"#)).await;
    assert_eq!(world.states(id).await, [Completed, Queued, Skipped]);
    world.run_all(&["often"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}

pub(in crate::conformance::examples) async fn a_false_condition_skips_those_behind_it(world: &World) {
    let flow = flow([task("a").when("input.wanted"), task("b").needs(["a"]), task("c")]);
    let id = world.start_with(flow, r#"{"wanted":false}"#).await;
    assert_eq!(world.states(id).await, [Skipped, Skipped, Queued]);
    let skipped = world.named(id, "a").await;
    assert_eq!((skipped.ended, skipped.history.len(), skipped.input), (Some(START), 0, None));
    assert_eq!(world.job_state(id).await, JobState::Pending, "nothing of it has started");
    world.run_all(&["c"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
    assert_eq!(world.task_life(id, 1).await, [(Skipped, 0)]);
}

pub(in crate::conformance::examples) async fn a_job_of_nothing_ends_at_once(world: &World) {
    let id = world.start_with(flow([task("a").when("input")]), "false").await;
    let job = world.job(id).await;
    assert_eq!((job.state, job.started, job.ended), (JobState::Completed, None, Some(START)));
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Completed]);
    assert_eq!(world.lease(1).await, []);
}

pub(in crate::conformance::examples) async fn a_condition_that_cannot_be_told_is_a_failure(world: &World) {
    let id = world.start_with(flow([task("a").when("input.n > 3"), task("b")]), r#"{"m":5}"#).await;
    assert_eq!(world.states(id).await, [Failed, Queued]);
    let task = world.named(id, "a").await;
    assert_eq!((task.dead, task.counters.attempt), (Some(DeadReason::Final), 0));
    assert_eq!(task.history.len(), 1);
    assert_eq!(
        (task.history[0].attempt, task.history[0].how),
        (0, AttemptEnd::Failed(ErrorClass::Validation))
    );
    assert!(task.history[0].message.starts_with("when: "), "{}", task.history[0].message);
    world.run_all(&["b"]).await;
    assert_eq!(world.job_state(id).await, JobState::Failed, "the others ran to their end");
}
