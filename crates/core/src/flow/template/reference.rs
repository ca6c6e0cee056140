//! Plain paths such as `tasks.count.output.files[0]`: read, shown, and followed without an engine.

use super::error::{TemplateError, shown};
use super::scope::Scope;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// The names that stand at the start of an expression without being a reference.
const WORDS: &[&str] =
    &["and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "null", "or", "true", "True"];

/// The most steps that are read as one reference; JSON hardly nests deeper.
const MAX_STEPS: usize = 64;

/// A path from one of the scope's names into its value.
///
/// Written as `name.field`, `name["any field"]`, `name[0]` or `name.0`, and so on; a negative index
/// counts from the end. The name of a task, right after `tasks.`, may hold dashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    root: Box<str>,
    steps: Box<[Step]>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Step {
    Field(Box<str>),
    Index(i64),
}

/// Where a reference leads nowhere: what is missing, and the value in which it is.
pub(super) struct Missing {
    pub reason: String,
    /// The reference up to the value that was found; `None` where the scope lacks the first name.
    pub parent: Option<String>,
    pub found: String,
}

impl Missing {
    pub(super) fn into_error(self, expression: &str) -> TemplateError {
        let verb = if self.parent.is_some() { "it is" } else { "here are" };
        TemplateError::new(expression, self.reason, format!("{verb} {}", self.found))
    }
}

impl Reference {
    /// The name in the scope: `input`, `tasks`, `job`, `item` or `item_index`, if it is a right one.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The root and the fields after it, up to the first index: what can be checked before a job
    /// runs, such as `["tasks", "count", "output", "n"]`.
    pub fn names(&self) -> Vec<&str> {
        let fields = self.steps.iter().map_while(|step| match step {
            Step::Field(name) => Some(&**name),
            Step::Index(_) => None,
        });
        std::iter::once(&*self.root).chain(fields).collect()
    }

    /// The reference that all of `text` is.
    pub(super) fn parse(text: &str) -> Option<Reference> {
        Reference::read(text).filter(|(_, length)| *length == text.len()).map(|(reference, _)| reference)
    }

    /// The longest reference with which `text` begins, and its length.
    pub(super) fn read(text: &str) -> Option<(Reference, usize)> {
        let root = identifier(text).filter(|name| !WORDS.contains(name))?;
        let mut steps = vec![];
        let mut at = root.len();
        while steps.len() < MAX_STEPS {
            let rest = &text[at..];
            let step = if let Some(after) = rest.strip_prefix('.') {
                let name =
                    if root == "tasks" && steps.is_empty() { task_name(after) } else { identifier(after) };
                name.map(|name| (Step::Field(name.into()), 1 + name.len()))
                    .or_else(|| index(after).map(|(index, length)| (Step::Index(index), 1 + length)))
            } else if let Some(inside) = rest.strip_prefix('[') {
                subscript(inside).map(|(step, length)| (step, 1 + length))
            } else {
                None
            };
            let Some((step, length)) = step else { break };
            steps.push(step);
            at += length;
        }
        Some((Reference { root: root.into(), steps: steps.into() }, at))
    }

    /// The same without its last step, and that step if it is a field.
    pub(super) fn split_last(&self) -> Option<(Reference, &str)> {
        match self.steps.split_last()? {
            (Step::Field(name), rest) => {
                Some((Reference { root: self.root.clone(), steps: rest.into() }, name))
            }
            _ => None,
        }
    }

    /// The value that it leads to. Only a character of a string is not borrowed.
    pub(super) fn resolve<'s>(&self, scope: &'s Scope) -> Result<Cow<'s, Value>, Missing> {
        let mut value = scope.get(&self.root).ok_or_else(|| self.unknown(scope))?;
        for (nth, step) in self.steps.iter().enumerate() {
            let next = match (step, value) {
                (Step::Field(name), Value::Object(map)) => map.get(&**name),
                (Step::Index(index), Value::Array(items)) => {
                    place(*index, items.len()).and_then(|at| items.get(at))
                }
                (Step::Index(index), Value::String(text)) => {
                    let letter = letter(text, *index).ok_or_else(|| self.missing(nth, value))?;
                    return self.resolve_letter(nth, letter);
                }
                _ => None,
            };
            value = next.ok_or_else(|| self.missing(nth, value))?;
        }
        Ok(Cow::Borrowed(value))
    }

    /// A letter has no parts except itself, so at most indices may follow.
    fn resolve_letter<'s>(&self, nth: usize, letter: char) -> Result<Cow<'s, Value>, Missing> {
        let value = Value::String(letter.into());
        match self.steps[nth + 1..].iter().position(|step| !matches!(step, Step::Index(0 | -1))) {
            Some(after) => Err(self.missing(nth + 1 + after, &value)),
            None => Ok(Cow::Owned(value)),
        }
    }

    #[cold]
    fn unknown(&self, scope: &Scope) -> Missing {
        Missing {
            reason: format!("there is no {:?} here", self.root),
            parent: None,
            found: scope.names().collect::<Vec<_>>().join(", "),
        }
    }

    #[cold]
    fn missing(&self, nth: usize, value: &Value) -> Missing {
        let parent = Reference { root: self.root.clone(), steps: self.steps[..nth].into() }.to_string();
        let reason = match &self.steps[nth] {
            Step::Field(name) => format!("{parent} has no field {name:?}"),
            Step::Index(index) => format!("{parent} has no item {index}"),
        };
        Missing { reason, parent: Some(parent), found: shown(value) }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        for (nth, step) in self.steps.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Field(name) if identifier(name) == Some(name) => write!(f, ".{name}")?,
                Step::Field(name) if nth == 0 && &*self.root == "tasks" && task_name(name) == Some(name) => {
                    write!(f, ".{name}")?;
                }
                Step::Field(name) => write!(f, "[{name:?}]")?,
            }
        }
        Ok(())
    }
}

fn place(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(at) => Some(at),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

fn letter(text: &str, index: i64) -> Option<char> {
    text.chars().nth(place(index, text.chars().count())?)
}

/// The identifier with which `text` begins.
pub(super) fn identifier(text: &str) -> Option<&str> {
    let end = text.bytes().position(|b| !is_word(b)).unwrap_or(text.len());
    (end > 0 && !text.as_bytes()[0].is_ascii_digit()).then(|| &text[..end])
}

/// The name of a task with which `text` begins: dashes may stand between its letters.
fn task_name(text: &str) -> Option<&str> {
    let dashed = text.bytes().position(|b| !is_word(b) && b != b'-').unwrap_or(text.len());
    let name = text[..dashed].trim_end_matches('-');
    (!name.is_empty() && !name.starts_with('-')).then_some(name)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The index with which `text` begins, and its length.
fn index(text: &str) -> Option<(i64, usize)> {
    let end = text.bytes().position(|b| !is_word(b)).unwrap_or(text.len());
    text[..end].bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    text[..end].parse().ok().map(|index| (index, end))
}

/// What stands inside a bracket that was just opened, and its length with the closing one. A string
/// with escapes is left to the engine.
fn subscript(text: &str) -> Option<(Step, usize)> {
    let inside = text.trim_start();
    let quote = inside.chars().next()?;
    let (step, rest) = if matches!(quote, '"' | '\'') {
        let (name, rest) = inside[1..].split_once(quote)?;
        (!name.contains('\\')).then_some((Step::Field(name.into()), rest))?
    } else {
        let digits = inside.strip_prefix('-').unwrap_or(inside);
        let (index, length) = index(digits)?;
        let index = if digits.len() < inside.len() { -index } else { index };
        (Step::Index(index), &digits[length..])
    };
    let rest = rest.trim_start().strip_prefix(']')?;
    Some((step, text.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_shown() {
        for (text, length, shown, names) in [
            ("input", 5, "input", "input"),
            ("input.a.b + 1", 9, "input.a.b", "input a b"),
            ("input.files[0].name", 19, "input.files[0].name", "input files"),
            ("input.files.0.name", 18, "input.files[0].name", "input files"),
            ("input.n-1", 7, "input.n", "input n"),
            ("tasks.fetch-robots.output", 25, "tasks.fetch-robots.output", "tasks fetch-robots output"),
            ("tasks.a.output.n-1", 16, "tasks.a.output.n", "tasks a output n"),
            ("tasks.a- 1", 7, "tasks.a", "tasks a"),
            ("tasks.2nd.output", 16, "tasks.2nd.output", "tasks 2nd output"),
            ("tasks['a b']['é'] | x", 18, "tasks[\"a b\"][\"é\"]", "tasks a b é"),
            ("a[ -1 ][\"c d\"].e", 16, "a[-1][\"c d\"].e", "a"),
            ("a[1:2]", 1, "a", "a"),
            ("a[b].c", 1, "a", "a"),
            ("a['x' 'y']", 1, "a", "a"),
            ("a[99999999999999999999]", 1, "a", "a"),
            ("a.-1", 1, "a", "a"),
            ("a. b", 1, "a", "a"),
        ] {
            let (reference, read) = Reference::read(text).unwrap();
            assert_eq!((read, reference.to_string().as_str()), (length, shown), "{text}");
            assert_eq!(reference.names().join(" "), names, "{text}");
        }
        for text in ["", "1", "not", "true", "null", "-a", ".a", "é"] {
            assert_eq!(Reference::read(text), None, "{text}");
        }
        assert!(Reference::parse("a.b").is_some() && Reference::parse("a.b ").is_none());
    }
}
