//! From a JSON Schema to rules, with everything that is wrong with it.

use super::{Additional, Bounds, InputSchema, MAX_DEPTH, Rules, Type, canonical};
use crate::flow::template::shown;
use serde_json::{Map, Number, Value};

const KEYWORDS: &[&str] = &[
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "format",
    "title",
    "description",
    "default",
    "examples",
];

const FORMATS: &[&str] = &["uri", "date-time", "email"];

impl InputSchema {
    /// Reads a schema, or tells all that is wrong with it: the path inside it (such as
    /// `.properties.source.type` or `.properties["any name"]`, empty for the schema itself) and the problem.
    pub fn compile(schema: &Value) -> Result<Self, Vec<(String, String)>> {
        let mut reader = Reader { path: String::new(), depth: 0, problems: vec![] };
        let root = reader.rules(schema);
        if reader.problems.is_empty() { Ok(InputSchema { root }) } else { Err(reader.problems) }
    }
}

struct Reader {
    path: String,
    depth: usize,
    problems: Vec<(String, String)>,
}

impl Reader {
    fn problem(&mut self, message: impl Into<String>) {
        self.problems.push((self.path.clone(), message.into()));
    }

    /// Reads something one level further in.
    fn within<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let parent = self.path.len();
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$');
        if !name.is_empty() && name.bytes().all(plain) {
            self.path.push('.');
            self.path.push_str(name);
        } else {
            self.path.push_str(&format!("[{name:?}]"));
        }
        let value = read(self);
        self.path.truncate(parent);
        value
    }

    fn rules(&mut self, schema: &Value) -> Rules {
        let mut rules = Rules::default();
        let Some(keywords) = schema.as_object() else {
            self.problem(format!("a schema must be an object, not {}", shown(schema)));
            return rules;
        };
        if self.depth > MAX_DEPTH {
            self.problem(format!("is nested deeper than {MAX_DEPTH} levels"));
            return rules;
        }
        self.depth += 1;
        for (keyword, value) in keywords {
            self.within(keyword, |reader| reader.keyword(&mut rules, keyword, value));
        }
        self.depth -= 1;
        rules
    }

    fn keyword(&mut self, rules: &mut Rules, keyword: &str, value: &Value) {
        match keyword {
            "type" => rules.types = self.types(value),
            "enum" => match value.as_array() {
                Some(values) if !values.is_empty() => {
                    rules.one_of = Some(values.iter().map(comparable).collect())
                }
                _ => self.problem("must be a list of at least one value"),
            },
            "const" => rules.one_of = Some(vec![comparable(value)]),
            "properties" => {
                for (name, schema) in self.object(value) {
                    let field = self.within(name, |reader| reader.rules(schema));
                    rules.properties.insert(name.clone(), field);
                }
            }
            "required" => rules.required = self.names(value),
            "additionalProperties" => {
                rules.additional = match value {
                    Value::Bool(true) => Additional::Any,
                    Value::Bool(false) => Additional::None,
                    schema => Additional::Like(Box::new(self.rules(schema))),
                }
            }
            "items" => rules.items = Some(Box::new(self.rules(value))),
            "minItems" => self.count(&mut rules.item_count, value, |bounds, count| bounds.min = count),
            "maxItems" => self.count(&mut rules.item_count, value, |bounds, count| bounds.max = count),
            "minLength" => self.count(&mut rules.length, value, |bounds, count| bounds.min = count),
            "maxLength" => self.count(&mut rules.length, value, |bounds, count| bounds.max = count),
            "uniqueItems" => match value {
                Value::Bool(unique) => rules.unique = *unique,
                _ => self.problem("must be true or false"),
            },
            "minimum" => rules.minimum = self.number(value),
            "maximum" => rules.maximum = self.number(value),
            "exclusiveMinimum" => rules.above = self.number(value),
            "exclusiveMaximum" => rules.below = self.number(value),
            "format" => match value.as_str() {
                Some(format) if FORMATS.contains(&format) => rules.is_uri = format == "uri",
                _ => self.problem(format!("must be one of {}, not {}", FORMATS.join(", "), shown(value))),
            },
            "title" | "description" => {
                if !value.is_string() {
                    self.problem("must be a string");
                }
            }
            "default" | "examples" => {}
            _ => self.problem(format!("is not supported here; the keywords are {}", KEYWORDS.join(", "))),
        }
    }

    fn types(&mut self, value: &Value) -> Option<Vec<Type>> {
        let names = match value {
            Value::Array(names) if !names.is_empty() => names.as_slice(),
            name => std::slice::from_ref(name),
        };
        let known = |name: &Value| {
            let found = Type::ALL.iter().find(|(_, known, _)| name.as_str() == Some(known));
            found.map(|(found, ..)| *found)
        };
        let types: Option<Vec<_>> = names.iter().map(known).collect();
        if types.is_none() {
            let all = Type::ALL.map(|(_, name, _)| name).join(", ");
            self.problem(format!("must be one or a list of {all}, not {}", shown(value)));
        }
        types
    }

    fn object<'v>(&mut self, value: &'v Value) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        if !value.is_object() {
            self.problem("must be an object");
        }
        value.as_object().into_iter().flat_map(Map::iter)
    }

    fn names(&mut self, value: &Value) -> Vec<String> {
        let names = value.as_array().and_then(|names| {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        names.unwrap_or_else(|| {
            self.problem("must be a list of strings");
            vec![]
        })
    }

    fn count(&mut self, bounds: &mut Bounds, value: &Value, set: fn(&mut Bounds, Option<u64>)) {
        let count = value.as_u64();
        if count.is_none() {
            self.problem(format!("must be a whole number from 0, not {}", shown(value)));
        }
        set(bounds, count);
    }

    fn number(&mut self, value: &Value) -> Option<Number> {
        let number = value.as_number().cloned();
        if number.is_none() {
            self.problem(format!("must be a number, not {}", shown(value)));
        }
        number
    }
}

fn comparable(value: &Value) -> (Value, String) {
    let mut text = String::new();
    canonical(value, &mut text);
    (value.clone(), text)
}
