//! Templates: whatever the text, compiling and rendering end, and what is rendered is JSON within bounds.

use orchestrator_core::flow::template::{Expression, Scope, Template, TemplateError};
use serde_json::{Map, Value, json};

/// The largest result.
const MAX_RESULT: usize = 16 << 20;

/// The largest result that is read again.
const MAX_READ: usize = 1 << 20;

/// The longest message: it is stored with the task and shown to people.
const MAX_MESSAGE: usize = 16 << 10;

/// Takes a text as a string with expressions, and as a condition or a JSON value where it can be one. What a second
/// allows is not spent on saying the same twice.
pub fn check(text: &str) {
    let scope = scope();
    template(&Value::from(text), &scope);
    if !text.contains("{{") {
        condition(text, &scope);
    } else if let Ok(value) = serde_json::from_str(text) {
        template(&value, &scope);
    }
}

fn condition(text: &str, scope: &Scope) {
    match Expression::compile(text) {
        Ok(expression) => {
            assert!(expression.references().all(|found| !found.to_string().is_empty()));
            if let Err(error) = expression.holds(scope) {
                told(&error);
            }
        }
        Err(problem) => assert!(!problem.message.is_empty()),
    }
}

fn template(source: &Value, scope: &Scope) {
    let template = match Template::compile(source) {
        Ok(template) => template,
        Err(problems) => {
            assert!(!problems.is_empty() && problems.iter().all(|problem| !problem.message.is_empty()));
            return;
        }
    };
    assert!(!template.is_literal() || template.references().next().is_none());
    match template.render_json(scope) {
        Ok(json) => {
            assert!(json.size() <= MAX_RESULT, "{} bytes", json.size());
            // Reading much again would take longer than making it, above all where each comparison is traced.
            if json.size() <= MAX_READ {
                serde_json::from_str::<serde::de::IgnoredAny>(json.as_str()).expect("it is JSON");
                if !json.is_too_deep() {
                    assert_eq!(template.render(scope).as_ref(), Ok(&json.value()));
                }
            }
        }
        Err(error) => told(&error),
    }
}

fn told(error: &TemplateError) {
    assert!(!error.reason.is_empty());
    assert!(error.to_string().len() <= MAX_MESSAGE, "{} bytes", error.to_string().len());
}

/// A bit of everything that a job may hold.
fn scope() -> Scope {
    let base = json!({
        "input": {
            "n": 3, "f": -0.5, "big": u64::MAX, "yes": true, "no": null, "text": "a é 😀 \"q\" \\ {{ x }}",
            "url": "HTTPS://Example.org:443/a/../b?x=1#f", "list": [3, 1, 2], "names": ["b", "a"],
            "rows": [{"k": "x", "v": 1}, {"k": "y", "v": null}], "user-id": "u1", "deep": [[[[{"a": {"b": 1}}]]]],
        },
        "tasks": {
            "count": {"state": "completed", "output": {"n": 7, "files": ["one.txt", "two.txt"]}, "error": null},
            "fetch-robots": {"state": "failed", "output": null, "error": "404 not found"},
        },
        "job": {"id": "0190b5f0-0000-7000-8000-000000000007", "tenant": "acme"},
    });
    let base: Map<String, Value> = base.as_object().cloned().unwrap_or_default();
    let mut scope = Scope::new(base);
    scope.set_item(json!({"name": "it", "size": 12}), 4);
    scope
}
