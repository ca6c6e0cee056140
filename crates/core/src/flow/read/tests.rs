use super::*;
use crate::flow::def::JoinRule;
use crate::order::Priority;
use crate::time::Millis;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

fn problems(text: &str) -> Vec<String> {
    let document = Node::from_json(text).expect("JSON");
    read(&document).expect_err("problems").iter().map(Problem::to_string).collect()
}

/// The problems of a flow with one task, told without the task's path.
fn task_problems(task: &str) -> Vec<String> {
    let problems = problems(&format!(r#"{{"flow": "f", "tasks": {{"a": {task}}}}}"#));
    let within = |text: &String| text.strip_prefix("tasks.a").expect("a problem of the task").to_owned();
    problems.iter().map(within).collect()
}

#[test]
fn every_problem_is_told_at_once() {
    let text = r#"{
        "flow": "no spaces", "timeuot": "5m", "max_recoveries": -1, "priority": "urgent", "input": "text",
        "defaults": {"retries": 1.5, "estimate": "1s"}, "idempotency": {"window": "a day"},
        "tasks": {"1st": {"handler": "x"}, "b": {"needs": ["a", 1]}, "c": "command"}
    }"#;
    assert_eq!(
        problems(text),
        [
            r#"timeuot: a flow has no field "timeuot"; did you mean "timeout"?"#,
            r#"flow: "no spaces" is not a name: use letters, digits and . _ - /, at most 128 of them"#,
            "max_recoveries: must be a whole number from 0 to 4294967295, is -1",
            r#"priority: "urgent" is not a priority; it is critical, high, normal or low"#,
            r#"defaults.estimate: defaults has no field "estimate"; it has queue, retries, backoff, timeout, max_crashes, priority"#,
            "defaults.retries: must be a whole number from 0 to 4294967295, is 1.5",
            "input: must be a JSON Schema such as { type: object }, is a text",
            "idempotency.key: is required",
            r#"idempotency.window: "a day" is not a span of time; write it as 500ms, 30s, 5m, 24h, 7d or 1h30m"#,
            r#"tasks.1st: "1st" cannot name a task: a name is a letter, then letters, digits, _ and -, at most 64 together"#,
            "tasks.b.handler: is required",
            "tasks.b.needs[1]: must be a text, is a number; put it in quotes",
            "tasks.c: a task must be a map of fields, is a text",
        ]
    );
}

#[test]
fn a_document_of_another_shape_is_refused() {
    assert_eq!(problems("[]"), ["a flow must be a map of fields, is a list"]);
    assert_eq!(problems("null"), ["a flow must be a map of fields, is empty"]);
    assert_eq!(
        problems("{}"),
        ["flow: is required", "tasks: is required: the tasks of the flow, name by name"]
    );
    let list = r#"{"flow": "f", "tasks": [{"handler": "x"}]}"#;
    assert_eq!(problems(list), ["tasks: must be a map of task names to tasks, is a list"]);
}

#[test]
fn fields_of_the_wrong_type_are_refused() {
    for (field, message) in [
        (r#""title": ["x"]"#, ".title: must be a text, is a list"),
        (r#""title": null"#, ".title: must be a text, is empty"),
        (r#""when": true"#, ".when: must be a text, is true or false; put it in quotes"),
        (
            r#""queue": "a b""#,
            r#".queue: "a b" is not a name: use letters, digits and . _ - /, at most 128 of them"#,
        ),
        (r#""needs": {"a": 1}"#, ".needs: must be a list of task names, is a map"),
        (
            r#""join": "some""#,
            r#".join: "some" is not a join rule; it is all_completed, all_done (also: always) or any_failed"#,
        ),
        (r#""for_each": {"a": 1}"#, ".for_each: must be a list or a template that gives one, is a map"),
        (r#""concurrency": 0"#, ".concurrency: must be a whole number from 1 to 4294967295, is 0"),
        (r#""retries": "3""#, ".retries: must be a whole number, is a text"),
        (r#""retries": 4294967296"#, ".retries: must be a whole number from 0 to 4294967295, is 4294967296"),
        (r#""backoff": "2s""#, ".backoff: a backoff must be a map of fields, is a text"),
        (
            r#""backoff": {"jitter_percent": 101}"#,
            ".backoff.jitter_percent: must be a whole number from 0 to 100, is 101",
        ),
        (r#""timeout": []"#, r#".timeout: must be a span of time such as "30s", is a list"#),
        (
            r#""timeout": -1"#,
            r#".timeout: must be a span of time such as "30s" or a number of seconds, is -1"#,
        ),
        (r#""optional": "no""#, ".optional: must be true or false, is a text"),
        (r#""limits": ["host"]"#, r#".limits: must be a map such as { host: "example.org" }, is a list"#),
        (r#""limits": {"host": 1}"#, ".limits.host: must be a text, is a number; put it in quotes"),
        (
            r#""limits": {"Host": "x"}"#,
            r#".limits.Host: "Host" cannot be a kind of limit: use a-z, 0-9, _ and -"#,
        ),
    ] {
        assert_eq!(task_problems(&format!(r#"{{"handler": "x", {field}}}"#)), [message]);
    }
}

#[test]
fn words_from_elsewhere_are_understood() {
    for (word, meant) in
        [("depends_on", "needs"), ("max_retries", "retries"), ("if", "when"), ("forEach", "for_each")]
    {
        let told = format!(r#".{word}: a task has no field "{word}"; did you mean "{meant}"?"#);
        assert_eq!(task_problems(&format!(r#"{{"handler": "x", "{word}": 1}}"#)), [told]);
    }
}

#[test]
fn a_name_that_stands_twice_is_refused_wherever_it_stands() {
    let text = r#"{
        "flow": "f", "flow": "g",
        "tasks": {
            "a": {"handler": "x", "with": {"l": [{"k": 1, "k": 2, "k": 3}]}},
            "b": {"handler": "x", "limits": {"host": 1, "host": "b"}},
            "c": {"handler": 1},
            "c": {"handler": "y"}
        }
    }"#;
    assert_eq!(
        problems(text),
        [
            r#"flow: field "flow" stands twice"#,
            r#"tasks.c: task "c" stands twice"#,
            r#"tasks.a.with.l[0].k: field "k" stands 3 times"#,
            r#"tasks.b.limits.host: limit "host" stands twice"#,
        ]
    );
}

#[test]
fn nothing_may_be_given_where_anything_may() {
    let document =
        Node::from_json(r#"{"flow": "f", "tasks": {"a": {"handler": "x", "with": null}}}"#).unwrap();
    assert_eq!(read(&document).unwrap().tasks[0].with, Some(Value::Null));
}

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Fractions of which every digit is written: how floats are parsed is not the subject.
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn span() -> impl Strategy<Value = Millis> {
    any::<u64>().prop_map(Millis)
}

fn priority() -> impl Strategy<Value = Priority> {
    proptest::sample::select(Priority::ALL.as_slice())
}

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z0-9._/-]{1,20}"
}

prop_compose! {
    fn backoffs()(
        initial in option::of(span()), base in option::of(1u32..), max in option::of(span()),
        jitter_percent in option::of(0u8..=100),
    ) -> BackoffDef {
        BackoffDef { initial, base, max, jitter_percent }
    }
}

prop_compose! {
    fn all_defaults()(
        queue in option::of(name()), retries in option::of(any::<u32>()), backoff in option::of(backoffs()),
        timeout in option::of(span()), max_crashes in option::of(any::<u32>()),
        priority in option::of(priority()),
    ) -> TaskDefaults {
        TaskDefaults { queue, retries, backoff, timeout, max_crashes, priority }
    }
}

prop_compose! {
    fn task_def()(
        of_all in all_defaults(),
        (title, handler, needs, when) in (
            option::of(any::<String>()), name(), vec(any::<String>(), 0..3), option::of(any::<String>()),
        ),
        join in proptest::sample::select(JoinRule::ALL.as_slice()),
        with in option::of(data()),
        for_each in option::of(prop_oneof![
            any::<String>().prop_map(Value::from),
            vec(data(), 0..3).prop_map(Value::from),
        ]),
        (concurrency, optional, estimate) in (option::of(1u32..), any::<bool>(), option::of(span())),
        limits in btree_map("[a-z0-9_-]{1,9}", any::<String>(), 0..3),
    ) -> TaskDef {
        let TaskDefaults { queue, retries, backoff, timeout, max_crashes, priority } = of_all;
        TaskDef {
            name: String::new(), title, handler, queue, needs, join, when, with, for_each, concurrency,
            retries, backoff, timeout, max_crashes, optional, estimate, limits, priority,
        }
    }
}

prop_compose! {
    fn flow_def()(
        (name, description, timeout) in (name(), option::of(any::<String>()), option::of(span())),
        (max_recoveries, priority) in (option::of(any::<u32>()), option::of(priority())),
        defaults in all_defaults(),
        input in option::of(any::<String>()),
        idempotency in option::of((any::<String>(), option::of(span()))),
        tasks in btree_map("[A-Za-z][A-Za-z0-9_-]{0,63}", task_def(), 0..4),
        backwards in any::<bool>(),
        output in option::of(data()),
    ) -> FlowDef {
        let mut tasks: Vec<_> = tasks.into_iter().map(|(name, task)| TaskDef { name, ..task }).collect();
        if backwards {
            tasks.reverse();
        }
        FlowDef {
            name, description, timeout, max_recoveries, priority, defaults, tasks, output,
            input: input.map(|title| json!({"type": "object", "title": title})),
            idempotency: idempotency.map(|(key, window)| IdempotencyDef { key, window }),
        }
    }
}

proptest! {
    #[test]
    fn the_canonical_text_reads_back_as_the_same_flow(def in flow_def()) {
        let text = serde_json::to_string(&def).unwrap();
        prop_assert_eq!(read(&Node::from_json(&text).unwrap()), Ok(def));
    }

    #[test]
    fn no_document_panics(value in data()) {
        let _ = read(&Node::from_json(&value.to_string()).unwrap());
    }
}
