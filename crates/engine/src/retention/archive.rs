//! The archive: a directory with a file per day, one job per line, as `jobs list --full` writes it.
//!
//! Lines are only appended. What was not synced does not count: nobody removes a job before [`Archive::sync`] has come
//! back. A line that a crash left unfinished is cut off when the archive is opened again, for its job is still there.

use super::RetentionError;
use orchestrator_core::Timestamp;
use orchestrator_store::JobView;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Text is handed to the file in pieces of about this size.
const PIECE: usize = 1 << 20;
/// The file whose lock says that somebody writes to the archive.
const LOCK: &str = "archive.lock";
/// What stands before and behind the day in the name of a file.
const FRONT: &str = "archive-";
const BACK: &str = ".jsonl";

/// An archive that this process alone writes to.
pub struct Archive {
    dir: PathBuf,
    /// Held until the archive is dropped.
    _lock: File,
    /// The file of the day, and its name.
    open: Option<(String, File)>,
    /// What is not written yet.
    text: Vec<u8>,
}

impl Archive {
    /// Opens the archive in a directory, which is made where there is none.
    pub async fn open(dir: PathBuf) -> Result<Archive, RetentionError> {
        let place = dir.clone();
        let lock = blocking(move || prepare(&place)).await;
        match lock {
            Ok(Some(lock)) => Ok(Archive { dir, _lock: lock, open: None, text: vec![] }),
            Ok(None) => Err(RetentionError::Elsewhere { path: dir }),
            Err(source) => Err(RetentionError::Archive { path: dir, source }),
        }
    }

    /// Writes a job into the file of a day.
    pub async fn write(&mut self, day: Timestamp, job: &JobView) -> Result<(), RetentionError> {
        let name = file_name(day);
        if self.open.as_ref().is_none_or(|(open, _)| *open != name) {
            self.sync().await?;
            let (dir, file) = (self.dir.clone(), name.clone());
            let file =
                blocking(move || open_file(&dir, &file)).await.map_err(|source| self.failed(source))?;
            self.open = Some((name, file));
        }
        serde_json::to_writer(&mut self.text, job).map_err(|error| self.failed(error.into()))?;
        self.text.push(b'\n');
        if self.text.len() >= PIECE {
            self.hand_over(false).await?;
        }
        Ok(())
    }

    /// Comes back when everything that was written is on the disk.
    pub async fn sync(&mut self) -> Result<(), RetentionError> {
        self.hand_over(true).await
    }

    async fn hand_over(&mut self, sync: bool) -> Result<(), RetentionError> {
        let Some((name, mut file)) = self.open.take() else { return Ok(()) };
        let text = std::mem::take(&mut self.text);
        let written = blocking(move || {
            file.write_all(&text)?;
            if sync {
                file.sync_all()?;
            }
            Ok(file)
        });
        let file = written.await.map_err(|source| self.failed(source))?;
        self.open = Some((name, file));
        Ok(())
    }

    fn failed(&self, source: io::Error) -> RetentionError {
        RetentionError::Archive { path: self.dir.clone(), source }
    }
}

/// The name of the file of a day (UTC).
fn file_name(day: Timestamp) -> String {
    let day = jiff::Timestamp::from_millisecond(day.as_millis()).unwrap_or_default();
    format!("{FRONT}{}{BACK}", day.to_zoned(jiff::tz::TimeZone::UTC).date())
}

/// Makes the directory ready. Answers with the lock of the archive; none if somebody else has it.
fn prepare(dir: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(dir)?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Only the newest file can end in a line that was being written.
    if let Some(newest) = files(dir)?.into_iter().max() {
        let mut newest = OpenOptions::new().read(true).write(true).open(newest)?;
        let length = newest.metadata()?.len();
        let whole = end_of_lines(&mut newest, length)?;
        if whole < length {
            newest.set_len(whole)?;
        }
    }
    Ok(Some(file))
}

/// The files of all days.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let paths =
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let is_day = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(FRONT) && name.ends_with(BACK))
    };
    Ok(paths.into_iter().filter(is_day).collect())
}

/// Opens a file to append to.
fn open_file(dir: &Path, name: &str) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(dir.join(name))?;
    if file.metadata()?.len() == 0 {
        // A new file is in its directory for good only when that is synced.
        File::open(dir)?.sync_all()?;
    }
    Ok(file)
}

/// Where the last whole line ends.
fn end_of_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut piece = vec![0; 1 << 16];
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let piece = &mut piece[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Runs what may block on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_a_file() {
        assert_eq!(file_name(Timestamp::from_millis(1_794_722_400_250)), "archive-2026-11-15.jsonl");
    }
}
