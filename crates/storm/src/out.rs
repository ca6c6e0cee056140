//! What people read: progress on stderr, the result on stdout. Nobody may be reading; that is no error.

use std::io::Write;

/// A line of progress.
pub fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// A line of the result.
pub fn tell(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}
