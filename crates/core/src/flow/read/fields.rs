//! The fields of a map, taken one by one; whatever does not fit becomes a problem and reading goes on.

use super::near;
use super::value;
use crate::flow::document::{Field, Kind, Node, Path, Problem};
use serde_json::Value;
use std::collections::HashMap;

/// What people write out of habit from elsewhere, and what it is called here.
const OTHER_WORDS: [(&str, &str); 13] = [
    ("condition", "when"),
    ("dependencies", "needs"),
    ("depends_on", "needs"),
    ("estimated_duration", "estimate"),
    ("if", "when"),
    ("input_schema", "input"),
    ("max_recovery_attempts", "max_recoveries"),
    ("max_retries", "retries"),
    ("name", "flow"),
    ("retry", "retries"),
    ("steps", "tasks"),
    ("task_type", "handler"),
    ("uses", "handler"),
];

/// Gathers the problems of one document.
#[derive(Default)]
pub struct Reader {
    problems: Vec<Problem>,
}

/// The fields of one map.
pub struct Fields<'n> {
    path: Path,
    fields: &'n [Field],
}

impl<'n> Fields<'n> {
    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.fields.iter().rev().find(|field| field.name == name).map(|field| &field.value)
    }

    /// The path of a field.
    pub fn path(&self, name: &str) -> Path {
        self.path.key(name)
    }
}

impl Reader {
    /// All that was wrong.
    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    /// Notes a problem.
    pub fn problem(&mut self, path: Path, message: impl Into<String>) {
        self.problems.push(Problem::new(path, message));
    }

    /// The fields of a map that is `what` and has the `known` ones.
    pub fn fields<'n>(
        &mut self,
        node: &'n Node,
        path: Path,
        what: &str,
        known: &[&str],
    ) -> Option<Fields<'n>> {
        let Kind::Map(fields) = &node.kind else {
            let message = format!("{what} must be a map of fields, {}", value::found(node));
            self.problem(path, message);
            return None;
        };
        let once = self.once(fields, &path, "field");
        for field in once.into_iter().filter(|field| !known.contains(&&*field.name)) {
            let message = unknown(&field.name, what, known);
            self.problem(path.key(&field.name), message);
        }
        Some(Fields { path, fields })
    }

    /// The fields, after noting each name that stands more than once. Of those only the last is read on,
    /// as paths lead to the last: what was found in another one would be told at the wrong place.
    pub fn once<'n>(&mut self, fields: &'n [Field], path: &Path, noun: &str) -> Vec<&'n Field> {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, field) in fields.iter().enumerate() {
            places.entry(&field.name).or_default().push(n);
        }
        let last = |n: usize, field: &Field| places[&*field.name].last() == Some(&n);
        let mut kept = vec![];
        for field in fields.iter().enumerate().filter(|(n, field)| last(*n, field)).map(|(_, field)| field) {
            kept.push(field);
            let times = match places[&*field.name].len() {
                1 => continue,
                2 => "twice".to_owned(),
                times => format!("{times} times"),
            };
            let first = fields[places[&*field.name][0]].at;
            let first = first.map(|at| format!(", first at line {}", at.line)).unwrap_or_default();
            self.problem(path.key(&field.name), format!("{noun} {:?} stands {times}{first}", field.name));
        }
        kept
    }

    /// A field that may be left out.
    pub fn take<T>(
        &mut self,
        from: &Fields<'_>,
        name: &str,
        read: fn(&Node) -> Result<T, String>,
    ) -> Option<T> {
        self.read(from.get(name)?, from.path(name), read)
    }

    /// A field that must be there.
    pub fn need<T>(
        &mut self,
        from: &Fields<'_>,
        name: &str,
        read: fn(&Node) -> Result<T, String>,
    ) -> Option<T> {
        if from.get(name).is_none() {
            self.problem(from.path(name), "is required");
        }
        self.take(from, name, read)
    }

    /// A field that holds more than one value.
    pub fn nested<T>(
        &mut self,
        from: &Fields<'_>,
        name: &str,
        read: fn(&mut Reader, &Node, Path) -> Option<T>,
    ) -> Option<T> {
        read(self, from.get(name)?, from.path(name))
    }

    /// A field that holds data of the author's own shape.
    pub fn free(
        &mut self,
        from: &Fields<'_>,
        name: &str,
        read: fn(&Node) -> Result<Value, String>,
    ) -> Option<Value> {
        self.refuse_doubles_within(from.get(name)?, &from.path(name));
        self.take(from, name, read)
    }

    /// One value.
    pub fn read<T>(&mut self, node: &Node, path: Path, read: fn(&Node) -> Result<T, String>) -> Option<T> {
        read(node).map_err(|message| self.problem(path, message)).ok()
    }

    fn refuse_doubles_within(&mut self, node: &Node, path: &Path) {
        match &node.kind {
            Kind::List(items) => {
                for (n, item) in items.iter().enumerate() {
                    self.refuse_doubles_within(item, &path.index(n));
                }
            }
            Kind::Map(fields) => {
                for field in self.once(fields, path, "field") {
                    self.refuse_doubles_within(&field.value, &path.key(&field.name));
                }
            }
            _ => {}
        }
    }
}

fn unknown(name: &str, what: &str, known: &[&str]) -> String {
    let other = OTHER_WORDS.iter().find(|(word, own)| *word == name && known.contains(own));
    match other.map(|(_, own)| *own).or_else(|| near(name, known.iter().copied())) {
        Some(meant) => format!("{what} has no field {name:?}; did you mean {meant:?}?"),
        None => format!("{what} has no field {name:?}; it has {}", known.join(", ")),
    }
}
