//! The formats of a flow file, and the bounds that hold for all of them.

use orchestrator_core::flow::document::{Node, Span};
use std::path::Path;

/// The largest text, in bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// How deep lists and maps may stand in each other.
pub const MAX_DEPTH: usize = 64;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML 1.2 with the core schema: `no` is a text.
    Yaml,
    /// JSON as in RFC 8259.
    Json,
    /// TOML 1.1.
    Toml,
}

impl Format {
    /// The format that a file's name tells.
    pub fn of_path(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match &*extension {
            "yaml" | "yml" => Some(Format::Yaml),
            "json" => Some(Format::Json),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }

    /// The format that a text looks like, for files whose name does not tell.
    pub fn guess(text: &str) -> Format {
        let text = text.trim_start_matches('\u{feff}');
        if let Some(inside) = text.trim_start().strip_prefix('{')
            && inside.trim_start().starts_with(['"', '}'])
        {
            return Format::Json;
        }
        // The first line that says anything: `key: value` in YAML, `key = value` or `[table]` in TOML.
        let said = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        match said {
            Some(line) if line.starts_with('[') => Format::Toml,
            Some(line) if line.find('=').is_some_and(|at| !line[..at].contains(':')) => Format::Toml,
            _ => Format::Yaml,
        }
    }
}

/// A text that is not of its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Where, if it is at one place.
    pub at: Option<Span>,
    /// What, and what to do.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(at: Span, message: impl Into<String>) -> Self {
        SyntaxError { at: Some(at), message: message.into() }
    }

    pub(crate) fn too_deep(at: Span) -> Self {
        SyntaxError::new(at, format!("lists and maps stand more than {MAX_DEPTH} deep in each other"))
    }
}

/// Reads a text into a document with the place of every value and field name.
pub fn parse(text: &str, format: Format) -> Result<Node, SyntaxError> {
    if text.len() > MAX_TEXT {
        let message = format!("the text has {} bytes; at most {MAX_TEXT} are read", text.len());
        return Err(SyntaxError { at: None, message });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Yaml => crate::yaml::parse(text),
        Format::Json => crate::json::parse(text),
        Format::Toml => crate::toml::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_format() {
        for (name, format) in [
            ("a.yaml", Some(Format::Yaml)),
            ("dir.json/a.yml", Some(Format::Yaml)),
            ("a.JSON", Some(Format::Json)),
            ("a.flow.toml", Some(Format::Toml)),
            ("a.txt", None),
            ("yaml", None),
        ] {
            assert_eq!(Format::of_path(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn a_text_tells_the_format() {
        for (text, format) in [
            ("flow: a\ntasks: {}\n", Format::Yaml),
            ("# a = b\nflow: \"a = b\"\n", Format::Yaml),
            ("{ flow: a }", Format::Yaml),
            ("", Format::Yaml),
            ("\u{feff}\n { \"flow\": \"a\" }", Format::Json),
            ("{}", Format::Json),
            ("# a flow\nflow = \"a: b\"\n", Format::Toml),
            ("[tasks.a]\nhandler = \"x\"\n", Format::Toml),
        ] {
            assert_eq!(Format::guess(text), format, "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_too_large_is_not_read() {
        let text = " ".repeat(MAX_TEXT + 1);
        for format in [Format::Yaml, Format::Json, Format::Toml] {
            let error = parse(&text, format).unwrap_err();
            assert_eq!(error.to_string(), "the text has 1048577 bytes; at most 1048576 are read");
        }
    }
}
