//! What a flow's input must look like: a small part of JSON Schema, checked in full.
//!
//! | keyword | meaning |
//! | --- | --- |
//! | `type` | one name or a list: `string`, `number`, `integer`, `boolean`, `object`, `array`, `null` |
//! | `enum`, `const` | one of these values; exactly this value (1 and 1.0 are the same) |
//! | `properties`, `required` | the fields of an object; those that must be there |
//! | `additionalProperties` | `false`, `true`, or what fields that are not named must look like |
//! | `items`, `minItems`, `maxItems`, `uniqueItems` | the items of an array |
//! | `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum` | the range of a number |
//! | `minLength`, `maxLength` | the length of a string, in characters |
//! | `format` | `uri` is checked; `date-time` and `email` are for people |
//! | `title`, `description`, `default`, `examples` | for people; defaults are not filled in |
//!
//! As in JSON Schema, a keyword holds only for values of its type: `minLength` says nothing about a
//! number. Unlike there, any other keyword is refused: a rule that is silently not checked is worse
//! than none.

mod check;
mod compile;

use serde_json::{Number, Value};
use std::collections::BTreeMap;

/// How deep a schema may nest.
pub const MAX_DEPTH: usize = 64;

/// The most errors that one check tells.
pub const MAX_ERRORS: usize = 100;

/// What an input must look like, ready to check one.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSchema {
    root: Rules,
}

/// Whether a schema knows a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// It is among the properties.
    Yes,
    /// It is not, and no other fields are allowed.
    No,
    /// It is not, but other fields are allowed.
    Open,
}

/// The rules for one value.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rules {
    types: Option<Vec<Type>>,
    /// The allowed values as they are written, and in the form in which equal ones are the same text.
    one_of: Option<Vec<(Value, String)>>,
    properties: BTreeMap<String, Rules>,
    required: Vec<String>,
    additional: Additional,
    items: Option<Box<Rules>>,
    item_count: Bounds,
    unique: bool,
    length: Bounds,
    minimum: Option<Number>,
    maximum: Option<Number>,
    above: Option<Number>,
    below: Option<Number>,
    is_uri: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Additional {
    #[default]
    Any,
    None,
    Like(Box<Rules>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bounds {
    min: Option<u64>,
    max: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    String,
    Number,
    Integer,
    Boolean,
    Object,
    Array,
    Null,
}

impl Type {
    /// Each type, its name and how it is called in a sentence.
    const ALL: [(Type, &str, &str); 7] = [
        (Type::String, "string", "a string"),
        (Type::Number, "number", "a number"),
        (Type::Integer, "integer", "a whole number"),
        (Type::Boolean, "boolean", "true or false"),
        (Type::Object, "object", "an object"),
        (Type::Array, "array", "a list"),
        (Type::Null, "null", "null"),
    ];

    fn phrase(self) -> &'static str {
        Type::ALL.iter().find(|(known, ..)| *known == self).map_or("", |(.., phrase)| phrase)
    }
}

impl InputSchema {
    /// The names of the fields that it describes, in alphabetical order.
    pub fn property_names(&self) -> impl Iterator<Item = &str> {
        self.root.properties.keys().map(String::as_str)
    }

    /// Whether it knows a field of the input.
    pub fn declares(&self, field: &str) -> Declared {
        self.root.declares(field)
    }

    /// Whether an input that fits can have a field at this path: `["a", "b"]` for `input.a.b`.
    pub fn allows(&self, path: &[&str]) -> bool {
        let mut rules = &self.root;
        for name in path {
            if rules.types.as_ref().is_some_and(|types| !types.contains(&Type::Object)) {
                return false;
            }
            rules = match (rules.properties.get(*name), &rules.additional) {
                (Some(field), _) => field,
                (None, Additional::Like(other)) => other,
                (None, Additional::Any) => return true,
                (None, Additional::None) => return false,
            };
        }
        true
    }
}

impl Rules {
    fn declares(&self, field: &str) -> Declared {
        match self.additional {
            _ if self.properties.contains_key(field) => Declared::Yes,
            Additional::None => Declared::No,
            Additional::Any | Additional::Like(_) => Declared::Open,
        }
    }
}

/// A text that is the same for values that JSON Schema holds for equal: whatever the order of their
/// fields, and 1 like 1.0.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => match whole(number) {
            Some(whole) => out.push_str(&whole.to_string()),
            None => out.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, field) in fields {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                canonical(field, out);
                out.push(',');
            }
            out.push('}');
        }
        simple => out.push_str(&simple.to_string()),
    }
}

/// The whole number that a number is, if it is one: `3`, but also `3.0`.
fn whole(number: &Number) -> Option<i128> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e38);
    integer.or_else(|| float().map(|float| float as i128))
}

#[cfg(test)]
mod tests;
