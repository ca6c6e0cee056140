//! Examples of `for_each`: one task per item.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::views::ItemsView;
use orchestrator_core::TaskState::{Completed, Failed, Pending, Queued, Running, Skipped};
use orchestrator_core::flow::{Flow, Task};
use orchestrator_core::{Counters, ErrorClass, JobState, TaskId};
use serde_json::json as value;

/// A task per item of the input, and one that gets all their outputs.
fn fan_out(each: Task) -> Flow {
    let join = task("join").needs(["each"]).with("{{ tasks.each.output }}");
    flow([each.for_each("{{ input }}"), join])
}

fn counts(items: Option<ItemsView>) -> (u32, u32, u32, u32, u32) {
    let items = items.expect("it was expanded");
    (items.first, items.count, items.ended, items.failed, items.running)
}

pub(in crate::conformance::examples) async fn a_list_becomes_its_items(world: &World) {
    let id = world.start_with(fan_out(task("each")), r#"["x",{"y":1},null]"#).await;
    let each = world.named(id, "each").await;
    assert_eq!((each.state, each.worker, each.counters), (Running, None, Counters::default()));
    assert_eq!((counts(each.items), each.input), ((2, 3, 0, 0, 0), None));
    assert_eq!(world.states(id).await, [Running, Pending]);
    assert_eq!(world.job_state(id).await, JobState::Pending, "no attempt has started");
    let items = world.items_of(id, "each").await;
    let shown: Vec<_> = items.iter().map(|item| (item.index, &*item.name, item.state)).collect();
    assert_eq!(shown, [(2, "each[0]", Queued), (3, "each[1]", Queued), (4, "each[2]", Queued)]);

    let leased = world.lease(9).await;
    let got: Vec<_> = leased.iter().map(|item| (&*item.name, item.payload.as_str())).collect();
    assert_eq!(got, [("each[0]", "\"x\""), ("each[1]", "{\"y\":1}"), ("each[2]", "null")]);
    assert_eq!(counts(world.named(id, "each").await.items), (2, 3, 0, 0, 3));
    for (n, item) in leased.iter().enumerate().rev() {
        world.settle(item.held(), output(&n.to_string())).await;
    }
    let each = world.named(id, "each").await;
    assert_eq!(
        (each.state, each.output, counts(each.items)),
        (Completed, Some(json("[0,1,2]")), (2, 3, 3, 0, 0))
    );
    assert_eq!(world.take("join").await.payload, json("[0,1,2]"), "in the order of the list");
    assert_eq!(world.task_life(id, 0).await, [(Running, 0), (Completed, 0)]);
    assert_eq!(world.task_life(id, 3).await, [(Queued, 0), (Running, 1), (Completed, 1)]);
    assert_eq!(world.line().await.completed, 4, "the items, and the task that they were");
}

pub(in crate::conformance::examples) async fn an_item_is_named_in_its_template(world: &World) {
    let each = task("each")
        .with(value!({"n": "{{ item_index }}", "of": "{{ item.name }}", "all": "{{ input | length }}"}));
    world.start_with(fan_out(each), r#"[{"name":"a"},{"name":"b"}]"#).await;
    let payloads: Vec<_> = world.lease(9).await.into_iter().map(|item| item.payload.value()).collect();
    assert_eq!(payloads, [value!({"n": 0, "of": "a", "all": 2}), value!({"n": 1, "of": "b", "all": 2})]);
}

pub(in crate::conformance::examples) async fn so_many_at_once(world: &World) {
    let id = world.start_with(fan_out(task("each").concurrency(2)), "[1,2,3,4,5]").await;
    let states = async || world.items_of(id, "each").await.iter().map(|item| item.state).collect::<Vec<_>>();
    assert_eq!(states().await, [Queued, Queued, Pending, Pending, Pending]);
    let waiting = &world.items_of(id, "each").await[4];
    assert_eq!((waiting.input.clone(), waiting.since), (Some(json("5")), None), "its input is known");
    let first = world.lease(9).await;
    assert_eq!(first.len(), 2, "the third waits for one of them");
    world.complete(&first[1]).await;
    assert_eq!(states().await, [Running, Completed, Queued, Pending, Pending]);
    let third = world.lease(9).await;
    assert_eq!((third.len(), &*third[0].name), (1, "each[2]"), "in the order of the list");
    world.settle(third[0].held(), failed(ErrorClass::Network)).await;
    assert_eq!(world.lease(9).await, [], "one that waits for its retry keeps its turn");
    world.fail(&first[0]).await;
    world.run_all(&["each[3]", "each[4]"]).await;
    world.advance(orchestrator_core::Millis::secs(1));
    world.run_all(&["each[2]"]).await;
    let each = world.named(id, "each").await;
    assert_eq!((each.state, counts(each.items)), (Failed, (2, 5, 5, 1, 0)));
}

pub(in crate::conformance::examples) async fn one_bad_item_fails_the_whole(world: &World) {
    let id = world.start_with(fan_out(task("each")), "[1,2,3]").await;
    let items = world.lease(9).await;
    world.fail(&items[1]).await;
    assert_eq!(world.states(id).await, [Running, Pending], "the others go on");
    world.complete(&items[0]).await;
    world.complete(&items[2]).await;
    assert_eq!(world.states(id).await, [Failed, Skipped]);
    let job = world.job(id).await;
    assert_eq!((job.state, &job.tasks[0].output, job.tasks[0].dead), (JobState::Failed, &None, None));
    let dead = world.dead().await;
    let letters: Vec<_> = dead.iter().map(|dead| (dead.task, &*dead.name)).collect();
    assert_eq!(letters, [(items[1].task, "each[1]")], "the item is the dead letter, not the whole");
    let line = world.line().await;
    assert_eq!((line.completed, line.failed, line.skipped), (2, 2, 1));
}

pub(in crate::conformance::examples) async fn optional_items_may_be_missing(world: &World) {
    let id = world.start_with(fan_out(task("each").optional()), "[1,2]").await;
    let items = world.lease(9).await;
    world.settle(items[0].held(), failed(ErrorClass::Permanent)).await;
    world.settle(items[1].held(), output("2")).await;
    let each = world.named(id, "each").await;
    assert_eq!(
        (each.state, each.output, counts(each.items)),
        (Completed, Some(json("[null,2]")), (2, 2, 2, 0, 0))
    );
    assert_eq!(world.take("join").await.payload, json("[null,2]"));
    assert_eq!(world.dead().await, []);
}

pub(in crate::conformance::examples) async fn a_list_of_nothing_has_completed(world: &World) {
    let id = world.start_with(fan_out(task("each")), "[]").await;
    let each = world.named(id, "each").await;
    assert_eq!((each.state, each.output, each.items), (Completed, Some(json("[]")), None));
    assert_eq!(world.items_of(id, "each").await, []);
    assert_eq!(world.task_life(id, 0).await, [(Completed, 0)]);
    assert_eq!(world.take("join").await.payload, json("[]"));
}

pub(in crate::conformance::examples) async fn a_list_may_come_from_a_task(world: &World) {
    let each = task("each").needs(["list"]).for_each("{{ tasks.list.output }}");
    let id = world.start(flow([task("list"), each, task("join").needs(["each"])])).await;
    assert_eq!(world.states(id).await, [Queued, Pending, Pending]);
    world.run("list", output("[1,2]")).await;
    assert_eq!(world.states(id).await, [Completed, Running, Pending]);
    world.run_all(&["each[0]", "each[1]", "join"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}

pub(in crate::conformance::examples) async fn what_is_no_list_is_a_failure(world: &World) {
    let id = world.start_with(fan_out(task("each")), r#"{"a":1}"#).await;
    assert_eq!(world.states(id).await, [Failed, Skipped]);
    assert_eq!(world.job_state(id).await, JobState::Failed);
    let dead = world.dead().await;
    assert_eq!((dead.len(), &*dead[0].name), (1, "each"));
    assert!(dead[0].message.contains(r#"for_each must be a list, but it is {"a":1}"#), "{}", dead[0].message);
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Failed]);
}

pub(in crate::conformance::examples) async fn a_list_runs_as_a_whole_or_not_at_all(world: &World) {
    let each = task("each").with(value!({"name": "{{ item.name }}"}));
    let id = world.start_with(fan_out(each), r#"[{"name":"a"},{"id":7},{"name":"c"}]"#).await;
    assert_eq!(world.states(id).await, [Failed, Skipped]);
    assert_eq!(world.named(id, "each").await.items, None);
    assert!(world.dead().await[0].message.starts_with("item 1: with: "), "{:?}", world.dead().await);
    assert_eq!(world.lease(9).await, []);
}

pub(in crate::conformance::examples) async fn items_are_read_by_page(world: &World) {
    let id = world.start_with(fan_out(task("each").concurrency(1)), "[0,1,2,3,4,5,6]").await;
    let group = TaskId { job: id, index: 0 };
    let mut seen: Vec<u32> = vec![];
    loop {
        let page = world.store.items(group, seen.last().copied(), 3).await.unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        seen.extend(page.iter().map(|item| item.index));
    }
    assert_eq!(seen, [2, 3, 4, 5, 6, 7, 8]);
    let item = TaskId { job: id, index: 5 };
    let alone = world.store.task(item).await.unwrap();
    assert_eq!(
        alone,
        Some(world.items_of(id, "each").await.swap_remove(3)),
        "an item can be looked at alone"
    );
    for none in [TaskId { job: id, index: 1 }, TaskId { job: id, index: 3 }, TaskId { job: id, index: 99 }] {
        assert_eq!(world.store.items(none, None, 9).await.unwrap(), [], "{none} has no items");
    }
    assert_eq!(world.store.task(TaskId { job: id, index: 9 }).await.unwrap(), None);
}
