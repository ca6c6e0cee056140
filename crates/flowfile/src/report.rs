//! What is wrong with a file, with the place of each mistake.

use crate::format::SyntaxError;
use orchestrator_core::flow::document::{Kind, Node, Path, Problem, Span, Step};
use serde::Serialize;
use std::fmt;

/// The most mistakes that one report tells, each of which costs a walk through the document.
pub const MAX_FINDINGS: usize = 200;

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1; 0 where the mistake is at no place, as when there is no such file.
    pub line: u32,
    /// The column in characters, from 1; 0 where the line is.
    pub column: u32,
    /// The way to the value, such as `tasks.label.needs[0]`; empty for the document as a whole.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Finding {
    pub(crate) fn new(file: &str, at: Option<Span>, path: String, message: impl Into<String>) -> Self {
        let (line, column) = at.map_or((0, 0), |at| (at.line, at.column));
        Finding { file: file.to_owned(), line, column, path, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "  {}", self.path)?;
        }
        write!(f, "  {}", self.message)
    }
}

/// All mistakes in a file, by their place. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// The problems of a document, each with the place that its path leads to; past the first
    /// [`MAX_FINDINGS`] only how many there are.
    pub fn of_problems(file: &str, document: &Node, problems: &[Problem]) -> Report {
        let find = |problem: &Problem| {
            let at = place(document, &problem.path);
            Finding::new(file, at, problem.path.to_string(), &*problem.message)
        };
        let mut findings: Vec<_> = problems.iter().take(MAX_FINDINGS).map(find).collect();
        findings.sort_by_key(|finding| (finding.line, finding.column));
        if let Some(more @ 1..) = problems.len().checked_sub(MAX_FINDINGS) {
            let message = format!("and {more} more, told once these are mended");
            findings.push(Finding::new(file, None, String::new(), message));
        }
        Report { findings }
    }

    /// The mistakes.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(crate) fn of_syntax(file: &str, error: SyntaxError) -> Report {
        Finding::new(file, error.at, String::new(), error.message).into()
    }
}

impl From<Finding> for Report {
    fn from(finding: Finding) -> Report {
        Report { findings: vec![finding] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, finding) in self.findings.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            finding.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

/// Where a path leads, as far as the document goes. That is the value; but a block starts on a line
/// below its name, and there the name is what people look for.
fn place(document: &Node, path: &Path) -> Option<Span> {
    let mut node = document;
    let mut at = document.at;
    for step in &path.0 {
        let (name, value) = match (step, &node.kind) {
            (Step::Key(name), Kind::Map(fields)) => {
                let Some(field) = fields.iter().rev().find(|field| field.name == *name) else { break };
                (field.at, &field.value)
            }
            (Step::Index(n), Kind::List(items)) => {
                let Some(item) = items.get(*n) else { break };
                (None, item)
            }
            _ => break,
        };
        at = match (name, value.at) {
            (Some(name), Some(value)) if name.line < value.line => Some(name),
            (name, value) => value.or(name).or(at),
        };
        node = value;
    }
    at
}
