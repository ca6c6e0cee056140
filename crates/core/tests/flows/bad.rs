//! Definitions that are refused: every problem by its path and its message.

use crate::harness::{flow, task};
use orchestrator_core::flow::def::{BackoffDef, TaskDefaults};
use orchestrator_core::flow::plan::{MAX_DEFINITION, MAX_TASKS};
use orchestrator_core::flow::{Flow, Path, Plan, Task};
use orchestrator_core::{Millis, limit};
use serde_json::{Value, json};

fn problems(flow: Flow) -> Vec<String> {
    match flow.plan() {
        Ok(plan) => panic!("{} is fine", plan.text()),
        Err(problems) => problems.into_iter().map(|problem| problem.to_string()).collect(),
    }
}

#[track_caller]
fn refused(flow: Flow, expected: &[&str]) {
    assert_eq!(problems(flow), expected);
}

/// One task, which needs `first`.
fn after_first(second: Task) -> Flow {
    flow([task("first"), second.needs(["first"])])
}

/// `first`, then a task with an input.
fn with(input: impl Into<Value>) -> Flow {
    after_first(task("second").with(input))
}

fn needs(graph: &[(&str, &[&str])]) -> Flow {
    flow(graph.iter().map(|(name, needs)| task(name).needs(needs.iter().copied())))
}

#[test]
fn a_ring_is_named_by_its_path() {
    refused(needs(&[("a", &["a"])]), &["tasks.a.needs[0]: a task cannot need itself"]);
    refused(
        needs(&[("a", &["b"]), ("b", &["a"])]),
        &["tasks.a.needs: the tasks need each other in a circle: a needs b needs a"],
    );
    refused(
        needs(&[
            ("in", &["c"]),
            ("a", &["root", "b"]),
            ("b", &["c"]),
            ("c", &["d"]),
            ("d", &["a"]),
            ("root", &[]),
        ]),
        &["tasks.c.needs: the tasks need each other in a circle: c needs d needs a needs b needs c"],
    );
    refused(
        needs(&[("a", &["b"]), ("b", &["a"]), ("c", &["d"]), ("d", &["c", "a"]), ("e", &["d"])]),
        &[
            "tasks.a.needs: the tasks need each other in a circle: a needs b needs a",
            "tasks.c.needs: the tasks need each other in a circle: c needs d needs c",
        ],
    );
}

#[test]
fn needs_lead_somewhere_and_stand_once() {
    refused(
        needs(&[("download", &[]), ("validate", &["donwload", "nonsense", "download", "download"])]),
        &[
            "tasks.validate.needs[0]: there is no task \"donwload\"; did you mean \"download\"?",
            "tasks.validate.needs[1]: there is no task \"nonsense\"; there are download, validate",
            "tasks.validate.needs[3]: \"download\" stands here twice",
        ],
    );
    let many: Vec<_> =
        (0..14).map(|n| task(&format!("t{n}"))).chain([task("z").needs(["nonsense"])]).collect();
    refused(
        flow(many),
        &["tasks.z.needs[0]: there is no task \"nonsense\"; \
           there are t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, ..."],
    );
}

#[test]
fn names_are_names_and_stand_once() {
    let name = "must be a name: 1 to 128 of A-Z a-z 0-9 . _ - /";
    refused(flow([]), &["tasks: a flow needs at least one task"]);
    refused(Flow::new("a b").task(task("a")), &[&format!("flow: {name}")]);
    refused(
        flow([Task::new("a", "").queue("two words")]),
        &[&format!("tasks.a.handler: {name}"), &format!("tasks.a.queue: {name}")],
    );
    refused(flow([task("a"), task("b"), task("a")]), &["tasks.a: the name \"a\" is used twice"]);
    refused(
        flow([task("1st"), task(&"x".repeat(65))]),
        &[
            "tasks.1st: a task's name is a letter and up to 63 of A-Z a-z 0-9 _ -",
            &format!("tasks.{}: a task's name is a letter and up to 63 of A-Z a-z 0-9 _ -", "x".repeat(65)),
        ],
    );
}

#[test]
fn what_templates_refer_to_exists() {
    for (expression, message) in [
        ("nope", "\"nope\" cannot resolve: there are input, tasks, job, and item in a for_each"),
        ("outputs.first", "\"outputs\" cannot resolve: there are input, tasks, job, and item in a for_each"),
        ("tasks", "name the task: tasks.NAME.output"),
        ("tasks[input.name]", "name the task: tasks.NAME.output"),
        ("tasks.frist.output", "there is no task \"frist\"; did you mean \"first\"?"),
        ("tasks.second.output", "\"second\" cannot refer to itself"),
        ("tasks.first.nonsense", "tasks.first.nonsense cannot resolve: a task has output, state and error"),
        ("tasks.first.outputs.n", "tasks.first.outputs cannot resolve: a task has output, state and error"),
        ("job.name", "job.name cannot resolve: there are job.id and job.tenant"),
        ("job", "job cannot resolve: there are job.id and job.tenant"),
        ("item", "item cannot resolve: an item exists in `with` and `limits` of a task with for_each"),
        (
            "item_index + 1",
            "item_index cannot resolve: an item exists in `with` and `limits` of a task with for_each",
        ),
    ] {
        refused(
            with(json!({"a": [{"deep": format!("x {{{{ {expression} }}}}")}]})),
            &[&format!("tasks.second.with.a[0].deep: {message}")],
        );
        refused(after_first(task("second").when(expression)), &[&format!("tasks.second.when: {message}")]);
        if !expression.contains("second") {
            let limit = after_first(task("second").limit("host", format!("{{{{ {expression} }}}}")));
            refused(limit, &[&format!("tasks.second.limits.host: {message}")]);
            let output = flow([task("first")]).output(json!([format!("{{{{ {expression} }}}}")]));
            refused(output, &[&format!("output[0]: {message}")]);
        }
    }
    // Functions and what is said of a task that has ended are no references into nowhere.
    with("{{ range(3) }}{{ tasks.first.state }}{{ tasks.first.error }}{{ tasks.first.output.x }}")
        .plan()
        .unwrap();
}

#[test]
fn a_template_sees_only_tasks_that_have_ended() {
    let later = "may not have ended by then: add it to `needs`";
    refused(
        flow([
            task("a"),
            task("b").with("{{ tasks.a.output }} {{ tasks.c.output }}"),
            task("c").needs(["b"]).with("{{ tasks.a.output }}").when("tasks.b.state == 'completed'"),
        ]),
        &[
            &format!("tasks.b.with: \"a\" {later}"),
            &format!("tasks.b.with: \"c\" {later}"),
            &format!("tasks.c.with: \"a\" {later}"),
        ],
    );
    // Over other tasks, and at the end, everything before has ended.
    let far = flow([task("a"), task("b").needs(["a"]), task("c").needs(["b"]).with("{{ tasks.a.output }}")]);
    far.output("{{ tasks.a.output }}{{ tasks.b.output }}").plan().unwrap();
    // It is told beside what is wrong elsewhere, but not where the needs themselves are wrong.
    refused(
        flow([task("a").timeout(Millis(0)), task("b").with("{{ tasks.a.output }}")]),
        &["tasks.a.timeout: must be longer than zero", &format!("tasks.b.with: \"a\" {later}")],
    );
    refused(
        flow([task("a"), task("b").needs(["A"]).with("{{ tasks.a.output }}")]),
        &["tasks.b.needs[0]: there is no task \"A\"; did you mean \"a\"?"],
    );
}

#[test]
fn an_item_exists_only_where_there_is_one() {
    let wrong = "item cannot resolve: an item exists in `with` and `limits` of a task with for_each";
    let each = task("second").for_each(json!(["a", "{{ item }}"])).when("item == 1").with("{{ item }}");
    refused(
        after_first(each),
        &[&format!("tasks.second.for_each[1]: {wrong}"), &format!("tasks.second.when: {wrong}")],
    );
    let good = task("second").for_each("{{ input.list }}").with("{{ item.x }}{{ item_index }}");
    after_first(good.limit("host", "{{ item.host }}")).plan().unwrap();
}

#[test]
fn the_input_has_what_its_schema_allows() {
    let schema = json!({
        "type": "object",
        "properties": {
            "source": {"type": "string"},
            "options": {"type": "object", "properties": {"depth": {}}, "additionalProperties": false},
        },
        "additionalProperties": false,
    });
    let none = "cannot resolve: the input has no such property";
    refused(
        with(json!({
            "a": "{{ input.sorce }}",
            "b": "{{ input.options.dept }}",
            "c": "{{ input.source.host }}",
            "d": "{{ input.source }}{{ input.options.depth.any }}{{ input[input.source] | default(1) }}",
        }))
        .idempotency("{{ input.sorce }}", None)
        .output("{{ input.sorce }}")
        .input_schema(schema),
        &[
            &format!("idempotency.key: input.sorce {none}"),
            &format!("output: input.sorce {none}"),
            &format!("tasks.second.with.a: input.sorce {none}"),
            &format!("tasks.second.with.b: input.options.dept {none}"),
            &format!("tasks.second.with.c: input.source.host {none}"),
        ],
    );
    with("{{ input.anything }}").input_schema(json!({"properties": {"source": {}}})).plan().unwrap();
    refused(
        flow([task("a")]).input_schema(json!({"properties": {"n": {"type": "int"}, "m": {"minimum": "1"}}})),
        &[
            "input.properties.m.minimum: must be a number, not \"1\"",
            "input.properties.n.type: must be one or a list of \
             string, number, integer, boolean, object, array, null, not \"int\"",
        ],
    );
}

#[test]
fn a_broken_template_is_found_at_its_place() {
    let odd =
        json!({"user-id": {"a.b[0]": ["{{ nope }}"]}, "0": "{{ nope }}", "say \"é\"\n\u{7f}": "{{ nope }}"});
    let odd = with(odd).plan().unwrap_err();
    let paths: Vec<Path> = odd.into_iter().map(|problem| problem.path).collect();
    let at = |name: &str| Path::root().key("tasks").key("second").key("with").key(name);
    assert_eq!(paths, [at("0"), at("say \"é\"\n\u{7f}"), at("user-id").key("a.b[0]").index(0)]);

    let found = problems(with(json!({"a": "{{ 1 + }}", "b": "{{ input.n | nofilter }}", "c": "{{ input.n"})));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("tasks.second.with.a: {{ 1 + }}: "), "{found:?}");
    assert_eq!(found[1], "tasks.second.with.b: {{ input.n | nofilter }}: there is no filter \"nofilter\"");
    assert!(found[2].starts_with("tasks.second.with.c: "), "{found:?}");
    assert!(problems(after_first(task("second").when("1 +")))[0].starts_with("tasks.second.when: "));
}

#[test]
fn numbers_are_in_their_bounds() {
    let backoff = BackoffDef { base: Some(0), ..BackoffDef::default() };
    let defaults = TaskDefaults {
        timeout: Some(Millis(0)),
        retries: Some(1_001),
        queue: Some(String::new()),
        backoff: Some(backoff),
        ..TaskDefaults::default()
    };
    refused(
        flow([task("a").timeout(Millis(0)).retries(1_001).backoff(backoff)])
            .timeout(Millis(0))
            .defaults(defaults)
            .idempotency("{{ input }}", Some(Millis(0))),
        &[
            "defaults.backoff.base: must be at least 1",
            "defaults.queue: must be a name: 1 to 128 of A-Z a-z 0-9 . _ - /",
            "defaults.retries: at most 1000",
            "defaults.timeout: must be longer than zero",
            "idempotency.window: must be longer than zero",
            "tasks.a.backoff.base: must be at least 1",
            "tasks.a.retries: at most 1000",
            "tasks.a.timeout: must be longer than zero",
            "timeout: must be longer than zero",
        ],
    );
    flow([task("a").retries(1_000).timeout(Millis(1))]).plan().unwrap();
}

#[test]
fn concurrency_is_for_a_list() {
    let alone =
        "tasks.a.concurrency: says how many items of a for_each run at once; this task has none (see limits)";
    refused(flow([task("a").concurrency(2)]), &[alone]);
    refused(flow([task("a").concurrency(0)]), &["tasks.a.concurrency: must be at least 1", alone]);
    refused(
        flow([task("a").for_each(json!([1])).concurrency(0)]),
        &["tasks.a.concurrency: must be at least 1"],
    );
    let list = "must be a list, or an expression such as {{ tasks.a.output.files }}";
    for no_list in [json!("abc"), json!(3), json!({"a": 1}), json!(null)] {
        refused(flow([task("a").for_each(no_list)]), &[&format!("tasks.a.for_each: {list}")]);
    }
    refused(
        flow([task("a").for_each(json!({"a": "{{ input }}"}))]),
        &["tasks.a.for_each: must be a list or a template that gives one, is a map"],
    );
}

#[test]
fn limits_have_a_kind_and_a_name() {
    let rule = "is not a limit key; write it as kind:name, such as host:example.org \
                (at most 256 bytes, kind of a-z, 0-9, _ and -)";
    refused(
        flow([task("a").limit("Host", "x").limit("", "{{ input.x }}").limit("empty", "").limit("any", "*")]),
        &[
            &format!("tasks.a.limits.: \":x\" {rule}"),
            &format!("tasks.a.limits.Host: \"Host:x\" {rule}"),
            &format!("tasks.a.limits.any: \"any:*\" {rule}"),
            &format!("tasks.a.limits.empty: \"empty:\" {rule}"),
        ],
    );
    refused(
        flow([task("a").limit("a:b", "c")]),
        &["tasks.a.limits.a:b: \"a:b\" cannot be a kind of limit: use a-z, 0-9, _ and -"],
    );
    let many = |n: usize| flow([(0..n).fold(task("a"), |task, n| task.limit(format!("k{n}"), "x"))]);
    refused(many(limit::MAX_KEYS + 1), &["tasks.a.limits: at most 8 limits on one task"]);
    many(limit::MAX_KEYS).plan().unwrap();
}

#[test]
fn a_key_is_made_of_the_input_alone() {
    let alone = "idempotency.key: a key is made of the input alone: nothing has run yet";
    refused(flow([task("a")]).idempotency("{{ tasks.a.output }}", None), &[alone]);
    refused(flow([task("a")]).idempotency("{{ input.x }} {{ job.id }}", None), &[alone]);
    refused(
        flow([task("a")]).idempotency("{{ item }}", None),
        &[
            "idempotency.key: item cannot resolve: an item exists in `with` and `limits` of a task with for_each",
        ],
    );
}

#[test]
fn a_flow_has_a_size() {
    let tasks = |n: usize| flow((0..n).map(|n| task(&format!("t{n}"))));
    tasks(MAX_TASKS).plan().unwrap();
    refused(tasks(MAX_TASKS + 1), &["tasks: 2001 tasks; at most 2000 (for_each makes many of one)"]);
    let empty = flow([task("a")]).description("").plan().unwrap().text().len();
    let filled = |bytes: usize| flow([task("a")]).description("x".repeat(bytes - empty));
    filled(MAX_DEFINITION).plan().unwrap();
    refused(filled(MAX_DEFINITION + 1), &["the definition has 1048577 bytes; at most 1048576"]);
}

#[test]
fn what_could_not_be_read_back_is_refused() {
    let backoff = BackoffDef { jitter_percent: Some(101), ..BackoffDef::default() };
    refused(
        flow([task("a").backoff(backoff)]),
        &["tasks.a.backoff.jitter_percent: must be a whole number from 0 to 100, is 101"],
    );
    let deep = (0..200).fold(json!(1), |value, _| json!([value]));
    let found = problems(flow([task("a")]).input_schema(json!({"default": deep})));
    assert!(found[0].starts_with("not a JSON document: recursion limit exceeded"), "{found:?}");
    for text in ["", "[]", "{}", "{\"flow\":\"a\"}", "{\"flow\":\"a\",\"tasks\":{\"a\":{}}}"] {
        assert!(Plan::from_text(text).is_err(), "{text}");
    }
}

#[test]
fn all_is_told_at_once_and_no_problem_twice() {
    let found = problems(
        flow([
            task("a").needs(["b", "nope"]).with("{{ nope }} {{ nope }}").limit("X", "x"),
            task("b").needs(["a"]).timeout(Millis(0)),
        ])
        .timeout(Millis(0)),
    );
    let paths: Vec<_> = found.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "tasks.a.limits.X",
            "tasks.a.needs",
            "tasks.a.needs[1]",
            "tasks.a.with",
            "tasks.b.timeout",
            "timeout"
        ]
    );
}
