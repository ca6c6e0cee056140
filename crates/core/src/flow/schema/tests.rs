use super::*;
use proptest::prelude::*;
use serde_json::json;

fn schema(value: Value) -> InputSchema {
    InputSchema::compile(&value).unwrap()
}

fn errors(rules: Value, input: Value) -> Vec<String> {
    schema(rules).check(&input).iter().map(ToString::to_string).collect()
}

#[test]
fn every_keyword_says_yes_and_no() {
    for (rules, good, bad, message) in [
        (json!({"type": "string"}), json!("x"), json!(3), "must be a string, is 3"),
        (json!({"type": "integer"}), json!(3.0), json!(3.5), "must be a whole number, is 3.5"),
        (json!({"type": "integer"}), json!(u64::MAX), json!("3"), "whole number"),
        (json!({"type": "number"}), json!(3), json!(null), "must be a number, is null"),
        (json!({"type": "boolean"}), json!(false), json!(0), "true or false"),
        (json!({"type": "array"}), json!([]), json!({}), "must be a list, is {}"),
        (json!({"type": ["string", "null"]}), json!(null), json!([]), "must be a string or null, is []"),
        (json!({"enum": ["a", 1]}), json!(1.0), json!("b"), "must be \"a\" or 1, is \"b\""),
        (json!({"enum": [{"a": 1, "b": [2]}]}), json!({"b": [2.0], "a": 1}), json!({"a": 1}), "must be {"),
        (json!({"const": "on"}), json!("on"), json!("off"), "must be \"on\", is \"off\""),
        (json!({"minimum": 2}), json!(2), json!(1.9), "at least 2, is 1.9"),
        (json!({"maximum": 2.5}), json!(2.5), json!(3), "at most 2.5"),
        (json!({"exclusiveMinimum": 0}), json!(0.1), json!(0), "more than 0"),
        (json!({"exclusiveMaximum": 9}), json!("text"), json!(9), "less than 9"),
        (json!({"maximum": u64::MAX - 1}), json!(u64::MAX - 1), json!(u64::MAX), "at most"),
        (json!({"minLength": 2}), json!("éé"), json!("é"), "at least 2 characters, has 1"),
        (json!({"maxLength": 1}), json!("é"), json!("ab"), "at most 1 characters"),
        (json!({"minItems": 1}), json!([0]), json!([]), "at least 1 items, has 0"),
        (json!({"maxItems": 1}), json!({"a": 1, "b": 2}), json!([1, 2]), "at most 1 items"),
        (json!({"uniqueItems": true}), json!([1, "1", [1]]), json!([1, 2, 1.0]), "twice, has 1.0"),
        (json!({"uniqueItems": false}), json!([1, 1]), json!(null), ""),
        (json!({"format": "uri"}), json!("s3://bucket/x"), json!("bucket"), "must be a URI"),
        (json!({"format": "email"}), json!("not checked"), json!(null), ""),
        (
            json!({"title": "T", "description": "D", "default": 1, "examples": []}),
            json!("x"),
            json!(null),
            "",
        ),
    ] {
        assert_eq!(errors(rules.clone(), good.clone()), Vec::<String>::new(), "{rules} {good}");
        let found = errors(rules.clone(), bad.clone());
        assert_eq!(found.len(), usize::from(!message.is_empty()), "{rules} {bad}: {found:?}");
        assert!(found.iter().all(|error| error.contains(message)), "{rules} {bad}: {found:?}");
    }
}

#[test]
fn all_errors_are_told_each_with_its_place() {
    let rules = json!({
        "type": "object",
        "required": ["source", "mode"],
        "properties": {
            "source": {"type": "string", "format": "uri"},
            "files": {"items": {"type": "object", "required": ["name"], "properties": {"size": {"minimum": 0}}}},
        },
        "additionalProperties": false,
    });
    assert_eq!(
        errors(rules, json!({"source": "x", "files": [{"name": "a"}, {"size": -1}, 3], "sorce": 1})),
        [
            "input.mode: is required",
            "input.files[1].name: is required",
            "input.files[1].size: must be at least 0, is -1",
            "input.files[2]: must be an object, is 3",
            "input.sorce: is not a known field; known are: files, source",
            "input.source: must be a URI such as https://example.org/: relative URL without a base",
        ]
    );
    assert_eq!(errors(json!({"type": "object"}), json!(null)), ["input: must be an object, is null"]);
    let additional = json!({"additionalProperties": {"type": "integer"}});
    assert_eq!(errors(additional, json!({"a": 1, "b": "x"})), ["input.b: must be a whole number, is \"x\""]);
    let many = json!({"items": {"type": "string"}});
    assert_eq!(errors(many, json!(vec![0; 1000])).len(), MAX_ERRORS);
}

#[test]
fn all_that_is_wrong_with_a_schema_is_told() {
    let problems = InputSchema::compile(&json!({
        "type": "text",
        "requird": ["a"],
        "required": "a",
        "properties": {"a": {"minimum": "1", "minLength": -1, "format": "ipv4"}, "b": 3},
        "items": {"oneOf": []},
        "enum": [],
        "uniqueItems": 1,
        "title": 2,
    }))
    .unwrap_err();
    let mut paths: Vec<_> = problems.iter().map(|(path, _)| path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            ".enum",
            ".items.oneOf",
            ".properties.a.format",
            ".properties.a.minLength",
            ".properties.a.minimum",
            ".properties.b",
            ".requird",
            ".required",
            ".title",
            ".type",
            ".uniqueItems",
        ]
    );
    let message =
        |at: &str| problems.iter().find(|(path, _)| path == at).map(|(_, message)| message.as_str());
    assert!(message(".items.oneOf").unwrap().contains("additionalProperties"));
    assert!(message(".type").unwrap().contains("not \"text\""));

    assert!(InputSchema::compile(&json!([])).is_err());
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
    assert!(InputSchema::compile(&deep).unwrap_err()[0].1.contains("64 levels"));
}

#[test]
fn a_validator_can_ask_for_fields() {
    let closed = schema(json!({
        "additionalProperties": false,
        "properties": {
            "source": {"type": "string"},
            "options": {"properties": {"deep": {}}, "additionalProperties": false},
        },
    }));
    assert_eq!(closed.property_names().collect::<Vec<_>>(), ["options", "source"]);
    assert_eq!(closed.declares("source"), Declared::Yes);
    assert_eq!(closed.declares("sorce"), Declared::No);
    for (path, allowed) in [
        (&["source"][..], true),
        (&["sorce"], false),
        (&["source", "x"], false),
        (&["options", "deep", "any", "thing"], true),
        (&["options", "deap"], false),
        (&[], true),
    ] {
        assert_eq!(closed.allows(path), allowed, "{path:?}");
    }
    let open = schema(json!({"properties": {"a": {}}, "additionalProperties": {"type": ["object", "null"]}}));
    assert_eq!(open.declares("b"), Declared::Open);
    assert!(open.allows(&["b", "c"]));
    assert!(!schema(json!({"additionalProperties": {"type": "string"}})).allows(&["b", "c"]));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        (-3i32..3).prop_map(|n| Value::from(f64::from(n))),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_fits_a_schema_that_lists_it(value in any_json(), other in any_json()) {
        let rules = schema(json!({"enum": [other, value]}));
        prop_assert_eq!(rules.check(&value), vec![]);
        prop_assert_eq!(rules.check(&other), vec![]);
    }

    #[test]
    fn no_schema_and_no_value_panic(rules in any_json(), value in any_json()) {
        if let Ok(rules) = InputSchema::compile(&rules) {
            rules.check(&value);
        }
    }
}
