//! The parameters of a request's query, read one by one. What is wrong with them is told all at once.

use crate::problem::Problem;
use axum::http::StatusCode;
use orchestrator_api::problem::Field;
use orchestrator_core::human;
use orchestrator_core::spec::is_name;
use percent_encoding::percent_decode_str;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

/// The parameters that have not been read yet.
pub struct Parameters {
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
    problems: Vec<Field>,
}

impl Parameters {
    /// Those of a query.
    pub fn of(query: Option<&str>) -> Self {
        let query = query.unwrap_or_default();
        let given: Vec<(String, String)> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let mut parameters = Parameters { given, known: vec![], problems: vec![] };
        if percent_decode_str(query).decode_utf8().is_err() {
            parameters.wrong("query", "is not UTF-8");
        }
        // PostgreSQL has no character zero, so nothing that is kept holds one.
        if parameters.given.iter().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
            parameters.wrong("query", "must not hold the character zero");
        }
        parameters
    }

    /// All values of a name, in order; each may list several, parted by commas.
    pub fn list<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Vec<T> {
        let texts = self.take(name);
        let each =
            texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty());
        each.filter_map(|text| self.parse(name, text)).collect()
    }

    /// The value of a name that may stand once.
    pub fn one<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        let texts = self.take(name);
        if texts.len() > 1 {
            self.wrong(name, "may be given once");
        }
        self.parse(name, texts.first()?)
    }

    /// The name of a queue, a handler or a flow.
    pub fn name(&mut self, name: &'static str) -> Option<Arc<str>> {
        let text: String = self.one(name)?;
        if !is_name(&text) {
            self.wrong(name, "is not a name (A-Z a-z 0-9 . _ - /)");
        }
        Some(text.into())
    }

    /// What stands behind a prefix in names, with the values: `context.` gives the fields of `context.lab=x`.
    pub fn behind(&mut self, prefix: &'static str) -> Vec<(String, String)> {
        let (found, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.given).into_iter().partition(|(name, _)| name.starts_with(prefix));
        self.given = rest;
        found.into_iter().map(|(name, value)| (name[prefix.len()..].to_owned(), value)).collect()
    }

    /// Notes that a parameter is wrong.
    pub fn wrong(&mut self, name: &str, message: impl Into<String>) {
        self.problems.push(Field { pointer: name.to_owned(), message: message.into() });
    }

    /// All have been read: tells what is wrong with them, and which of them nobody knows.
    pub fn done(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.given) {
            let meant = human::near(&name, self.known.iter().copied());
            let meant = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            self.wrong(&name, format!("there is no such parameter{meant}"));
        }
        let detail = match self.problems.as_slice() {
            [] => return Ok(()),
            [one] => format!("{}: {}", one.pointer, one.message),
            many => format!("{} parameters are wrong", many.len()),
        };
        Err(Problem::new(StatusCode::BAD_REQUEST, "bad_parameter", detail).with_errors(self.problems))
    }

    fn take(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        let (found, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.given).into_iter().partition(|(given, _)| given == name);
        self.given = rest;
        found.into_iter().map(|(_, value)| value).collect()
    }

    fn parse<T: FromStr<Err: Display>>(&mut self, name: &str, text: &str) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(name, error.to_string());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_told() {
        let mut parameters = Parameters::of(Some("limit=x&state=a,b&stat=1&context.lab=7"));
        assert_eq!(parameters.one::<u32>("limit"), None);
        assert_eq!(parameters.list::<String>("state"), ["a", "b"]);
        assert_eq!(parameters.behind("context."), [("lab".to_owned(), "7".to_owned())]);
        let problem = parameters.done().unwrap_err();
        let told: Vec<_> =
            problem.0.errors.iter().map(|field| (field.pointer.as_str(), field.message.as_str())).collect();
        assert_eq!(
            told,
            [
                ("limit", "invalid digit found in string"),
                ("stat", "there is no such parameter; did you mean state?")
            ]
        );
    }
}
