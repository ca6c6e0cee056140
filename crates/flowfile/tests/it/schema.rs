//! The JSON Schema says what the reader does.

use orchestrator_core::flow::read;
use orchestrator_flowfile::{Format, json_schema, parse};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn the_schema_has_the_fields_of_the_reader_and_no_others() {
    let schema = json_schema();
    for (at, fields) in [
        ("/properties", read::FLOW_FIELDS),
        ("/$defs/task/properties", read::TASK_FIELDS),
        ("/$defs/defaults/properties", read::DEFAULTS_FIELDS),
        ("/$defs/backoff/properties", read::BACKOFF_FIELDS),
        ("/$defs/idempotency/properties", read::IDEMPOTENCY_FIELDS),
    ] {
        let properties = schema.pointer(at).and_then(Value::as_object).expect(at);
        let named: BTreeSet<_> = properties.keys().map(String::as_str).collect();
        assert_eq!(named, fields.iter().copied().collect(), "{at}");
        for (name, field) in properties {
            for part in ["title", "description"] {
                let told = field[part].as_str().unwrap_or_default();
                assert!(!told.is_empty(), "{at}/{name} has no {part}");
            }
        }
    }
}

#[test]
fn flows_are_accepted_in_every_format() {
    for (text, format) in
        [(super::YAML, Format::Yaml), (super::JSON, Format::Json), (super::TOML, Format::Toml)]
    {
        let flow = parse(text, format).unwrap().to_value();
        assert_eq!(misfits(&flow), Vec::<String>::new(), "{format:?}");
    }
}

#[test]
fn what_the_reader_refuses_is_refused() {
    let task = |field: &str, value: Value| {
        let mut flow = json!({"flow": "f", "tasks": {"a": {"handler": "x"}}});
        flow["tasks"]["a"][field] = value;
        flow
    };
    for flow in [
        json!([]),
        json!({"flow": "f"}),
        json!({"flow": "f", "tasks": []}),
        json!({"flow": "f", "tasks": {"a": {}}}),
        json!({"flow": 1, "tasks": {"a": {"handler": "x"}}}),
        task("retires", json!(1)),
        task("retries", json!("1")),
        task("concurrency", json!(0)),
        task("join", json!("some")),
        task("needs", json!([1])),
        task("timeout", json!([])),
        task("timeout", json!(-1)),
        task("limits", json!({"host": 1})),
        task("backoff", json!({"jitter_percent": 101})),
        task("for_each", json!({})),
        task("priority", json!("urgent")),
    ] {
        assert!(!misfits(&flow).is_empty(), "{flow}");
        let document = parse(&flow.to_string(), Format::Json).unwrap();
        assert!(read::read(&document).is_err(), "{flow}");
    }
}

/// Where a flow does not fit the schema: the keywords that the schema uses for structure, no more.
fn misfits(flow: &Value) -> Vec<String> {
    let root = json_schema();
    let mut found = vec![];
    check(&root, &root, flow, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let mut refuse = |ok: bool, what: &str| {
        if !ok {
            found.push(format!("{path}: {what}"));
        }
    };
    for (keyword, rule) in schema.as_object().expect("a schema") {
        match (keyword.as_str(), value) {
            ("type", _) => refuse(is_type(rule, value), &rule.to_string()),
            ("enum", _) => refuse(rule.as_array().unwrap().contains(value), "not in the enum"),
            ("minimum", Value::Number(n)) => refuse(n.as_f64() >= rule.as_f64(), "too small"),
            ("maximum", Value::Number(n)) => refuse(n.as_f64() <= rule.as_f64(), "too large"),
            ("required", Value::Object(fields)) => {
                let names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                names.for_each(|name| refuse(fields.contains_key(name), name));
            }
            _ => {}
        }
    }
    if let Some(target) = schema["$ref"].as_str() {
        let target = root.pointer(target.trim_start_matches('#')).expect(target);
        check(root, target, value, path, found);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = |choice: &Value| {
            let mut found = vec![];
            check(root, choice, value, path, &mut found);
            found.is_empty()
        };
        if !choices.iter().any(fits) {
            found.push(format!("{path}: no choice fits"));
        }
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().for_each(|value| check(root, items, value, &format!("{path}[]"), found));
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match (schema["properties"].get(name), schema.get("additionalProperties")) {
            (Some(field), _) => check(root, field, value, &path, found),
            (None, Some(Value::Bool(false))) => found.push(format!("{path}: unknown")),
            (None, Some(other)) => check(root, other, value, &path, found),
            (None, None) => {}
        }
    }
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("one type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    }
}
