//! Tasks that become one task per item.

use crate::harness::{Job, flow, task};
use orchestrator_core::flow::advance::MAX_ITEMS;
use orchestrator_core::flow::{JoinRule, Task};
use orchestrator_core::{JobState, Json};
use serde_json::json;

fn each() -> Task {
    task("each").for_each("{{ input.list }}")
}

fn job(each: Task, list: serde_json::Value) -> Job {
    Job::new(flow([each, task("z").needs(["each"]).with("{{ tasks.each.output }}")]), json!({"list": list}))
}

#[test]
fn every_item_is_a_task_and_the_join_gets_all_outputs_in_order() {
    let mut job = job(each(), json!(["x", {"y": 1}, null]));
    assert_eq!(job.states(), "each running, each[0] queued, each[1] queued, each[2] queued, z pending");
    assert_eq!(job.run.state, JobState::Pending);
    assert_eq!(
        [0, 1, 2].map(|n| job.payload(&format!("each[{n}]"))),
        [json!("x"), json!({"y": 1}), json!(null)]
    );
    job.complete("each[2]", json!(2));
    job.skip("each[0]");
    assert_eq!(job.states(), "each running, each[0] skipped, each[1] queued, each[2] completed, z pending");
    job.complete("each[1]", json!([1]));
    assert_eq!(job.seen("each").state.as_str(), "completed");
    assert_eq!(job.payload("z"), json!([null, [1], 2]));
    job.complete("z", json!(null));
    assert_eq!(job.run.state, JobState::Completed);
}

#[test]
fn an_item_has_its_own_input_and_limits() {
    let item = each()
        .with(json!({"n": "{{ item_index }}", "of": "{{ item.host }}"}))
        .limit("host", "{{ item.host }}");
    let job = job(item, json!([{"host": "a"}, {"host": "b"}]));
    assert_eq!(job.payload("each[1]"), json!({"n": 1, "of": "b"}));
    assert_eq!(job.seen("each[1]").limits.keys(), ["host:b".parse().unwrap()]);

    // What is written in the flow is not written again for every item.
    let job = self::job(each().with(json!({"same": true})), json!([1, 2]));
    assert_eq!((job.seen("each[0]").payload.clone(), job.payload("each[1]")), (None, json!({"same": true})));
}

#[test]
fn no_more_items_are_in_than_may_run_at_once() {
    let mut job = job(each().concurrency(2), json!([0, 1, 2, 3, 4]));
    assert_eq!(job.take_entered(), "each[0] each[1]");
    assert_eq!(job.payload("each[4]"), json!(4));
    for (end, next) in [(1, "each[2]"), (2, "each[3]"), (0, "each[4]"), (3, "")] {
        job.complete(&format!("each[{end}]"), json!(null));
        assert_eq!(job.take_entered(), next);
    }
    job.complete("each[4]", json!(null));
    assert_eq!(job.take_entered(), "z");
    let wide = self::job(each().concurrency(9), json!([0, 1]));
    assert_eq!(wide.ready().len(), 2);
}

#[test]
fn an_empty_list_completes_at_once() {
    let mut job = job(each(), json!([]));
    assert_eq!((job.states(), job.payload("z")), ("each completed, z queued".to_owned(), json!([])));
    job.complete("z", json!(null));
    assert_eq!(job.run.state, JobState::Completed);

    let empty = |name| task(name).for_each(json!([]));
    let job =
        Job::new(flow([empty("a"), empty("b")]).output("{{ tasks.a.output + tasks.b.output }}"), json!(1));
    assert_eq!((job.run.state, job.output), (JobState::Completed, Some(json!([]))));
}

#[test]
fn a_failed_item_fails_the_whole_when_all_have_ended() {
    let mut job = job(each().concurrency(1), json!([0, 1, 2]));
    job.fail("each[0]");
    assert_eq!(job.states(), "each running, each[0] failed, each[1] queued, each[2] pending, z pending");
    job.complete("each[1]", json!(null));
    job.fail("each[2]");
    assert_eq!(job.states(), "each failed, each[0] failed, each[1] completed, each[2] failed, z skipped");
    assert_eq!((job.run.state, job.run.groups[0].failed), (JobState::Failed, 2));
}

#[test]
fn the_items_of_an_optional_task_are_optional() {
    let mut job = job(each().optional(), json!([0, 1]));
    job.fail("each[0]");
    job.complete("each[1]", json!("ok"));
    assert_eq!(job.states(), "each completed, each[0] skipped, each[1] completed, z queued");
    assert_eq!(job.payload("z"), json!([null, "ok"]));
}

#[test]
fn a_list_runs_as_a_whole_or_not_at_all() {
    let broken = each().with("{{ 10 // item }}").concurrency(1);
    for (each, expected) in
        [(broken.clone(), "each failed, z skipped"), (broken.optional(), "each skipped, z queued")]
    {
        let job = job(each, json!([1, 2, 0]));
        assert_eq!(job.states(), expected);
        assert!(job.error("each").starts_with("item 2: with: {{ 10 // item }}: "), "{}", job.error("each"));
        assert!(job.error("each").ends_with("item is 0"), "{}", job.error("each"));
        assert_eq!((job.run.groups.len(), job.run.next), (0, 2));
    }
    let limit = job(each().limit("host", "{{ item }}"), json!(["a", ""]));
    assert!(
        limit.error("each").starts_with("item 1: limits: \"host:\" is not a limit key"),
        "{}",
        limit.error("each")
    );
}

#[test]
fn what_is_no_list_is_told() {
    for (list, shown) in [
        (json!("abc"), "\"abc\"".to_owned()),
        (json!(null), "null".to_owned()),
        (json!({"a": 1}), "{\"a\":1}".to_owned()),
        (json!("é".repeat(300)), format!("\"{}...", "é".repeat(99))),
    ] {
        let job = job(each(), list);
        assert_eq!(job.error("each"), format!("for_each must be a list, but it is {shown}"));
        assert_eq!((job.run.state, &*job.states()), (JobState::Failed, "each failed, z skipped"));
    }
    let missing = Job::new(flow([each()]), json!({"other": 1}));
    assert_eq!(
        missing.error("each"),
        "for_each: {{ input.list }}: input has no field \"list\"; it is {\"other\":1}"
    );
}

#[test]
fn a_list_has_a_size() {
    let each = task("each").needs(["a"]).for_each("{{ tasks.a.output }}");
    let mut job = Job::new(flow([task("a"), each]), json!({}));
    job.complete("a", json!(vec![0; MAX_ITEMS + 1]));
    assert_eq!(job.error("each"), "for_each has 500001 items; at most 500000, and 1048576 tasks per job");
    assert_eq!((job.run.state, job.run.next), (JobState::Failed, 2));
}

#[test]
fn the_inputs_of_a_list_have_a_size_together() {
    // Each item is small enough, but not all of them together.
    let fat = each().with("{{ item }} {{ input.text }}").for_each("{{ range(400) }}");
    let job = Job::new(flow([fat]), json!({"text": "x".repeat(1_000_000)}));
    assert_eq!(
        job.error("each"),
        "the inputs of its items have more than 256 MiB together: pass references instead of the data"
    );
}

#[test]
fn lists_of_lists_run_one_after_the_other() {
    let inner =
        task("inner").needs(["each"]).for_each("{{ tasks.each.output }}").with(json!({"got": "{{ item }}"}));
    let mut job = Job::new(flow([each(), inner]), json!({"list": [1, 2]}));
    job.complete("each[1]", json!("b"));
    job.complete("each[0]", json!("a"));
    assert_eq!(job.payload("inner[0]"), json!({"got": "a"}));
    assert_eq!(job.index("inner[0]"), 4);
    job.complete_all();
    assert_eq!(job.run.state, JobState::Completed);
}

#[test]
fn a_condition_is_asked_once_for_the_whole_list() {
    let job = job(each().when("input.list | length > 2"), json!([1, 2]));
    assert_eq!(job.states(), "each skipped, z skipped");
    // A list that is not wanted need not be one.
    let job = self::job(each().when("input.list is sequence"), json!(7));
    assert_eq!(job.states(), "each skipped, z skipped");
}

#[test]
fn what_comes_after_a_failed_list_sees_what_there_is() {
    let after = task("after").needs(["each"]).join(JoinRule::AllDone);
    let after = after.with(json!({"state": "{{ tasks.each.state }}", "output": "{{ tasks.each.output }}"}));
    let mut job = Job::new(flow([each(), after]), json!({"list": [1, 2]}));
    job.fail("each[0]");
    job.complete("each[1]", json!("ok"));
    assert_eq!(job.payload("after"), json!({"state": "failed", "output": [null, "ok"]}));
    job.complete("after", Json::null().value());
    assert_eq!(job.run.state, JobState::Failed);
}
