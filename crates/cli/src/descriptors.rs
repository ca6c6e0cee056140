//! How many files and connections the process may have open: as many as the system lets it, for every client that listens is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as it goes without special rights. Answers with what holds; none where there is no limit.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(_) => current,
    }
}
