//! A document as it was written: ordered, with the place of every value, whatever the format.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use std::fmt;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// One value of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it starts, if it was read from a text.
    pub at: Option<Span>,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Fields, in order; a name may stand twice, which is for the reader to refuse.
    Map(Vec<Field>),
}

/// One field of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Where the name stands.
    pub at: Option<Span>,
    /// The name.
    pub name: String,
    /// The value.
    pub value: Node,
}

impl Node {
    /// A value that was read from nowhere.
    pub fn new(kind: Kind) -> Self {
        Node { at: None, kind }
    }

    /// Reads a JSON text, without places.
    pub fn from_json(text: &str) -> Result<Node, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of a field, the last one where it stands twice.
    pub fn get(&self, name: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(fields) => {
                fields.iter().rev().find(|field| field.name == name).map(|field| &field.value)
            }
            _ => None,
        }
    }

    /// The same as a JSON value; of fields that stand twice, the last.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(value) => Value::Number(value.clone()),
            Kind::Text(value) => Value::String(value.clone()),
            Kind::List(items) => items.iter().map(Node::to_value).collect(),
            Kind::Map(fields) => Value::Object(
                fields.iter().map(|field| (field.name.clone(), field.value.to_value())).collect(),
            ),
        }
    }
}

/// The way from the root of a document to one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<Step>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into a field.
    Key(String),
    /// Into an item, counted from 0.
    Index(usize),
}

impl Path {
    /// The root.
    pub fn root() -> Self {
        Path::default()
    }

    /// The path into a field.
    pub fn key(&self, name: impl Into<String>) -> Path {
        self.then(Step::Key(name.into()))
    }

    /// The path into an item.
    pub fn index(&self, n: usize) -> Path {
        self.then(Step::Index(n))
    }

    fn then(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if n == 0 => f.write_str(name)?,
                Step::Key(name) => write!(f, ".{name}")?,
                Step::Index(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

/// One thing that is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where, in the document.
    pub path: Path,
    /// What, and what to do.
    pub message: String,
}

impl Problem {
    /// A problem at a path.
    pub fn new(path: Path, message: impl Into<String>) -> Self {
        Problem { path, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.0.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::new(Kind::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::new(Kind::Bool(value)))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::new(Kind::Number(value.into())))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
                Ok(Node::new(Kind::Number(value.into())))
            }
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
                let number = Number::from_f64(value).ok_or_else(|| E::custom("not a finite number"))?;
                Ok(Node::new(Kind::Number(number)))
            }
            fn visit_str<E>(self, value: &str) -> Result<Node, E> {
                Ok(Node::new(Kind::Text(value.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
                let mut items = vec![];
                while let Some(item) = from.next_element()? {
                    items.push(item);
                }
                Ok(Node::new(Kind::List(items)))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
                let mut fields = vec![];
                while let Some((name, value)) = from.next_entry()? {
                    fields.push(Field { at: None, name, value });
                }
                Ok(Node::new(Kind::Map(fields)))
            }
        }
        input.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_doubles_are_kept() {
        let node = Node::from_json(r#"{"b":1,"a":[true,null,"x"],"b":2}"#).unwrap();
        let Kind::Map(fields) = &node.kind else { panic!("a map") };
        assert_eq!(fields.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["b", "a", "b"]);
        assert_eq!(node.get("b").unwrap().kind, Kind::Number(2.into()));
        assert_eq!(node.to_value(), serde_json::json!({"a": [true, null, "x"], "b": 2}));
    }

    #[test]
    fn a_path_reads_as_it_is_written() {
        assert_eq!(Path::root().key("a").index(0).key("deeper").to_string(), "a[0].deeper");
    }
}
