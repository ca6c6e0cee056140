use super::*;
use proptest::prelude::*;
use serde_json::{Map, json};

fn scope(base: Value) -> Scope {
    match base {
        Value::Object(base) => Scope::new(base),
        other => panic!("{other} is not an object"),
    }
}

fn example() -> Scope {
    let mut scope = scope(json!({
        "input": {"source": "https://Example.org/?b=1&a=2", "n": 3, "big": u64::MAX, "f": 1.50, "none": null,
                  "quote": "a \"b\"\n\\ é", "c d": {"e-f": [10, 20, {"g": true}]}, "empty": [], "word": "héllo"},
        "tasks": {"count": {"output": {"n": 41, "total": 7}}, "fetch-robots": {"output": {"ok": true, "n": 5}},
                  "skipped": {"output": null}},
        "job": {"id": "j1"},
    }));
    scope.set_item(json!({"name": "ada", "tags": ["x", "y"]}), 2);
    scope
}

fn render(template: Value) -> Result<Value, TemplateError> {
    let template = Template::compile(&template).unwrap_or_else(|problems| panic!("{template}: {problems:?}"));
    let scope = example();
    let value = template.render(&scope)?;
    let text = template.render_json(&scope)?;
    assert_eq!(text.value(), value, "both ways to render give the same");
    assert_eq!(text.as_str(), value.to_string(), "and the text is compact");
    Ok(value)
}

fn problems(template: Value) -> Vec<String> {
    Template::compile(&template).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn whole_expressions_keep_their_type_and_others_become_text() {
    for (text, expected) in [
        ("{{ input.n }}", json!(3)),
        ("  {{ input.n }}\n", json!(3)),
        ("{{ input.n + 1 }}", json!(4)),
        ("{{ input.big }}", json!(u64::MAX)),
        ("{{ input.f }}", json!(1.5)),
        ("{{ input.none }}", json!(null)),
        ("{{ input[\"c d\"][\"e-f\"][2].g }}", json!(true)),
        ("{{ input['c d']['e-f'][-1] }}", json!({"g": true})),
        ("{{ item.tags.1 }}", json!("y")),
        ("{{ input.word[1] }}", json!("é")),
        ("{{ tasks.count.output }}", json!({"n": 41, "total": 7})),
        ("{{ tasks.fetch-robots.output.ok }}", json!(true)),
        ("{{ tasks.fetch-robots.output.n-1 }}", json!(4)),
        ("{{ tasks[\"fetch-robots\"].output.n * 2 }}", json!(10)),
        ("{{ tasks.count.output.n - tasks.fetch-robots.output.n }}", json!(36)),
        ("n={{ input.n }}", json!("n=3")),
        ("{{ input.n }}{{ input.n }}", json!("33")),
        ("{{ input.none }}/{{ tasks.fetch-robots.output.ok }}/{{ input.f }}", json!("null/true/1.5")),
        ("got {{ item.name | upper }} of {{ tasks.count.output.total }}", json!("got ADA of 7")),
        ("{{ item_index }}: {{ item.tags }}", json!("2: [\"x\",\"y\"]")),
        ("\"{{ input.quote }}\"\t", json!("\"a \"b\"\n\\ é\"\t")),
        ("{{ input.quote ~ '!' }}", json!("a \"b\"\n\\ é!")),
        ("{{ '{{' }} x }}", json!("{{ x }}")),
        ("{{ {'a': [input.n, null, true]} }}", json!({"a": [3, null, true]})),
        ("{{ input.source | normalize_url }}", json!("https://example.org/?a=2&b=1")),
        ("{{ input.source | host }}", json!("example.org")),
        ("{{ tasks.count.output | json }}", json!("{\"n\":41,\"total\":7}")),
        ("{{ 'a b' | urlencode }}", json!("a%20b")),
        ("{{ range(3) | list }}", json!([0, 1, 2])),
        ("{{ range(3) }}", json!([0, 1, 2])),
        ("{{ tasks | length }}", json!(3)),
        ("{{ tasks | list }}", json!(["count", "fetch-robots", "skipped"])),
        ("{{ 'count' in tasks }}", json!(true)),
        ("{{ (tasks).count.output.n }}", json!(41)),
        ("{{ input.nothing | default(1) }}", json!(1)),
        ("{{ tasks.skipped.output.n | default(0) }}", json!(0)),
        ("{{ input.nothing is defined }}", json!(false)),
        ("{{ 'yes' if input.n > 5 else 'no' }}", json!("no")),
        ("{{ 'yes' if input.n > 5 }}", json!(null)),
        ("{{ input.none == null and input.none is none }}", json!(true)),
        ("{{ [1, 'a', true, null, [2.5]] | join('-') }}", json!("1-a-true-null-[2.5]")),
        ("{{ input.none | string }}", json!("null")),
        ("{{ item.name | replace('a', 'oo') }}", json!("oodoo")),
        ("{{ [1, 2, 3] | batch(2, 0) }}", json!([[1, 2], [3, 0]])),
        ("{{ [{'a': 1}, {'a': 2}] | map(attribute='a') | sum }}", json!(3)),
        ("{{ item.tags | tojson }}", json!("[\"x\",\"y\"]")),
        ("{{ 7 / 2 }}", json!(3.5)),
        ("{{ 7 // 2 }}", json!(3)),
    ] {
        assert_eq!(render(json!(text)), Ok(expected), "{text}");
    }
}

#[test]
fn values_nest_and_field_names_are_no_templates() {
    let template = json!({
        "url": "{{ input.source }}",
        "{{ input.n }}": ["plain", 1, null, {"deep": "{{ item.name }}!", "ok": false}],
        "q\"": "{{ input.n }}",
    });
    assert_eq!(
        render(template),
        Ok(json!({
            "url": "https://Example.org/?b=1&a=2",
            "{{ input.n }}": ["plain", 1, null, {"deep": "ada!", "ok": false}],
            "q\"": 3,
        }))
    );
}

#[test]
fn literals_need_no_scope() {
    let source = json!({"a": [1, 2.5, "x", "{% and ${#b}", null]});
    let template = Template::compile(&source).unwrap();
    assert!(template.is_literal());
    assert_eq!(template.source(), &source);
    assert_eq!(template.references().count(), 0);
    assert_eq!(template.render_json(&Scope::new(Map::new())).unwrap().as_str(), source.to_string());
    assert!(!Template::compile(&json!("{{ 1 }}")).unwrap().is_literal());
    assert_eq!(render(source.clone()), Ok(source));
}

#[test]
fn text_for_keys_has_no_quotes() {
    for (text, expected) in
        [("{{ input.n }}", "3"), ("{{ item.name }}", "ada"), ("k-{{ item.name }}", "k-ada"), ("k", "k")]
    {
        let template = Template::compile(&json!(text)).unwrap();
        assert_eq!(template.render_text(&example()).as_deref(), Ok(expected));
    }
}

#[test]
fn errors_name_the_expression_and_what_it_saw() {
    for (text, expected) in [
        (
            "{{ tasks.count.output.files }}",
            r#"{{ tasks.count.output.files }}: tasks.count.output has no field "files"; it is {"n":41,"total":7}"#,
        ),
        ("x {{ input.none.a }}", r#"{{ input.none.a }}: input.none has no field "a"; it is null"#),
        ("{{ item.tags[2] }}", r#"{{ item.tags[2] }}: item.tags has no item 2; it is ["x","y"]"#),
        ("{{ item.tags[-3] }}", r#"{{ item.tags[-3] }}: item.tags has no item -3; it is ["x","y"]"#),
        ("{{ item.tags['0'] }}", r#"{{ item.tags['0'] }}: item.tags has no field "0"; it is ["x","y"]"#),
        ("{{ item[0] }}", r#"{{ item[0] }}: item has no item 0; it is {"name":"ada","tags":["x","y"]}"#),
        (
            "{{ imput.n }}",
            r#"{{ imput.n }}: there is no "imput" here; here are input, job, tasks, item, item_index"#,
        ),
        (
            "{{ tasks.count.output.m + 1 }}",
            r#"{{ tasks.count.output.m + 1 }}: tasks.count.output has no field "m"; tasks.count.output is {"n":41,"total":7}"#,
        ),
        ("{{ imput.n + 1 }}", r#"{{ imput.n + 1 }}: there is no "imput" here"#),
        ("{{ [input.nothing] }}", r#"{{ [input.nothing] }}: input has no field "nothing"; input is {"big""#),
        ("{{ [1][2] }}", "{{ [1][2] }}: uses a value that does not exist"),
        (
            "{{ input.n + item.name }}",
            r#"{{ input.n + item.name }}: tried to use + operator on unsupported types number and string; input.n is 3, item.name is "ada""#,
        ),
        ("{{ input.n | host }}", "a string is needed, not number; input.n is 3"),
        ("{{ item.name ~ 'ftp://x' | host }}", "only http and https"),
        ("{{ 1.0 / 0 }}", "{{ 1.0 / 0 }}: "),
        ("{{ input.missing | join(',') }}", "has no field \"missing\""),
        ("{{ input.missing | json }}", "has no field \"missing\""),
        ("{{ input.missing | host }}", "has no field \"missing\""),
        ("{{ 2 ** 100 }}", "is not a number that JSON has"),
        ("{{ dict }}", "there is no \"dict\" here"),
        ("{{ (dict) }}", "not data"),
        ("{{ 'x' * 20000000 }}", "larger than 16 MiB"),
        ("{{ [0] * 90000000 }}", "larger than 16 MiB"),
    ] {
        let error = render(json!(text)).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_long_value_or_expression_is_cut_in_an_error() {
    let scope = scope(json!({"input": {"list": vec!["é"; 10_000]}}));
    let source = format!("input.list.{}", "x".repeat(1000));
    let error = Expression::compile(&source).unwrap().value(&scope).unwrap_err();
    assert!(error.expression.len() <= 203 && error.seen.len() <= 210, "{error}");
    assert!(error.seen.ends_with("..."), "{error}");
}

#[test]
fn a_rendered_value_is_bounded() {
    let scope = scope(json!({"input": "x".repeat(1 << 20)}));
    let error = Template::compile(&json!(vec!["{{ input }}"; 20])).unwrap().render_json(&scope).unwrap_err();
    assert!(error.to_string().contains("larger than 16 MiB"), "{error}");
}

#[test]
fn all_problems_are_told_at_once_with_their_place() {
    assert_eq!(
        problems(json!({"json": {"file": "{{ a", "b c": "{{ 1 + }}"}, "list": [1, "{% if x %}", "{{ x | uper }}"]})),
        [
            "[\"b c\"]: {{ 1 + }}: unexpected end of input, expected expression",
            ".json.file: `{{` is never closed, or a bracket or quote inside it is not",
            ".list[1]: `{% %}` blocks are not supported: write expressions as `{{ ... }}`, with `a if b else c` for a choice",
            ".list[2]: {{ x | uper }}: there is no filter \"uper\"",
        ]
        .map(|text| text.replace("[\"b c\"]:", ".json[\"b c\"]:"))
    );
    for (text, expected) in [
        ("{{ x is odds }}", "no test \"odds\""),
        ("{{ now() }}", "no function \"now\""),
        ("{{ x.upper() }}", "no methods such as \"upper\""),
        ("{{ debug() }}", "no function \"debug\""),
        ("{{ a b }}", "unexpected"),
        ("{{ not }}", "unexpected"),
    ] {
        let found = problems(json!(text));
        assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
    }
    let deep = (0..MAX_NESTING + 1).fold(json!("{{ a }}"), |inner, _| json!([inner]));
    assert!(problems(deep)[0].contains("deeper than 64"));
    let fits = (0..MAX_NESTING).fold(json!("{{ a }}"), |inner, _| json!([inner]));
    assert!(Template::compile(&fits).is_ok());
}

#[test]
fn no_expression_overflows_the_stack() {
    let chains = [
        ("a", "+a"),
        ("(a)", ".b"),
        ("(a)", "[0]"),
        ("a", "|abs"),
        ("a", " if a"),
        ("a", " is odd"),
        ("a", "**a"),
        ("a", " and a"),
        ("a", "~a"),
        ("range", "()"),
        ("a", ".b"),
    ];
    for (start, link) in chains {
        for count in [200, 15_000] {
            let problem = Expression::compile(&format!("{start}{}", link.repeat(count))).err();
            assert_eq!(problem.is_some(), count > 200, "{start}{link}: {problem:?}");
        }
    }
    for (open, close) in [("not ", ""), ("-", ""), ("(", ")"), ("[", "]"), ("{1:", "}"), ("a if a else ", "")]
    {
        let nested = |count| format!("{}a{}", open.repeat(count), close.repeat(count));
        assert!(Expression::compile(&nested(60)).is_ok(), "{open}");
        assert!(Expression::compile(&nested(5000)).is_err(), "{open}");
    }
}

#[test]
fn no_filter_makes_much_out_of_little() {
    let scope = scope(json!({"input": {"text": "a".repeat(1 << 20), "list": vec![1; 1 << 18]}}));
    for source in [
        "input.text | replace('', input.text)",
        "input.text | replace('a', input.text)",
        "input.list | join(input.text)",
        "input.list | batch(10 ** 12, 'x')",
    ] {
        assert!(Expression::compile(source).unwrap().value(&scope).is_err(), "{source}");
    }
    for source in ["input.list | select('in', input.list)", "(['x'] * 1000) | reject('in', input.text)"] {
        let error = Expression::compile(source).unwrap().value(&scope).unwrap_err();
        assert_eq!(error.reason, "takes too many steps", "{source}");
    }
    let batches = Expression::compile("input.list | batch(10 ** 12) | length").unwrap().value(&scope);
    assert_eq!(batches, Ok(json!(1)));
    assert!(Expression::compile("input.text | indent(10 ** 12)").is_err());
}

#[test]
fn slices_go_forward_only() {
    assert_eq!(render(json!("{{ [1, 2, 3][1:] }}")), Ok(json!([2, 3])));
    assert_eq!(render(json!("{{ [1, 2, 3][::2] }}")), Ok(json!([1, 3])));
    assert_eq!(render(json!("{{ [][::2] }}")), Ok(json!([])));
    assert_eq!(render(json!("{{ [] | reverse }}")), Ok(json!([])));
    let refused = "{{ [][::-1] }}: a slice goes forward, as in `list[1:3]` or `list[::2]`, not by `-1`; see `| reverse`";
    assert_eq!(problems(json!("{{ [][::-1] }}")), [refused]);
}

#[test]
fn nothing_is_divisible_by_zero() {
    assert_eq!(render(json!("{{ 6 is divisibleby(3) and 6 is divisibleby(-1) }}")), Ok(json!(true)));
    assert_eq!(render(json!("{{ (-(2 ** 126) * 2) is divisibleby(-1) }}")), Ok(json!(true)));
    let error = render(json!("{{ 6 is divisibleby(0) }}")).unwrap_err();
    assert_eq!(error.reason, "nothing is divisible by zero");
}

#[test]
fn references_are_told_with_their_place() {
    let template = Template::compile(&json!({
        "a": "{{ tasks.count.output.n }} and {{ input['c d'] | length }}",
        "b": ["{{ item if item_index > 0 else job.id }}"],
    }))
    .unwrap();
    let found: Vec<_> =
        template.references().map(|(at, found)| format!("{at} {}", found.names().join("/"))).collect();
    assert_eq!(
        found,
        [".a tasks/count/output/n", ".a input/c d", ".b[0] item", ".b[0] item_index", ".b[0] job/id"]
    );
}

#[test]
fn conditions_go_with_and_without_braces() {
    for (text, holds) in [
        ("{{ input.n > 2 }}", true),
        (" input.n > 3 ", false),
        ("input.n", true),
        ("input.none", false),
        ("input.empty", false),
        ("tasks.skipped.output", false),
        ("tasks.fetch-robots.output.ok and not input.empty", true),
        ("input.word[0]", true),
        ("0.0", false),
        ("''", false),
        ("{'a': 1}", true),
    ] {
        assert_eq!(Expression::compile(text).unwrap().holds(&example()), Ok(holds), "{text}");
    }
    assert!(Expression::compile("input.missing").unwrap().holds(&example()).is_err());
    for (text, expected) in [
        ("", "is empty"),
        ("{{ a }} and {{ b }}", "must be one expression"),
        ("{{ a", "never closed"),
        ("a and", "unexpected"),
    ] {
        let problem = Expression::compile(text).unwrap_err();
        assert!(problem.at.is_empty() && problem.message.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn one_scope_serves_many_items() {
    let mut scope = scope(json!({"input": {"prefix": "p"}, "tasks": {}}));
    let template =
        Template::compile(&json!({"id": "{{ input.prefix ~ item.n }}", "at": "{{ item_index }}"})).unwrap();
    assert!(template.render_json(&scope).unwrap_err().reason.contains("\"item_index\""));
    for index in 0..1000 {
        scope.set_item(json!({"n": index * 2}), index);
        let rendered = template.render_json(&scope).unwrap();
        assert_eq!(rendered.as_str(), format!("{{\"at\":{index},\"id\":\"p{}\"}}", index * 2));
    }
}

#[test]
fn compiled_templates_go_between_threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    shared(&Template::compile(&json!("{{ 1 + 1 }}")).unwrap());
    shared(&Expression::compile("1 + 1").unwrap());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Floats that serde_json reads back exactly without its `float_roundtrip`.
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "\\PC{0,30}".prop_map(Value::from),
        "[\\x00-\\x7f]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The fast way and the engine give the same value, or the same reason for none.
    #[test]
    fn references_mean_the_same_to_the_engine(
        value in any_json(), path in "input(\\.[a-c]|\\[-?[0-3]\\]|\\[\"[a-c]\"\\]|\\.[0-2]){0,4}",
    ) {
        let scope = scope(json!({"input": value}));
        let fast = Expression::compile(&path).unwrap().value(&scope);
        let engine = Expression::compile(&format!("({path})")).unwrap().value(&scope);
        match (fast, engine) {
            (Err(fast), Err(engine)) => prop_assert_eq!(fast.reason, engine.reason),
            (fast, engine) => prop_assert_eq!(fast, engine),
        }
    }

    /// Whatever stands in the scope, the rendered text is that JSON.
    #[test]
    fn values_come_out_as_they_went_in(value in any_json()) {
        let scope = scope(json!({"input": value}));
        let template = Template::compile(&json!(["{{ input }}", "<{{ input }}>", "{{ [input] }}"])).unwrap();
        let rendered: Value = template.render_json(&scope).unwrap().read().unwrap();
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        prop_assert_eq!(rendered, json!([value, format!("<{text}>"), [value]]));
    }

    /// Text without braces is itself.
    #[test]
    fn plain_values_are_literals(value in any_json()) {
        if !value.to_string().contains("{{") && !value.to_string().contains("%}") && !value.to_string().contains("#}") {
            let template = Template::compile(&value).unwrap();
            prop_assert!(template.is_literal());
            prop_assert_eq!(template.render_json(&Scope::new(Map::new())).unwrap().value(), value);
        }
    }

    #[test]
    fn no_source_panics(text in "(\\{\\{|\\}\\}|[a-c'\"()|.+~ \\[\\]0-9]|is |if |tasks\\.|input\\.){0,30}") {
        let scope = scope(json!({"input": {"a": 1}, "tasks": {"a": {}}}));
        if let Ok(template) = Template::compile(&json!(text)) {
            let _ = template.render_json(&scope);
        }
    }
}
