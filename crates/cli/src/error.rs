//! Errors as people read them: what went wrong, where, and what to do about it.

use crate::config::Problem;
use crate::exit::Exit;
use orchestrator_core::FieldError;
use orchestrator_engine::{FlowError, JobError, RetentionError};
use orchestrator_store::StoreError;
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// The result of a command: how the program ends, or an error.
pub type CliResult<T = Exit> = Result<T, CliError>;

/// An error with all that its reader needs.
#[derive(Debug)]
pub struct CliError {
    /// How the program ends.
    pub exit: Exit,
    /// A stable word for programs.
    pub code: &'static str,
    /// What went wrong.
    pub what: String,
    /// Where: a file, a line, a flag, a job.
    pub place: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Each single problem, where there are several.
    pub details: Vec<String>,
}

impl CliError {
    /// An error of a kind.
    pub fn new(exit: Exit, code: &'static str, what: impl Into<String>) -> Self {
        CliError { exit, code, what: what.into(), place: None, hint: None, details: vec![] }
    }

    /// The command line is wrong.
    pub fn usage(what: impl Into<String>) -> Self {
        CliError::new(Exit::Usage, "usage", what)
    }

    /// Reading or writing a file failed.
    pub fn io(path: &Path, error: &std::io::Error) -> Self {
        let (exit, code) = match error.kind() {
            std::io::ErrorKind::NotFound => (Exit::NotFound, "not_found"),
            _ => (Exit::Error, "io"),
        };
        CliError::new(exit, code, error.to_string()).at(path.display().to_string())
    }

    /// Writing to stdout failed. A reader that has left (`orchestrator ... | head`) is no error.
    pub fn stdout(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => CliError::new(Exit::Ok, CLOSED_PIPE, ""),
            _ => CliError::new(Exit::Error, "io", format!("cannot write to stdout: {error}")),
        }
    }

    /// The configuration is wrong.
    pub fn config(problems: &[Problem]) -> Self {
        let count =
            if problems.len() == 1 { "1 error".to_owned() } else { format!("{} errors", problems.len()) };
        let from_flags = problems.iter().all(|problem| problem.place.starts_with("flag "));
        CliError {
            details: crate::config::problem_lines(problems),
            ..CliError::new(
                if from_flags { Exit::Usage } else { Exit::Error },
                "config",
                format!("{count} in the configuration"),
            )
        }
    }

    /// An input has wrong fields.
    pub fn fields(what: impl Into<String>, problems: &[FieldError]) -> Self {
        CliError {
            details: problems.iter().map(ToString::to_string).collect(),
            ..CliError::new(Exit::Usage, "invalid", what)
        }
    }

    /// With a place.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// With advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With more advice, after what there is.
    pub fn and_hint(self, more: &str) -> Self {
        let hint = self.hint.as_ref().map_or_else(|| more.to_owned(), |hint| format!("{hint}; {more}"));
        self.hint(hint)
    }

    /// Whether there is nothing to say: the reader of stdout has left.
    pub fn is_silent(&self) -> bool {
        self.code == CLOSED_PIPE
    }

    /// The error for people.
    pub fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.what);
        for line in self.place.iter().chain(&self.details) {
            let _ = writeln!(text, "  {line}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "  hint: {hint}");
        }
        text
    }

    /// The error for programs, on one line.
    pub fn json(&self) -> String {
        let error = json!({
            "code": self.code,
            "message": self.what,
            "where": self.place,
            "hint": self.hint,
            "details": self.details,
            "exit": self.exit.code(),
        });
        json!({ "error": error }).to_string() + "\n"
    }
}

impl From<JobError> for CliError {
    fn from(error: JobError) -> Self {
        let exit = match error {
            JobError::Store(error) | JobError::Flow(FlowError::Store(error)) => return error.into(),
            JobError::NotFound(_) | JobError::NoSuchTask { .. } => Exit::NotFound,
            JobError::Invalid { .. } => Exit::Usage,
            JobError::Flow(_) => Exit::Error,
            JobError::Conflict { .. }
            | JobError::Changed { .. }
            | JobError::Refused { .. }
            | JobError::Superseded { .. }
            | JobError::NoRecovery { .. } => Exit::Conflict,
        };
        CliError::new(exit, error.code(), error.to_string())
    }
}

impl From<RetentionError> for CliError {
    fn from(error: RetentionError) -> Self {
        match error {
            RetentionError::Store(error) => error.into(),
            RetentionError::Archive { path, source } => {
                CliError::new(Exit::Error, "archive", format!("cannot write to the archive: {source}"))
                    .at(path.display().to_string())
                    .hint("nothing was removed that is not in it; make room or fix the permissions, then run the command again")
            }
            RetentionError::Elsewhere { path } => {
                CliError::new(Exit::Conflict, "archive_busy", "another process writes to the archive just now")
                    .at(path.display().to_string())
                    .hint("it removes old jobs itself; wait for it, or name another directory with --archive")
            }
        }
    }
}

const CLOSED_PIPE: &str = "closed_pipe";

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let of = |exit, what: String| CliError::new(exit, error.code(), what);
        match &error {
            StoreError::Open { place, advice, source } => {
                of(Exit::Error, format!("cannot open the database: {source}")).at(place).hint(*advice)
            }
            StoreError::Unreachable { place, advice, source } => {
                let what = if place.starts_with("http") { "server" } else { "database" };
                of(Exit::Unreachable, format!("cannot reach the {what}: {source}")).at(place).hint(*advice)
            }
            StoreError::Remote { status, message, .. } => remote(error.code(), *status, message),
            StoreError::NotADatabase { place, detail } => {
                of(Exit::Error, format!("not an orchestrator database: {detail}"))
                    .at(place)
                    .hint("name another with --db, or move this one away")
            }
            StoreError::NewerSchema { place, found, known } => of(
                Exit::Error,
                format!("the database has schema version {found}, this program knows up to {known}"),
            )
            .at(place)
            .hint("use the newer orchestrator that wrote it"),
            StoreError::Moved { place, to } => of(Exit::Conflict, format!("this database was moved to {to}"))
                .at(place)
                .hint("use --db with that; if the copy is gone, `orchestrator migrate reopen` lets this one be used again"),
            StoreError::NotWritable { source } => {
                of(Exit::Error, format!("cannot write to the database: {source}"))
                    .hint("free some space, fix the permissions, or name the primary server; then run the command again")
            }
            StoreError::Busy { waited_ms } => of(
                Exit::Unreachable,
                format!("another process held the database's write lock for {waited_ms} ms"),
            )
            .hint("try again, or stop the process that hangs; store.busy_timeout sets how long to wait"),
            StoreError::Unknown { .. } => of(Exit::Error, error.to_string())
                .hint("run the command again: a job that was taken in is found by its artifact_id"),
            StoreError::Invalid(_) | StoreError::Closed | StoreError::Database { .. } => {
                of(Exit::Error, error.to_string())
            }
        }
    }
}

/// What a server said.
fn remote(code: &'static str, status: u16, message: &str) -> CliError {
    let exit = match (status, code) {
        (404, _) => Exit::NotFound,
        (409 | 412, _) => Exit::Conflict,
        (400..=499, _) => Exit::Usage,
        (_, "store_unreachable" | "store_busy" | "store_closed") => Exit::Unreachable,
        _ => Exit::Error,
    };
    let mut lines = message.lines().map(|line| line.trim().to_owned());
    let error = CliError::new(exit, code, lines.next().unwrap_or_default());
    let error = CliError { details: lines.collect(), ..error };
    match code {
        "no_such_path" => error.hint("the server is older than this program, or the address is not its own"),
        _ if status >= 500 => error.hint("GET /health of the server and its log tell more"),
        _ => error,
    }
}
