//! Reads `orchestrator.toml` with the line of every value. The file is walked by us, not by serde,
//! which would stop at the first error.

use super::problem::{Origin, Problem, near};
use super::settings::{Kind, SETTINGS, Setting};
use super::value::number;
use orchestrator_core::{LimitKey, LimitRule, Rate};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What a file says.
#[derive(Default)]
pub struct FileValues {
    /// Settings with their text and place.
    pub settings: Vec<(&'static Setting, String, Origin)>,
    /// The rules of `[limits]` with their places.
    pub limits: Vec<(LimitKey, LimitRule, Origin)>,
}

/// Reads a file's text. `path` is only named in places.
pub fn read(path: &str, source: &str, problems: &mut Vec<Problem>) -> FileValues {
    let mut reader = Reader { path, source, problems, values: FileValues::default() };
    let (root, errors) = DeTable::parse_recoverable(source);
    for error in &errors {
        let origin = reader.origin(error.span().unwrap_or(0..0));
        reader.problems.push(Problem::at_place(&origin, error.message()));
    }
    // What a broken file seems to say is not judged as well: that would only repeat the first error.
    if errors.is_empty() {
        for (name, value) in root.get_ref() {
            reader.section(name.get_ref(), name.span(), value);
        }
    }
    reader.values
}

struct Reader<'a> {
    path: &'a str,
    source: &'a str,
    problems: &'a mut Vec<Problem>,
    values: FileValues,
}

impl Reader<'_> {
    fn origin(&self, span: Range<usize>) -> Origin {
        let upto = &self.source.as_bytes()[..span.start.min(self.source.len())];
        Origin::File { path: self.path.to_owned(), line: 1 + upto.iter().filter(|b| **b == b'\n').count() }
    }

    fn problem(
        &mut self,
        span: Range<usize>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        message: impl Into<String>,
    ) {
        let shown = self.source.get(value.span()).unwrap_or_default();
        self.problems.push(Problem::new(&self.origin(span), key, shown, message));
    }

    fn unknown(&mut self, span: Range<usize>, found: String, meant: Option<String>) {
        let message = match meant {
            Some(meant) => format!("unknown; did you mean {meant}?"),
            None => "unknown; orchestrator config show --default lists what there is".to_owned(),
        };
        self.problems.push(Problem::at_place(&self.origin(span), message).found(found));
    }

    fn section(&mut self, name: &str, at: Range<usize>, value: &Spanned<DeValue<'_>>) {
        let known = SETTINGS.iter().any(|setting| setting.section() == name) || name == "limits";
        let Some(table) = value.get_ref().as_table() else {
            if known {
                self.problem(at, name, value, format!("must be a section: [{name}]"));
            } else {
                let bare = SETTINGS.iter().find(|setting| setting.name() == name);
                let meant = bare.map(|s| format!("{} in [{}]", s.name(), s.section()));
                self.unknown(at, name.to_owned(), meant);
            }
            return;
        };
        if !known {
            let sections = SETTINGS.iter().map(Setting::section).chain(["limits"]);
            let meant = near(name, sections).map(|section| format!("[{section}]"));
            return self.unknown(at, format!("[{name}]"), meant);
        }
        for (key, value) in table {
            if name == "limits" {
                self.limit(key.get_ref(), key.span(), value);
            } else {
                self.setting(name, key.get_ref(), key.span(), value);
            }
        }
    }

    fn setting(&mut self, section: &str, name: &str, at: Range<usize>, value: &Spanned<DeValue<'_>>) {
        let key = format!("{section}.{name}");
        let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
            let meant = near(&key, SETTINGS.iter().map(|s| s.key)).map(str::to_owned);
            return self.unknown(at, key, meant);
        };
        match text_of(setting.kind, value.get_ref()) {
            Ok(text) => self.values.settings.push((setting, text, self.origin(at))),
            Err(message) => self.problem(at, &key, value, message),
        }
    }

    fn limit(&mut self, name: &str, at: Range<usize>, value: &Spanned<DeValue<'_>>) {
        const FORM: &str = r#"must be a table such as { concurrency = 2, rate = "10/s burst 5" }"#;
        let shown = format!("limits.{name:?}");
        let key = match name.parse::<LimitKey>() {
            Ok(key) => key,
            Err(error) => return self.problem(at, &shown, value, error.to_string()),
        };
        let Some(table) = value.get_ref().as_table() else {
            return self.problem(at, &shown, value, FORM);
        };
        let mut rule = LimitRule::default();
        let before = self.problems.len();
        for (part, value) in table {
            let span = part.span();
            let path = format!("{shown}.{}", part.get_ref());
            let read = match part.get_ref().as_ref() {
                "concurrency" => text_of(Kind::Number, value.get_ref())
                    .and_then(|text| number(&text, 0..=u64::from(u32::MAX)))
                    .map(|cap| rule.concurrency = Some(cap)),
                "rate" => text_of(Kind::Text, value.get_ref())
                    .and_then(|text| text.parse::<Rate>().map_err(|error| error.to_string()))
                    .map(|rate| rule.rate = Some(rate)),
                other => {
                    let meant = near(other, ["concurrency", "rate"]).map(str::to_owned);
                    self.unknown(span.clone(), path.clone(), meant);
                    Ok(())
                }
            };
            if let Err(message) = read {
                self.problem(span, &path, value, message);
            }
        }
        if self.problems.len() == before && rule == LimitRule::default() {
            return self.problem(at, &shown, value, FORM);
        }
        self.values.limits.push((key, rule, self.origin(at)));
    }
}

/// The text of a value, if its type fits the kind.
fn text_of(kind: Kind, value: &DeValue<'_>) -> Result<String, String> {
    match (kind, value) {
        (Kind::Number | Kind::Span | Kind::Size | Kind::Caps, DeValue::Integer(number)) => {
            let value = i128::from_str_radix(number.as_str(), number.radix());
            value.map(|value| value.to_string()).map_err(|_| "not a number".to_owned())
        }
        (Kind::Span | Kind::Size | Kind::Text | Kind::Caps, DeValue::String(text)) => {
            Ok(text.clone().into_owned())
        }
        (Kind::Caps, DeValue::Table(table)) => {
            let mut map = BTreeMap::new();
            for (name, value) in table {
                let text = text_of(Kind::Number, value.get_ref())
                    .map_err(|why| format!("{}: {why}", name.get_ref()))?;
                let number: i64 = text.parse().map_err(|_| format!("{}: not a number", name.get_ref()))?;
                map.insert(name.get_ref().as_ref(), number);
            }
            serde_json::to_string(&map).map_err(|error| error.to_string())
        }
        (Kind::Number, _) => Err("must be a number".to_owned()),
        (Kind::Span, _) => Err("must be a span of time such as \"30s\", or a number of seconds".to_owned()),
        (Kind::Size, _) => Err("must be a size such as \"10MB\", or a number of bytes".to_owned()),
        (Kind::Text, _) => Err("must be a text in quotes".to_owned()),
        (Kind::Caps, _) => Err("must be a number or a table of names and numbers".to_owned()),
    }
}
