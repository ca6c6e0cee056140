//! Examples of what a job leaves: its output, and how long its tasks took.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use orchestrator_core::flow::Flow;
use orchestrator_core::{ErrorClass, JobId, JobState, Millis, NewJob, Outcome};
use serde_json::json as value;

pub(in crate::conformance::examples) async fn the_output_of_the_last_task(world: &World) {
    let id = world.start(chain()).await;
    world.run_all(&["a", "b"]).await;
    assert_eq!(world.job(id).await.output, None, "not before the end");
    world.run("c", output(r#"{ "n": 1.50 }"#)).await;
    let output = world.job(id).await.output;
    assert_eq!(output.as_ref().map(|json| json.as_str()), Some(r#"{ "n": 1.50 }"#), "to the letter");
}

pub(in crate::conformance::examples) async fn the_outputs_of_several_last_tasks(world: &World) {
    let flow =
        flow([task("top"), task("z").needs(["top"]), task("a").needs(["top"]).when("tasks.top.output.a")]);
    let id = world.start(flow).await;
    world.run("top", output(r#"{"a":false}"#)).await;
    world.run("z", output("[1]")).await;
    let output = world.job(id).await.output.map(|json| json.value());
    assert_eq!(output, Some(value!({"z": [1], "a": null})));
}

pub(in crate::conformance::examples) async fn the_outputs_of_items(world: &World) {
    let id = world.start_with(flow([task("each").for_each("{{ input }}")]), "[1,2]").await;
    world.run("each[0]", output("\"x\"")).await;
    world.run("each[1]", Outcome::Skipped(json("\"y\""))).await;
    let job = world.job(id).await;
    assert_eq!((job.state, job.output), (JobState::Completed, Some(json(r#"["x","y"]"#))));
}

pub(in crate::conformance::examples) async fn the_output_that_the_flow_defines(world: &World) {
    let defined = value!({"sum": "{{ tasks.a.output + tasks.c.output }}", "of": "{{ input }}"});
    let id = world.start_with(chain().output(defined), "7").await;
    world.run("a", output("1")).await;
    world.run("b", done()).await;
    assert_eq!(world.job(id).await.output, None);
    world.run("c", output("2")).await;
    assert_eq!(world.job(id).await.output.map(|json| json.value()), Some(value!({"sum": 3, "of": 7})));
}

pub(in crate::conformance::examples) async fn the_output_of_a_queue(world: &World) {
    let id = world.add(job()).await;
    world.run("main", output("[1]")).await;
    assert_eq!(world.job(id).await.output, Some(json("[1]")));
    let skipped = world.add(job()).await;
    world.run("main", Outcome::Skipped(json("2"))).await;
    assert_eq!(world.job(skipped).await.output, Some(json("2")));
    let bad = world.add(job()).await;
    world.fail(&world.lease_one().await).await;
    assert_eq!(world.job(bad).await.output, None);
}

/// Runs a task for so long.
async fn run_for(world: &World, name: &str, span: u64, outcome: Outcome) {
    let leased = world.take(name).await;
    world.advance(Millis(span));
    world.settle(leased.held(), outcome).await;
}

async fn usual(world: &World, id: JobId) -> Vec<Option<Millis>> {
    world.job(id).await.tasks.iter().map(|task| task.usual).collect()
}

pub(in crate::conformance::examples) async fn the_mean_of_past_runs(world: &World) {
    let two = || flow([task("a"), task("b").needs(["a"]).optional()]);
    let id = world.start(two()).await;
    assert_eq!(usual(world, id).await, [None, None]);
    world.advance(Millis(1000));
    run_for(world, "a", 100, failed(ErrorClass::Network)).await;
    world.advance(Millis::secs(1));
    run_for(world, "a", 10, done()).await;
    assert_eq!(
        usual(world, id).await,
        [Some(Millis(10)), None],
        "of the attempt that completed, without waits"
    );
    run_for(world, "b", 50, failed(ErrorClass::Permanent)).await;
    assert_eq!(usual(world, id).await, [Some(Millis(10)), None], "a failure tells nothing");
    let next = world.start(two()).await;
    run_for(world, "a", 21, done()).await;
    run_for(world, "b", 50, Outcome::Skipped(json("1"))).await;
    assert_eq!(usual(world, next).await, [Some(Millis(15)), None], "in whole milliseconds");
    assert_eq!(
        usual(world, id).await,
        usual(world, next).await,
        "it is the same for every job of the version"
    );
    let other = world.start(two().description("another version")).await;
    assert_eq!(usual(world, other).await, [None, None]);
}

pub(in crate::conformance::examples) async fn the_mean_of_items(world: &World) {
    let each = || Flow::new("f").task(task("each").for_each("{{ input }}"));
    let id = world.start_with(each(), "[1,2]").await;
    run_for(world, "each[0]", 10, done()).await;
    run_for(world, "each[1]", 30, done()).await;
    assert_eq!(usual(world, id).await, [Some(Millis(20))], "per item");
    assert!(world.items_of(id, "each").await.iter().all(|item| item.usual == Some(Millis(20))));
    let queue = world.add(NewJob::with_spec(std::sync::Arc::new(spec()))).await;
    run_for(world, "main", 10, done()).await;
    assert_eq!(usual(world, queue).await, [None], "queues have none");
}
