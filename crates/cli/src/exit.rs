//! The exit codes, in one place. Scripts rely on them.

use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Ok = 0,
    /// Something went wrong.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// What was asked for does not exist.
    NotFound = 3,
    /// It contradicts what is there.
    Conflict = 5,
    /// The work that was waited for failed.
    WorkFailed = 6,
    /// The wait took too long.
    TimedOut = 7,
    /// The store does not answer.
    Unreachable = 8,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
