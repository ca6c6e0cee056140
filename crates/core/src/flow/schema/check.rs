//! A value against the rules: everything that does not fit, each with its place.

use super::{Additional, InputSchema, MAX_ERRORS, Rules, Type, canonical, whole};
use crate::flow::template::shown;
use crate::job::FieldError;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Write;

impl InputSchema {
    /// Everything that is wrong with an input, at most [`MAX_ERRORS`] things. Fields are named from
    /// the root: `input.files[0].name`.
    pub fn check(&self, input: &Value) -> Vec<FieldError> {
        let mut checker = Checker { path: "input".to_owned(), errors: vec![] };
        checker.value(&self.root, input);
        checker.errors
    }
}

struct Checker {
    path: String,
    errors: Vec<FieldError>,
}

impl Checker {
    fn error(&mut self, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(FieldError::new(self.path.as_str(), message));
        }
    }

    fn at_field(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let parent = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        check(self);
        self.path.truncate(parent);
    }

    fn value(&mut self, rules: &Rules, value: &Value) {
        if let Some(types) = &rules.types
            && !types.iter().any(|wanted| is(value, *wanted))
        {
            let wanted: Vec<_> = types.iter().map(|wanted| wanted.phrase()).collect();
            return self.error(format!("must be {}, is {}", wanted.join(" or "), shown(value)));
        }
        if let Some(values) = &rules.one_of {
            let mut text = String::new();
            canonical(value, &mut text);
            if !values.iter().any(|(_, allowed)| *allowed == text) {
                let allowed: Vec<_> = values.iter().map(|(value, _)| shown(value)).collect();
                return self.error(format!("must be {}, is {}", allowed.join(" or "), shown(value)));
            }
        }
        match value {
            Value::Object(fields) => self.object(rules, fields),
            Value::Array(items) => self.array(rules, items),
            Value::String(text) => self.string(rules, text),
            Value::Number(number) => self.number(rules, number),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn object(&mut self, rules: &Rules, fields: &Map<String, Value>) {
        for name in rules.required.iter().filter(|name| !fields.contains_key(*name)) {
            self.at_field(name, |checker| checker.error("is required"));
        }
        for (name, field) in fields {
            let rules = match (rules.properties.get(name), &rules.additional) {
                (Some(rules), _) => rules,
                (None, Additional::Like(rules)) => rules,
                (None, Additional::Any) => continue,
                (None, Additional::None) => {
                    let known: Vec<_> = rules.properties.keys().map(String::as_str).collect();
                    let message = format!("is not a known field; known are: {}", known.join(", "));
                    self.at_field(name, |checker| checker.error(message));
                    continue;
                }
            };
            self.at_field(name, |checker| checker.value(rules, field));
        }
    }

    fn array(&mut self, rules: &Rules, items: &[Value]) {
        let count = items.len() as u64;
        if let Some(min) = rules.item_count.min.filter(|min| count < *min) {
            self.error(format!("must have at least {min} items, has {count}"));
        }
        if let Some(max) = rules.item_count.max.filter(|max| count > *max) {
            self.error(format!("must have at most {max} items, has {count}"));
        }
        if rules.unique {
            self.unique(items);
        }
        if let Some(rules) = &rules.items {
            for (nth, item) in items.iter().enumerate() {
                let parent = self.path.len();
                let _ = write!(self.path, "[{nth}]");
                self.value(rules, item);
                self.path.truncate(parent);
            }
        }
    }

    fn unique(&mut self, items: &[Value]) {
        let mut seen = HashSet::with_capacity(items.len());
        let twice = items.iter().find(|item| {
            let mut text = String::new();
            canonical(item, &mut text);
            !seen.insert(text)
        });
        if let Some(item) = twice {
            self.error(format!("must not have an item twice, has {}", shown(item)));
        }
    }

    fn string(&mut self, rules: &Rules, text: &str) {
        if rules.length.min.is_some() || rules.length.max.is_some() {
            let length = text.chars().count() as u64;
            if let Some(min) = rules.length.min.filter(|min| length < *min) {
                self.error(format!("must have at least {min} characters, has {length}"));
            }
            if let Some(max) = rules.length.max.filter(|max| length > *max) {
                self.error(format!("must have at most {max} characters, has {length}"));
            }
        }
        if rules.is_uri
            && let Err(problem) = url::Url::parse(text)
        {
            self.error(format!("must be a URI such as https://example.org/: {problem}"));
        }
    }

    fn number(&mut self, rules: &Rules, number: &Number) {
        use Ordering::{Equal, Greater, Less};
        for (limit, fits, words) in [
            (&rules.minimum, &[Greater, Equal][..], "at least"),
            (&rules.maximum, &[Less, Equal], "at most"),
            (&rules.above, &[Greater], "more than"),
            (&rules.below, &[Less], "less than"),
        ] {
            if let Some(limit) = limit
                && !compare(number, limit).is_some_and(|order| fits.contains(&order))
            {
                self.error(format!("must be {words} {limit}, is {number}"));
            }
        }
    }
}

fn is(value: &Value, wanted: Type) -> bool {
    match (wanted, value) {
        (Type::Integer, Value::Number(number)) => {
            whole(number).is_some() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
        }
        (Type::String, Value::String(_))
        | (Type::Number, Value::Number(_))
        | (Type::Boolean, Value::Bool(_))
        | (Type::Object, Value::Object(_))
        | (Type::Array, Value::Array(_))
        | (Type::Null, Value::Null) => true,
        _ => false,
    }
}

/// Whole numbers are compared exactly, all others as floats.
fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}
