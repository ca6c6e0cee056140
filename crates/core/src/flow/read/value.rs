//! Single values: what a field must be, and what to say where it is something else.

use crate::flow::def::JoinRule;
use crate::flow::document::{Kind, Node};
use crate::human::parse_span;
use crate::limit::LimitKey;
use crate::order::Priority;
use crate::spec::{MAX_NAME, is_name};
use crate::time::Millis;
use serde::Deserialize;
use serde_json::Value;

/// What a node is, for the second half of "must be a text, is a list".
pub fn found(node: &Node) -> &'static str {
    match &node.kind {
        Kind::Null => "is empty",
        Kind::Bool(_) => "is true or false",
        Kind::Number(_) => "is a number",
        Kind::Text(_) => "is a text",
        Kind::List(_) => "is a list",
        Kind::Map(_) => "is a map",
    }
}

/// A text.
pub fn text(node: &Node) -> Result<String, String> {
    match &node.kind {
        Kind::Text(text) => Ok(text.clone()),
        Kind::Bool(_) | Kind::Number(_) => Err(format!("must be a text, {}; put it in quotes", found(node))),
        _ => Err(format!("must be a text, {}", found(node))),
    }
}

/// The name of a flow, handler or queue.
pub fn name(node: &Node) -> Result<String, String> {
    let name = text(node)?;
    if is_name(&name) {
        Ok(name)
    } else {
        Err(format!("{name:?} is not a name: use letters, digits and . _ - /, at most {MAX_NAME} of them"))
    }
}

/// Whether `kind` may stand before the colon of a limit key.
pub fn is_limit_kind(kind: &str) -> bool {
    !kind.contains(':') && LimitKey::new(kind, "x").is_ok()
}

/// A whole number.
pub fn whole(node: &Node) -> Result<u32, String> {
    number(node, 0, u32::MAX)
}

/// A whole number that is not zero.
pub fn counted(node: &Node) -> Result<u32, String> {
    number(node, 1, u32::MAX)
}

/// A whole number of percent.
pub fn percent(node: &Node) -> Result<u8, String> {
    number(node, 0, 100).map(|n| n as u8)
}

fn number(node: &Node, least: u32, most: u32) -> Result<u32, String> {
    let Kind::Number(number) = &node.kind else {
        return Err(format!("must be a whole number, {}", found(node)));
    };
    let whole = number.as_u64().and_then(|n| u32::try_from(n).ok());
    whole
        .filter(|n| (least..=most).contains(n))
        .ok_or_else(|| format!("must be a whole number from {least} to {most}, is {number}"))
}

/// Yes or no.
pub fn flag(node: &Node) -> Result<bool, String> {
    match node.kind {
        Kind::Bool(flag) => Ok(flag),
        _ => Err(format!("must be true or false, {}", found(node))),
    }
}

/// A span of time; a bare number is seconds.
pub fn span(node: &Node) -> Result<Millis, String> {
    match &node.kind {
        Kind::Text(text) => parse_span(text).map_err(|error| error.to_string()),
        Kind::Number(number) => Millis::deserialize(number).map_err(|_| {
            format!("must be a span of time such as \"30s\" or a number of seconds, is {number}")
        }),
        _ => Err(format!("must be a span of time such as \"30s\", {}", found(node))),
    }
}

/// A priority.
pub fn priority(node: &Node) -> Result<Priority, String> {
    text(node)?.parse().map_err(|error: crate::order::BadPriority| error.to_string())
}

/// A join rule.
pub fn join(node: &Node) -> Result<JoinRule, String> {
    let word = text(node)?;
    JoinRule::from_word(&word).ok_or_else(|| {
        format!("{word:?} is not a join rule; it is all_completed, all_done (also: always) or any_failed")
    })
}

/// A JSON Schema, as far as its form goes.
pub fn schema(node: &Node) -> Result<Value, String> {
    match node.kind {
        Kind::Map(_) => Ok(node.to_value()),
        _ => Err(format!("must be a JSON Schema such as {{ type: object }}, {}", found(node))),
    }
}

/// What a task is repeated over: a template, or the list itself.
pub fn items(node: &Node) -> Result<Value, String> {
    match node.kind {
        Kind::Text(_) | Kind::List(_) => Ok(node.to_value()),
        _ => Err(format!("must be a list or a template that gives one, {}", found(node))),
    }
}

/// Anything, nothing included.
pub fn any(node: &Node) -> Result<Value, String> {
    Ok(node.to_value())
}
