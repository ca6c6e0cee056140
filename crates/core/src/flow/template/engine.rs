//! The expressions that are more than a reference: how minijinja is set up, and values in and out.
//!
//! Strict: what is not defined is an error wherever it is used, except behind `is defined` and
//! `| default(...)`. Bounded: by the length of the source, the steps that it may take ([`FUEL`]) and
//! the size of its result ([`MAX_RESULT`]).

use super::filters;
use minijinja::value::{Value as Dynamic, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// How many instructions one evaluation may take.
const FUEL: u64 = 100_000;

/// How deep evaluation may nest.
const MAX_DEPTH: usize = 64;

/// The largest result of an expression and the largest rendered value, in bytes: what expressions
/// make of small inputs (`"x" * input.n`) must not fill the memory.
pub(super) const MAX_RESULT: usize = 16 << 20;

pub(super) fn too_large() -> String {
    format!("the result is larger than {} MiB", MAX_RESULT >> 20)
}

/// A compiled expression.
pub(super) type Compiled = minijinja::Expression<'static, 'static>;

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failed {
    /// Something was used that does not exist.
    Undefined,
    /// For the reason told.
    Because(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::UndefinedError => Failed::Undefined,
            ErrorKind::OutOfFuel => Failed::Because("takes too many steps".to_owned()),
            _ => Failed::Because(message(&error)),
        }
    }
}

fn message(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::InvalidOperation | ErrorKind::SyntaxError, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(MAX_DEPTH);
        environment.remove_global("debug");
        environment.remove_global("namespace");
        environment.add_global("null", ());
        filters::install(&mut environment);
        environment
    })
}

/// Compiles an expression.
pub(super) fn compile(source: &str) -> Result<Compiled, String> {
    environment().compile_expression_owned(source.to_owned()).map_err(|error| message(&error))
}

/// Whether there is a filter of this name.
pub(super) fn has_filter(name: &str) -> bool {
    let called = environment().empty_state().apply_filter(name, &[]);
    !called.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter)
}

/// Whether there is a test of this name.
pub(super) fn has_test(name: &str) -> bool {
    let called = environment().empty_state().perform_test(name, &[]);
    !called.is_err_and(|error| error.kind() == ErrorKind::UnknownTest)
}

/// Whether there is a function of this name.
pub(super) fn has_function(name: &str) -> bool {
    environment().globals().any(|(known, value)| known == name && !value.is_none())
}

/// The result of an expression.
pub(super) fn run(compiled: &Compiled, context: Dynamic) -> Result<Value, Failed> {
    guarded(|| {
        let value = compiled.eval(context)?;
        if value.is_undefined() {
            // The choice that an `if` without an `else` does not make has no value either, but it is no
            // mistake; the environment's own formatter is what tells the two apart.
            environment().empty_state().format(value)?;
            return Ok(Value::Null);
        }
        to_json(&value)
    })
}

/// A mistake in the engine fails the expression, not the store in whose transaction it is evaluated. None is known; those
/// that were found are kept from happening.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failed>) -> Result<T, Failed> {
    // What the work shares with the outside is read only, or locked by who forgives a panic (see `Lazy`).
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Failed::Because("the template engine broke on it".to_owned())))
}

/// A value for the engine.
pub(super) fn from_json(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::from(()),
        Value::Bool(value) => Dynamic::from(*value),
        Value::Number(number) => {
            let integer = number.as_i64().map(Dynamic::from).or_else(|| number.as_u64().map(Dynamic::from));
            integer.or_else(|| number.as_f64().map(Dynamic::from)).unwrap_or_default()
        }
        Value::String(text) => Dynamic::from(text),
        Value::Array(items) => items.iter().map(from_json).collect(),
        Value::Object(fields) => Dynamic::from(
            fields.iter().map(|(name, value)| (name.clone(), from_json(value))).collect::<BTreeMap<_, _>>(),
        ),
    }
}

/// A value from the engine. What has no JSON form is refused rather than turned into something else.
pub(super) fn to_json(value: &Dynamic) -> Result<Value, Failed> {
    let mut room = MAX_RESULT;
    convert(value, &mut room)
}

fn convert(value: &Dynamic, room: &mut usize) -> Result<Value, Failed> {
    let because = |reason: String| Err(Failed::Because(reason));
    let size = 8 + value.as_str().map_or(0, str::len);
    *room = match room.checked_sub(size) {
        Some(left) => left,
        None => return because(too_large()),
    };
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(Failed::Undefined),
        ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => match number(value) {
            Some(number) => Value::Number(number),
            None => return because(format!("{value} is not a number that JSON has")),
        },
        ValueKind::String => Value::String(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.checked();
            Value::Array(items.map(|item| convert(&item?, room)).collect::<Result<_, Failed>>()?)
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for key in value.try_iter()?.checked() {
                let key = key?;
                let name = match key.kind() {
                    ValueKind::String | ValueKind::Number | ValueKind::Bool => key.to_string(),
                    kind => return because(format!("a field's name must be text, not {kind}")),
                };
                *room = room.saturating_sub(name.len());
                fields.insert(name, convert(&value.get_item(&key)?, room)?);
            }
            Value::Object(fields)
        }
        kind => return because(format!("the result is not data but {kind}")),
    })
}

fn number(value: &Dynamic) -> Option<Number> {
    if value.is_integer() {
        let signed = i64::try_from(value.clone()).ok().map(Number::from);
        signed.or_else(|| u64::try_from(value.clone()).ok().map(Number::from))
    } else {
        Number::from_f64(f64::try_from(value.clone()).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_reason_like_any_other() {
        let failed = guarded::<()>(|| panic!("as the engine might"));
        assert!(
            matches!(failed, Err(Failed::Because(reason)) if reason == "the template engine broke on it")
        );
        assert!(matches!(guarded(|| Ok(1)), Ok(1)));
    }
}
