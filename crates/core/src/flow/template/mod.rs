//! Inputs as templates: JSON values whose strings may hold `{{ expressions }}`.
//!
//! ```yaml
//! with:
//!   url: "{{ input.source }}"
//!   n: "{{ tasks.count.output.n + 1 }}"
//!   note: "got {{ item.name | upper }} of {{ tasks.count.output.total }}"
//! ```
//!
//! - A string that is one expression (white space around it does not count) becomes its value, of
//!   whatever type. In any other string the values are written as text: strings as they are, all
//!   else as compact JSON. Names of fields are not templates.
//! - Expressions are those of Jinja: fields and items, arithmetic, comparison, `and or not in is`,
//!   `a if b else c`, filters (also `normalize_url`, `host` and `json`), `range` and `dict`. There
//!   are no blocks, comments, methods or white space control, and slices go forward only. `null` may be
//!   written for `none`. Only `~` writes values as Jinja does (`True`, `None`).
//! - Strict: what does not exist is an error, except behind `is defined` and `| default(...)`; null
//!   is a value.
//! - The name of a task may hold dashes right after `tasks.`: `tasks.fetch-robots.output.n - 1`. Any
//!   other name with one is written in brackets: `input["user-id"]`.
//! - The text `{{` is written as `{{ "{{" }}`.
//!
//! Everything here is a function of its arguments. Templates are compiled once. Rendering writes the
//! JSON text straight away: the literal parts are kept as text, and plain references are followed
//! in the scope without a copy or an engine.

mod engine;
mod error;
mod expression;
mod filters;
mod reference;
mod scan;
mod scope;
#[cfg(test)]
mod tests;

pub(crate) use error::shown;
pub use error::{TemplateError, TemplateProblem};
pub use expression::Expression;
pub use reference::Reference;
pub use scan::MAX_EXPRESSION;
pub use scope::Scope;

use crate::json::Json;
use scan::Part;
use serde_json::Value;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::sync::Arc;

/// How deep a template may nest.
pub const MAX_NESTING: usize = 64;

/// A JSON value with expressions in its strings, compiled.
#[derive(Clone)]
pub struct Template {
    source: Arc<Value>,
    pieces: Arc<[Piece]>,
    /// The text of a value without expressions.
    literal: Option<Json>,
}

/// The rendered JSON text is the texts of the pieces, one after the other.
enum Piece {
    /// JSON text that is always the same.
    Text(Box<str>),
    /// A value that stands for itself.
    Value(Place),
    /// A value inside a string: the quotes are in the texts before and after it.
    Inside(Place),
}

/// An expression and the path to its string.
struct Place {
    at: Box<str>,
    expression: Expression,
}

impl Template {
    /// Compiles a value, or tells all that is wrong with it.
    pub fn compile(source: &Value) -> Result<Self, Vec<TemplateProblem>> {
        let mut builder = Builder::default();
        builder.value(source, &mut String::new(), 0);
        if !builder.problems.is_empty() {
            return Err(builder.problems);
        }
        let literal = builder.pieces.is_empty().then(|| Json::trusted(builder.text.as_str()));
        builder.flush();
        Ok(Template { source: Arc::new(source.clone()), pieces: builder.pieces.into(), literal })
    }

    /// Whether it renders the same over every scope.
    pub fn is_literal(&self) -> bool {
        self.literal.is_some()
    }

    /// The value it was made from.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Every place in the scope that it refers to, each with the path to the string in which it does
    /// (as in [`TemplateProblem::at`]).
    pub fn references(&self) -> impl Iterator<Item = (&str, &Reference)> {
        self.places().flat_map(|place| place.expression.references().map(|found| (&*place.at, found)))
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value(place) | Piece::Inside(place) => Some(place),
        })
    }

    /// The rendered value as JSON text.
    pub fn render_json(&self, scope: &Scope) -> Result<Json, TemplateError> {
        if let Some(literal) = &self.literal {
            return Ok(literal.clone());
        }
        let mut out = Out(Vec::with_capacity(256));
        for piece in &*self.pieces {
            let written = match piece {
                Piece::Text(text) => out.write_all(text.as_bytes()),
                Piece::Value(place) => out.json(&*place.expression.evaluate(scope)?),
                Piece::Inside(place) => match &*place.expression.evaluate(scope)? {
                    Value::String(text) => out.inside(text),
                    value => out.inside(&value.to_string()),
                },
            };
            written.map_err(|_| self.too_large(piece))?;
        }
        Ok(Json::trusted(String::from_utf8(out.0).expect("JSON text is UTF-8")))
    }

    /// The rendered value.
    pub fn render(&self, scope: &Scope) -> Result<Value, TemplateError> {
        match &*self.pieces {
            [Piece::Value(place)] => place.expression.value(scope),
            _ if self.is_literal() => Ok(Value::clone(&self.source)),
            _ => self.render_json(scope).map(|json| json.value()),
        }
    }

    /// The rendered value as plain text, for keys and names: a string without its quotes, all else as
    /// compact JSON.
    pub fn render_text(&self, scope: &Scope) -> Result<String, TemplateError> {
        self.render(scope).map(|value| match value {
            Value::String(text) => text,
            value => value.to_string(),
        })
    }

    #[cold]
    fn too_large(&self, piece: &Piece) -> TemplateError {
        let source = match piece {
            Piece::Text(_) => "",
            Piece::Value(place) | Piece::Inside(place) => place.expression.source(),
        };
        TemplateError::new(source, engine::too_large(), "")
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({})", self.source)
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// Compiles a value into pieces; text is gathered until an expression comes.
#[derive(Default)]
struct Builder {
    pieces: Vec<Piece>,
    text: String,
    problems: Vec<TemplateProblem>,
}

impl Builder {
    fn value(&mut self, value: &Value, at: &mut String, depth: usize) {
        if depth > MAX_NESTING {
            return self.problem(at, format!("is nested deeper than {MAX_NESTING} levels"));
        }
        let parent = at.len();
        match value {
            Value::String(text) => self.string(text, at),
            Value::Array(items) => {
                self.text.push('[');
                for (nth, item) in items.iter().enumerate() {
                    self.separate(nth);
                    let _ = write!(at, "[{nth}]");
                    self.value(item, at, depth + 1);
                    at.truncate(parent);
                }
                self.text.push(']');
            }
            Value::Object(fields) => {
                self.text.push('{');
                for (nth, (name, field)) in fields.iter().enumerate() {
                    self.separate(nth);
                    let _ = write!(self.text, "{}:", Value::from(name.as_str()));
                    let _ = match reference::identifier(name) == Some(name) {
                        true => write!(at, ".{name}"),
                        false => write!(at, "[{name:?}]"),
                    };
                    self.value(field, at, depth + 1);
                    at.truncate(parent);
                }
                self.text.push('}');
            }
            literal => self.literal(literal),
        }
    }

    fn string(&mut self, text: &str, at: &str) {
        let is_space = |part: &Part<'_>| matches!(part, Part::Text(text) if text.trim().is_empty());
        let parts = match scan::split(text) {
            Ok(parts) => parts,
            Err(message) => return self.problem(at, message),
        };
        let expressions = parts.iter().filter(|part| matches!(part, Part::Expression(_))).count();
        if expressions == 0 {
            return self.literal(&Value::from(text));
        }
        let whole = expressions == 1 && parts.iter().filter(|part| !is_space(part)).count() == 1;
        if whole {
            for part in parts {
                if let Part::Expression(source) = part {
                    self.expression(source, at, Piece::Value);
                }
            }
            return;
        }
        self.text.push('"');
        for part in parts {
            match part {
                Part::Text(text) => {
                    let quoted = Value::from(text).to_string();
                    self.text.push_str(&quoted[1..quoted.len() - 1]);
                }
                Part::Expression(source) => self.expression(source, at, Piece::Inside),
            }
        }
        self.text.push('"');
    }

    fn expression(&mut self, source: &str, at: &str, piece: fn(Place) -> Piece) {
        match Expression::bare(source) {
            Ok(expression) => {
                self.flush();
                self.pieces.push(piece(Place { at: at.into(), expression }));
            }
            Err(message) => self.problem(at, message),
        }
    }

    fn literal(&mut self, value: &Value) {
        let _ = write!(self.text, "{value}");
    }

    fn separate(&mut self, nth: usize) {
        if nth > 0 {
            self.text.push(',');
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(&mut self.text).into()));
        }
    }

    fn problem(&mut self, at: &str, message: String) {
        self.problems.push(TemplateProblem { at: at.to_owned(), message });
    }
}

/// Rendered text. It refuses what is too large while it is written: escapes make six bytes out of one.
struct Out(Vec<u8>);

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0.len() + bytes.len() > engine::MAX_RESULT {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out {
    fn json(&mut self, value: &Value) -> io::Result<()> {
        Ok(serde_json::to_writer(self, value)?)
    }

    /// Writes text into a JSON string that is open.
    fn inside(&mut self, text: &str) -> io::Result<()> {
        if text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\') {
            return self.write_all(text.as_bytes());
        }
        let start = self.0.len();
        serde_json::to_writer(&mut *self, text)?;
        // The quotes that stand around it are in the pieces before and after it.
        self.0.pop();
        self.0.remove(start);
        Ok(())
    }
}
