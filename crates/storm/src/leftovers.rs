//! Directories of a storm that was interrupted. What it had started is killed, but may still write for a moment: a
//! directory can only go when all that is over.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So long it is tried.
const PATIENCE: Duration = Duration::from_secs(20);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

static DIRS: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// Notes a directory that must not stay.
pub fn note(dir: &Path) {
    DIRS.lock().unwrap_or_else(PoisonError::into_inner).push(dir.to_owned());
}

/// Removes what was noted and is still there. To be called when nothing of the storm runs in this process any more.
pub fn remove() {
    let dirs = std::mem::take(&mut *DIRS.lock().unwrap_or_else(PoisonError::into_inner));
    let began = Instant::now();
    for dir in dirs {
        while std::fs::remove_dir_all(&dir).is_err() && dir.exists() && began.elapsed() < PATIENCE {
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
}
