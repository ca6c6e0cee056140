//! Where a setting came from, and what is wrong with one.

pub use orchestrator_core::human::near;
use serde::Serialize;
use std::fmt;

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// In the file, on a line counted from 1.
    File {
        /// The file as it was named.
        path: String,
        /// The line.
        line: usize,
    },
    /// In an environment variable.
    Env(String),
    /// In a flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{path}:{line}"),
            Origin::Env(name) => write!(f, "env {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The place: `orchestrator.toml:12`, `env ORCHESTRATOR_MAX_WORKERS`.
    pub place: String,
    /// What stands there: `queue.max_workers = 0`.
    pub found: String,
    /// What is wrong with it.
    pub message: String,
    /// The line of the file, to put problems in order; 0 elsewhere.
    #[serde(skip)]
    line: usize,
}

impl Problem {
    /// What is wrong with a value of a key.
    pub fn new(origin: &Origin, key: &str, value: &str, message: impl Into<String>) -> Self {
        let found = match origin {
            Origin::File { .. } | Origin::Default => format!("{key} = {}", shorten(value)),
            Origin::Env(_) | Origin::Flag(_) => format!("= {:?}", shorten(value)),
        };
        Problem { found, ..Problem::at_place(origin, message) }
    }

    /// What is wrong with a place as a whole.
    pub fn at_place(origin: &Origin, message: impl Into<String>) -> Self {
        let line = if let Origin::File { line, .. } = origin { *line } else { 0 };
        Problem { place: origin.to_string(), found: String::new(), message: message.into(), line }
    }

    /// With what stands there.
    pub fn found(self, found: impl Into<String>) -> Self {
        Problem { found: found.into(), ..self }
    }

    /// The place and what stands there, in one text.
    pub fn at(&self) -> String {
        let gap = if self.found.starts_with('=') { " " } else { "  " };
        format!("{}{gap}{}", self.place, self.found).trim_end().to_owned()
    }
}

/// Puts the problems of a file in the order of its lines.
pub fn sort(problems: &mut [Problem]) {
    problems.sort_by_key(|problem| problem.line);
}

/// Problems as lines, the messages below each other.
pub fn lines(problems: &[Problem]) -> Vec<String> {
    let width = problems.iter().map(|p| p.at().chars().count()).filter(|n| *n <= 60).max().unwrap_or(0);
    problems.iter().map(|p| format!("{:width$}   {}", p.at(), p.message)).collect()
}

fn shorten(value: &str) -> String {
    let line: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() > 40 { line.chars().take(37).chain("...".chars()).collect() } else { line }
}
