//! Reads the fields of a payload and gathers everything that is wrong with them.
//!
//! Serde stops at the first error; a person who writes a payload wants to hear of all. Values stay
//! text until their type is known, so JSON that is only passed on keeps its every digit.

use orchestrator_core::{ErrorClass, Failure, FieldError, Json};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The name under which problems of the payload as a whole are told.
pub(super) const ROOT: &str = "payload";

/// One JSON object on its way into a type.
pub(super) struct Fields {
    path: String,
    is_object: bool,
    left: BTreeMap<String, Json>,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl Fields {
    /// Opens an object that stands at `path`.
    pub fn open(path: &str, json: &Json) -> Self {
        let (is_object, left, errors) = match json.read() {
            Ok(left) => (true, left, vec![]),
            Err(_) => (false, BTreeMap::new(), vec![FieldError::new(path, "must be an object")]),
        };
        Fields { path: path.to_owned(), is_object, left, known: vec![], errors }
    }

    /// The path of a field.
    pub fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// Notes a problem with a field.
    pub fn problem(&mut self, name: &str, message: impl Into<String>) {
        self.errors.push(FieldError::new(self.path(name), message));
    }

    /// Notes problems that were found inside a field.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.errors.extend(errors);
    }

    /// A field that need not be there. `null` is the same as absent.
    pub fn optional<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let json = self.raw(name).filter(|json| json.as_str() != "null")?;
        match json.read() {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(name, without_place(&error));
                None
            }
        }
    }

    /// A field that must be there.
    pub fn required<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let absent = self.left.get(name).is_none_or(|json| json.as_str() == "null");
        if absent && self.is_object {
            self.problem(name, "is required");
        }
        self.optional(name)
    }

    /// A field that is passed on as it is; here `null` is a value.
    pub fn raw(&mut self, name: &'static str) -> Option<Json> {
        self.known.push(name);
        self.left.remove(name)
    }

    /// What was built of the fields, or all that was wrong. Call it last: fields that nobody asked
    /// for are mistakes. `None` means that a problem was noted on the way.
    pub fn finish<T>(mut self, built: Option<T>) -> Result<T, Vec<FieldError>> {
        let known = self.known.join(", ");
        for name in std::mem::take(&mut self.left).into_keys() {
            let shown: String = name.chars().take(60).collect();
            self.problem(&shown, format!("unknown field; known here: {known}"));
        }
        match built {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => Err(self.errors),
        }
    }
}

/// The failure of an attempt whose payload is wrong.
pub(super) fn refused(errors: Vec<FieldError>) -> Failure {
    let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
    Failure::new(ErrorClass::Validation, all.join("; "))
}

/// Line and column are those of the field's own text, so they would mislead.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_core::Millis;

    fn read(text: &str) -> Result<(Millis, Option<u8>), Vec<String>> {
        let mut fields = Fields::open(ROOT, &Json::parse(text).unwrap());
        let span = fields.required::<Millis>("for");
        let count = fields.optional::<u8>("count");
        fields
            .finish(span.map(|span| (span, count)))
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn good_fields_are_read() {
        assert_eq!(read(r#"{"for":"2s","count":3}"#), Ok((Millis::secs(2), Some(3))));
        assert_eq!(read(r#"{"for":"2s","count":null}"#), Ok((Millis::secs(2), None)));
    }

    #[test]
    fn every_problem_is_named_at_once() {
        let errors = read(r#"{"for":"soon","count":700,"colour":1}"#).unwrap_err();
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors[0].starts_with("payload.for: \"soon\" is not a span of time"), "{errors:?}");
        assert!(errors[1].starts_with("payload.count: invalid value"), "{errors:?}");
        assert!(!errors[1].contains("line"), "{errors:?}");
        assert_eq!(errors[2], "payload.colour: unknown field; known here: for, count");
    }

    #[test]
    fn what_is_missing_and_what_is_no_object_is_told_once() {
        assert_eq!(read("{}"), Err(vec!["payload.for: is required".to_owned()]));
        assert_eq!(read(r#"{"for":null}"#), Err(vec!["payload.for: is required".to_owned()]));
        for text in ["null", "[]", "\"x\"", "7"] {
            assert_eq!(read(text), Err(vec!["payload: must be an object".to_owned()]), "{text}");
        }
    }
}
