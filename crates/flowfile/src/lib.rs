//! Flow files: texts in YAML, JSON or TOML in, definitions out.
//!
//! The parsers of the formats stay behind this crate; what leaves it are documents and definitions of
//! `orchestrator_core::flow`. Every value and every field name keeps its line and column, so that each
//! mistake, of syntax, of form or of sense, is told with its place:
//!
//! ```
//! use orchestrator_flowfile::{FlowFile, Format};
//!
//! let text = "flow: hello\ntasks:\n  greet: { handler: command, retires: 3 }\n";
//! let report = FlowFile::from_text("hello.yaml", text, Format::Yaml).unwrap_err();
//! assert_eq!(
//!     report.to_string(),
//!     "hello.yaml:3:39  tasks.greet.retires  a task has no field \"retires\"; did you mean \"retries\"?"
//! );
//! ```
//!
//! Files come from outside: their size, their depth and what their aliases expand to are bounded.

mod file;
mod format;
mod json;
mod lines;
mod report;
mod schema;
mod toml;
mod yaml;

pub use file::FlowFile;
pub use format::{Format, MAX_DEPTH, MAX_TEXT, SyntaxError, parse};
pub use report::{Finding, MAX_FINDINGS, Report};
pub use schema::json_schema;
