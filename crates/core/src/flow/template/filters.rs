//! Our own filters, and those of minijinja that we bound or leave out.
//!
//! A job's input comes from anybody, so no filter may make much out of little: `replace` and `join`
//! could turn a megabyte into a terabyte, and `select("in", ...)` over two long lists takes minutes. The
//! engine counts the steps of an expression, but not those that a filter takes.

use super::engine::{self, Failed, MAX_RESULT};
use crate::url;
use minijinja::value::{Value as Dynamic, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

/// Left out: each repeats what it gets as often as it is told, and none is of use for data.
const LEFT_OUT: &[&str] = &["format", "indent", "pprint", "slice"];

/// The largest batch that is filled up.
const MAX_FILLED: usize = 100_000;

/// How many items and characters the test `in` may look at in one evaluation.
const MAX_COMPARED: usize = 10_000_000;

/// Adds and bounds the filters of an environment.
pub(super) fn install(environment: &mut Environment<'static>) {
    for name in LEFT_OUT {
        environment.remove_filter(name);
    }
    environment.add_filter("normalize_url", |text: &Dynamic| url::normalize(string(text)?).map_err(refused));
    environment.add_filter("host", |text: &Dynamic| url::host(string(text)?).map_err(refused));
    environment.add_filter("json", json);
    environment.add_filter("tojson", json);
    environment.add_filter("string", text);
    environment.add_filter("join", join);
    environment.add_filter("replace", replace);
    environment.add_filter("batch", batch);
    environment.add_test("in", is_in);
    environment.add_test("divisibleby", is_divisible_by);
}

fn refused(reason: impl ToString) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason.to_string())
}

/// The text that a filter needs.
fn string(value: &Dynamic) -> Result<&str, Error> {
    match value.as_str() {
        Some(text) => Ok(text),
        None if value.is_undefined() => Err(Error::from(ErrorKind::UndefinedError)),
        None => Err(refused(format!("a string is needed, not {}", value.kind()))),
    }
}

fn bounded(size: usize) -> Result<(), Error> {
    if size <= MAX_RESULT { Ok(()) } else { Err(refused(engine::too_large())) }
}

/// A value as compact JSON.
fn json(value: &Dynamic) -> Result<String, Error> {
    match engine::to_json(value) {
        Ok(value) => Ok(value.to_string()),
        Err(Failed::Undefined) => Err(Error::from(ErrorKind::UndefinedError)),
        Err(Failed::Because(reason)) => Err(refused(reason)),
    }
}

/// A value as it is written inside a text: a string as it is, all else as compact JSON.
fn text(value: &Dynamic) -> Result<String, Error> {
    value.as_str().map_or_else(|| json(value), |text| Ok(text.to_owned()))
}

fn join(items: &Dynamic, separator: Option<&str>) -> Result<String, Error> {
    if items.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let mut joined = String::new();
    for (nth, item) in items.try_iter()?.checked().enumerate() {
        if nth > 0 {
            joined.push_str(separator.unwrap_or_default());
        }
        joined.push_str(&text(&item?)?);
        bounded(joined.len())?;
    }
    Ok(joined)
}

fn replace(text: &Dynamic, from: &Dynamic, to: &Dynamic) -> Result<String, Error> {
    let (text, from, to) = (string(text)?, string(from)?, string(to)?);
    if to.len() > from.len() {
        let growth = text.matches(from).count().saturating_mul(to.len() - from.len());
        bounded(text.len().saturating_add(growth))?;
    }
    Ok(text.replace(from, to))
}

fn batch(state: &mut State, items: Dynamic, count: usize, fill: Option<Dynamic>) -> Result<Dynamic, Error> {
    if fill.is_some() && count > MAX_FILLED {
        return Err(refused(format!("a batch that is filled up can have at most {MAX_FILLED} items")));
    }
    minijinja::filters::batch(state, items, count, fill)
}

/// How much the test `in` has looked at.
#[derive(Default)]
struct Compared(usize);

fn is_in(state: &mut State, value: &Dynamic, place: &Dynamic) -> Result<bool, Error> {
    let cost = match place.kind() {
        // A look-up.
        ValueKind::Map => 1,
        _ => place.as_str().map(str::len).or(place.len()).unwrap_or(1),
    };
    let compared = state.get_or_insert_extension(Compared::default());
    compared.0 = compared.0.saturating_add(cost);
    if compared.0 > MAX_COMPARED {
        return Err(Error::from(ErrorKind::OutOfFuel));
    }
    minijinja::tests::is_in(state, value, place)
}

/// The engine would panic: a division by zero, and by -1 an overflow.
fn is_divisible_by(value: &Dynamic, by: &Dynamic) -> Result<bool, Error> {
    match i128::try_from(by.clone()) {
        Ok(0) => Err(refused("nothing is divisible by zero")),
        Ok(-1) => Ok(minijinja::tests::is_divisibleby(value, &Dynamic::from(1))),
        _ => Ok(minijinja::tests::is_divisibleby(value, by)),
    }
}
