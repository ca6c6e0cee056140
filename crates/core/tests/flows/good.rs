//! Definitions that hold: their canonical text, their hash, and what is made of them.

use crate::harness::{flow, task};
use orchestrator_core::flow::def::{BackoffDef, TaskDefaults};
use orchestrator_core::flow::plan::LimitPlan;
use orchestrator_core::flow::{Flow, JoinRule, Node, Plan, Task, read::read};
use orchestrator_core::{Limits, Millis, Priority, TaskSpec};
use serde_json::json;

fn parsed(text: &str) -> Plan {
    Plan::compile(read(&Node::from_json(text).unwrap()).unwrap()).unwrap()
}

fn everything() -> Flow {
    Flow::new("all")
        .description("everything \u{1F980} at once\n")
        .timeout(Millis(90_061_001))
        .max_recoveries(0)
        .priority(Priority::High)
        .defaults(TaskDefaults {
            queue: Some("slow".into()),
            retries: Some(2),
            backoff: Some(BackoffDef::default()),
            timeout: Some(Millis(1)),
            max_crashes: Some(5),
            priority: Some(Priority::Low),
        })
        .input_schema(json!({"type": "object", "properties": {"n": {"maximum": 0.1}}}))
        .idempotency("{{ input.a }}", Some(Millis::hours(24)))
        .task(Task::new("first", "command").title("").with(json!(null)))
        .task(
            Task::new("second", "http")
                .queue("fast")
                .needs(["first"])
                .join(JoinRule::AnyFailed)
                .when("{{ input.b }}")
                .with(json!({"z": 1.0, "a": [1, -1, 1e300, 0.30000000000000004, u64::MAX], "": {}}))
                .for_each("{{ input.list }}")
                .concurrency(8)
                .retries(0)
                .backoff(BackoffDef {
                    initial: Some(Millis(0)),
                    base: Some(1),
                    max: Some(Millis(u64::MAX)),
                    jitter_percent: Some(100),
                })
                .timeout(Millis::secs(10))
                .max_crashes(0)
                .optional()
                .estimate(Millis(0))
                .limit("host", "{{ item | host }}")
                .priority(Priority::Normal),
        )
        .output(json!(null))
}

#[test]
fn the_text_reads_back_as_the_same_flow() {
    for flow in [everything(), flow([task("a")]), flow([task("a"), task("b").needs(["a"])])] {
        let plan = flow.plan().unwrap();
        let again = Plan::from_text(plan.text()).unwrap();
        assert_eq!((again.text(), again.hash(), again.def()), (plan.text(), plan.hash(), plan.def()));
        assert_eq!(plan.hash().len(), 64);
    }
}

#[test]
fn the_text_and_the_hash_never_change() {
    // Stores keep both for as long as there are jobs: these must hold in every version to come.
    let plan = flow([task("a").with(json!({"b": 1, "a": "{{ input }}"})), task("b").needs(["a"]).optional()]);
    let plan = plan.timeout(Millis::mins(90)).plan().unwrap();
    assert_eq!(
        &**plan.text(),
        r#"{"flow":"test","timeout":"1h30m","tasks":{"a":{"handler":"work","with":{"a":"{{ input }}","b":1},"retries":0},"b":{"handler":"work","needs":["a"],"retries":0,"optional":true}}}"#
    );
    assert_eq!(&**plan.hash(), "1db04253015591b715e21471ad6f556d9b8598b2d2f113c6cfaac4d4b02856e0");
}

#[test]
fn the_order_of_fields_and_how_they_are_written_do_not_matter() {
    let one = parsed(
        r#"{"flow": "f", "timeout": "1m", "defaults": {"retries": 1, "queue": "q"},
            "tasks": {"a": {"handler": "h", "with": {"x": {"b": 1, "a": 2}}, "limits": {"b": "1", "a": "2"}},
                      "b": {"handler": "h", "needs": "a", "join": "always"}}}"#,
    );
    let other = parsed(
        r#"{"tasks": {"a": {"limits": {"a": "2", "b": "1"}, "with": {"x": {"a": 2, "b": 1}}, "handler": "h"},
                      "b": {"join": "all_done", "needs": ["a"], "optional": false, "handler": "h"}},
            "defaults": {"queue": "q", "retries": 1}, "timeout": 60, "flow": "f"}"#,
    );
    assert_eq!((one.text(), one.hash()), (other.text(), other.hash()));
}

#[test]
fn every_difference_makes_another_flow() {
    let base = || task("a").for_each(json!([1]));
    let changes: Vec<Flow> = vec![
        flow([base()]),
        flow([base(), task("b")]),
        flow([task("b"), base()]),
        flow([base(), task("b").needs(["a"])]),
        flow([base().title("x")]),
        flow([base().queue("x")]),
        flow([base().with(json!(null))]),
        flow([base().with(json!(1))]),
        flow([base().with(json!("1"))]),
        flow([base().when("true")]),
        flow([base().concurrency(1)]),
        flow([base().retries(1)]),
        flow([base().timeout(Millis(1))]),
        flow([base().max_crashes(3)]),
        flow([base().optional()]),
        flow([base().estimate(Millis(1))]),
        flow([base().limit("a", "b")]),
        flow([base().priority(Priority::Normal)]),
        flow([base().join(JoinRule::AllDone)]),
        flow([base().backoff(BackoffDef::default())]),
        flow([base()]).description(""),
        flow([base()]).timeout(Millis::mins(30)),
        flow([base()]).max_recoveries(3),
        flow([base()]).output("x"),
        flow([base()]).input_schema(json!({})),
        flow([base()]).idempotency("x", None),
        Flow::new("other").task(base()),
    ];
    let count = changes.len();
    let mut hashes: Vec<_> = changes.into_iter().map(|flow| flow.plan().unwrap().hash().clone()).collect();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}

#[test]
fn a_plan_knows_its_graph_and_what_holds_for_its_tasks() {
    let plan = everything().plan().unwrap();
    let (first, second) = (&plan.tasks()[0], &plan.tasks()[1]);
    assert_eq!((plan.roots(), plan.sinks()), (&[0][..], &[1][..]));
    assert_eq!((&first.dependents[..], &second.needs[..]), (&[1][..], &[0][..]));
    assert_eq!((plan.task_named("second"), plan.task_named("third")), (Some(1), None));
    assert_eq!((&*first.spec.queue, &*second.spec.queue), ("slow", "fast"));
    assert_eq!((first.spec.retry.max_retries, second.spec.retry.max_retries), (2, 0));
    assert_eq!((first.spec.timeout, second.spec.timeout), (Some(Millis(1)), Some(Millis::secs(10))));
    assert_eq!((first.priority, second.priority), (Some(Priority::Low), Some(Priority::Normal)));
    assert_eq!(first.literal.as_ref().map(|json| json.as_str()), Some("null"));
    assert!(matches!(&first.limits, LimitPlan::Fixed(limits) if *limits == Limits::none()));
    assert!(matches!(second.limits, LimitPlan::Templates(_)));
    assert_eq!((plan.timeout(), plan.max_recoveries()), (Some(Millis(90_061_001)), 0));
    let plain = flow([task("a")]).plan().unwrap();
    assert_eq!((plain.timeout(), plain.max_recoveries()), (Some(Millis::mins(30)), 3));
}

#[test]
fn a_key_is_derived_from_the_input() {
    let keyed = |key: &str| flow([task("a")]).idempotency(key, Some(Millis::hours(1))).plan().unwrap();
    for (template, input, expected) in [
        (
            "{{ input.url | normalize_url }}",
            json!({"url": "HTTP://Example.org:80/a/../b"}),
            "http://example.org/b",
        ),
        ("{{ input.n }}", json!({"n": 7}), "7"),
        ("{{ input }}", json!({"n": 7}), "{\"n\":7}"),
        ("v1-{{ input.n }}", json!({"n": "x"}), "v1-x"),
    ] {
        let key = keyed(template).derive_key(&input.into()).unwrap().unwrap();
        assert_eq!((&*key.text, key.window, key.derived), (expected, Some(Millis::hours(1)), true));
    }
    assert!(keyed("{{ input.n }}").derive_key(&json!({}).into()).is_err());
    assert!(flow([task("a")]).plan().unwrap().derive_key(&json!({}).into()).unwrap().is_none());
    assert_eq!(&*keyed("x").key_scope(), "flow:test");
}

#[test]
fn a_job_of_a_queue_has_a_plan_too() {
    let limits = Limits::new(["host:x".parse().unwrap()]).unwrap();
    let spec = TaskSpec::new("resize").on_queue("images").with_timeout(None);
    let plan = Plan::of_task(&spec, &limits);
    let again = Plan::of_task_from_text(plan.text()).unwrap();
    assert_eq!((again.text(), again.hash()), (plan.text(), plan.hash()));
    assert_eq!((&*again.tasks()[0].spec, &*again.tasks()[0].name), (&spec, "main"));
    assert!(again.is_implicit() && again.timeout().is_none() && &*again.key_scope() == "resize");
    assert_ne!(Plan::of_task(&spec, &Limits::none()).hash(), plan.hash());
}
