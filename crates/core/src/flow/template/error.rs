//! What is said when a template cannot be compiled or rendered.

use serde_json::Value;
use std::fmt;
use std::io;

/// How much of a value or of an expression is shown, in bytes.
const MAX_SHOWN: usize = 200;

/// One thing that is wrong with a template, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateProblem {
    /// The path inside the value, such as `.json.file` or `[0]`; empty for the value itself.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for TemplateProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{}: ", self.at)?;
        }
        f.write_str(&self.message)
    }
}

/// An expression that has no value in the scope at hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{{{ {expression} }}}}: {reason}{}{seen}", if seen.is_empty() { "" } else { "; " })]
pub struct TemplateError {
    /// The expression, without its braces; the start of it where it is long.
    pub expression: String,
    /// What went wrong.
    pub reason: String,
    /// What it found instead: the values that it refers to, each cut to about 200 characters.
    pub seen: String,
}

impl TemplateError {
    #[cold]
    pub(super) fn new(expression: &str, reason: impl Into<String>, seen: impl Into<String>) -> Self {
        TemplateError { expression: excerpt(expression), reason: reason.into(), seen: seen.into() }
    }
}

/// A text, cut to about 200 characters.
pub(crate) fn excerpt(text: &str) -> String {
    if text.len() <= MAX_SHOWN {
        return text.to_owned();
    }
    let cut = (0..=MAX_SHOWN).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...", &text[..cut])
}

/// A value as compact JSON, cut to about 200 characters. No more than that is written of it.
pub(crate) fn shown(value: &Value) -> String {
    struct Start(Vec<u8>);
    impl io::Write for Start {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() > MAX_SHOWN {
                return Err(io::ErrorKind::StorageFull.into());
            }
            // One character past the limit is enough to know that something was cut off.
            let some = bytes.len().min(MAX_SHOWN + 4);
            self.0.extend_from_slice(&bytes[..some]);
            Ok(some)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut start = Start(vec![]);
    // Its only error is that the limit was reached.
    let _ = serde_json::to_writer(&mut start, value);
    excerpt(&String::from_utf8_lossy(&start.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_cut_at_a_character() {
        assert_eq!(shown(&json!({"n": 3})), r#"{"n":3}"#);
        for value in [json!("é".repeat(500)), json!(["ü", "x".repeat(1000)]), json!(vec![1; 100_000])] {
            let text = shown(&value);
            assert!(text.len() <= MAX_SHOWN + 3 && text.ends_with("..."), "{text}");
            assert!(value.to_string().starts_with(text.trim_end_matches("...")), "{text}");
        }
    }
}
