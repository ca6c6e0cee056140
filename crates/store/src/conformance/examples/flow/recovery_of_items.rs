//! Examples of taking up a `for_each` again.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Command, Controlled, Settled};
use orchestrator_core::TaskState::{Completed, Failed, Pending, Queued, Running, TimedOut};
use orchestrator_core::flow::Flow;
use orchestrator_core::{ErrorClass, JobId, JobState, Millis, TaskId};
use serde_json::json as value;

fn fan_out() -> Flow {
    let each = task("each").needs(["top"]).for_each("{{ input }}").concurrency(2);
    let join = task("join").needs(["each"]).with("{{ tasks.each.output }}");
    flow([task("top"), each.with(value!({"item": "{{ item }}"})), join]).timeout(Millis::mins(10))
}

/// A job of five items, of which the second and the fourth failed.
async fn two_failed(world: &World) -> JobId {
    let id = world.start_with(fan_out(), "[0,1,2,3,4]").await;
    world.run_all(&["top"]).await;
    for n in 0..5 {
        let end = if n % 2 == 0 { output(&n.to_string()) } else { failed(ErrorClass::Permanent) };
        world.run(&format!("each[{n}]"), end).await;
    }
    assert_eq!(world.job_state(id).await, JobState::Failed);
    id
}

async fn item_states(world: &World, id: JobId) -> Vec<orchestrator_core::TaskState> {
    world.items_of(id, "each").await.iter().map(|item| item.state).collect()
}

pub(in crate::conformance::examples) async fn only_the_items_that_failed(world: &World) {
    let id = two_failed(world).await;
    assert_eq!(world.dead().await.len(), 2);
    assert_eq!(world.control(recover(id, None)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.states(id).await, [Completed, Running, Pending]);
    assert_eq!(item_states(world, id).await, [Completed, Queued, Completed, Queued, Completed]);
    let items = world.named(id, "each").await.items.expect("it is expanded");
    assert_eq!((items.first, items.count, items.ended, items.failed), (3, 5, 3, 0));
    assert_eq!(world.dead().await, []);
    let again = world.take("each[1]").await;
    assert_eq!((again.counters.attempt, again.payload.clone()), (2, json(r#"{"item":1}"#)));
    world.settle(again.held(), output("10")).await;
    world.run("each[3]", output("30")).await;
    assert_eq!(world.take("join").await.payload, json("[0,10,2,30,4]"));
    let group = [(Running, 0), (Failed, 0), (Pending, 0), (Running, 0), (Completed, 0)];
    assert_eq!(world.task_life(id, 1).await, group);
    let item =
        [(Queued, 0), (Running, 1), (Failed, 1), (Pending, 1), (Queued, 1), (Running, 2), (Completed, 2)];
    assert_eq!(world.task_life(id, 4).await, item);
    assert_eq!(world.line().await.completed, 7);
}

pub(in crate::conformance::examples) async fn so_many_at_once_also_then(world: &World) {
    let id = world.start_with(fan_out(), "[0,1,2,3,4]").await;
    world.run_all(&["top", "each[0]"]).await;
    let running = world.take("each[1]").await;
    world.advance(Millis::mins(10));
    assert_eq!(world.sweep(9).await.timed_out, [id]);
    assert_eq!(item_states(world, id).await, [Completed, TimedOut, TimedOut, TimedOut, TimedOut]);
    assert_eq!(world.control(recover(id, None)).await, Controlled::Done(JobState::Running));
    assert_eq!(item_states(world, id).await, [Completed, Queued, Queued, Pending, Pending]);
    let waiting = &world.items_of(id, "each").await[4];
    assert_eq!(waiting.input, Some(json(r#"{"item":4}"#)), "what it gets is still known");
    assert_eq!(world.settle(running.held(), done()).await, Settled::Stale);
    let two = world.lease(9).await;
    let tried: Vec<_> = two.iter().map(|item| (&*item.name, item.counters.attempt)).collect();
    assert_eq!(tried, [("each[1]", 2), ("each[2]", 1)]);
    world.complete(&two[0]).await;
    world.complete(&two[1]).await;
    world.run_all(&["each[3]", "each[4]", "join"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}

pub(in crate::conformance::examples) async fn from_the_task_itself_the_list_is_made_anew(world: &World) {
    let id = two_failed(world).await;
    let before = world.items_of(id, "each").await;
    let gone = TaskId { job: id, index: before[0].index };
    assert_eq!(world.control(recover(id, Some("each"))).await, Controlled::Done(JobState::Running));
    let items = world.named(id, "each").await.items.expect("it is expanded");
    assert_eq!((items.first, items.count, items.ended), (8, 5, 0), "new tasks: no number is used again");
    assert_eq!(item_states(world, id).await, [Queued, Queued, Pending, Pending, Pending]);
    assert_eq!(world.store.task(gone).await.unwrap(), None);
    let stale = crate::verbs::Held { task: gone, attempt: 1 };
    assert_eq!(world.settle(stale, done()).await, Settled::Stale);
    assert_eq!(world.dead().await, []);
    for n in 0..5 {
        world.run_all(&[&format!("each[{n}]")]).await;
    }
    world.run_all(&["join"]).await;
    let line = world.line().await;
    assert_eq!((line.completed, line.failed), (8, 0), "what is gone is not counted");
}

pub(in crate::conformance::examples) async fn from_further_up_too(world: &World) {
    let id = two_failed(world).await;
    assert_eq!(world.control(recover(id, Some("top"))).await, Controlled::Done(JobState::Running));
    let each = world.named(id, "each").await;
    assert_eq!((each.state, each.items), (Pending, None));
    assert_eq!(world.items_of(id, "each").await, []);
    world.run_all(&["top"]).await;
    assert_eq!(world.named(id, "each").await.items.map(|items| items.first), Some(8));
}

pub(in crate::conformance::examples) async fn one_item_from_the_dead_letters(world: &World) {
    let id = two_failed(world).await;
    let dead = world.dead().await;
    assert_eq!(world.control(Command::Requeue(dead[1].task)).await, Controlled::Done(JobState::Running));
    assert_eq!(item_states(world, id).await, [Completed, Failed, Completed, Queued, Completed]);
    assert_eq!((world.job(id).await.recoveries, world.dead().await.len()), (0, 1));
    world.run_all(&["each[3]"]).await;
    let each = world.named(id, "each").await;
    let items = each.items.expect("it is expanded");
    assert_eq!((each.state, items.ended, items.failed), (Failed, 5, 1), "the other one is still bad");
    assert_eq!(world.job_state(id).await, JobState::Failed);
    assert_eq!(world.control(Command::Requeue(dead[0].task)).await, Controlled::Done(JobState::Running));
    world.run_all(&["each[1]", "join"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}
