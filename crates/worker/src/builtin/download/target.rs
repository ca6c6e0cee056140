//! Where a download goes: the path of the file, and the part file in which it grows.

use super::payload::Download;
use orchestrator_core::job::DEFAULT_TENANT;
use orchestrator_core::{ErrorClass, Failure, TaskId};
use orchestrator_store::Leased;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The longest file name: what the usual 255 bytes leave beside the suffix of a part file.
pub(super) const MAX_FILE_NAME: usize = 190;
/// How many earlier attempts are cleaned up after; more than any task has in practice.
const MAX_LEFTOVERS: u32 = 1000;

/// The file that a task wants.
pub(super) struct Target {
    path: PathBuf,
    task: TaskId,
    attempt: u32,
}

impl Target {
    pub fn new(dir: &Path, download: &Download, leased: &Leased) -> Self {
        // `join` with an absolute path is that path.
        let path = match &download.to {
            Some(to) => dir.join(to),
            None => dir.join(default_name(download, leased)),
        };
        Target { path, task: leased.task, attempt: leased.counters.attempt }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is there: with the right content where that is known, else not empty.
    pub async fn is_there(&self, sha256: Option<&str>) -> Result<bool, Failure> {
        let (path, wanted) = (self.path.clone(), sha256.map(str::to_owned));
        blocking(move || match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(meta) => match wanted {
                Some(wanted) => Ok(hash_file(&path)? == wanted),
                None => Ok(meta.len() > 0),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        })
        .await
        .map_err(|error| here(&self.path, &error))
    }

    /// Opens the part file of this attempt, after removing those of attempts that died.
    pub async fn part(&self) -> Result<(Part, tokio::fs::File), Failure> {
        let failed = |error: io::Error| here(&self.path, &error);
        let dir = self.path.parent().map(Path::to_path_buf).unwrap_or_default();
        let first = self.attempt.saturating_sub(MAX_LEFTOVERS).max(1);
        // Their names are known, so the directory, which may be huge, need not be listed.
        let leftovers: Vec<_> = (first..self.attempt).map(|attempt| self.part_path(attempt)).collect();
        blocking(move || {
            fs::create_dir_all(dir)?;
            for path in leftovers {
                let _ = fs::remove_file(path);
            }
            Ok(())
        })
        .await
        .map_err(failed)?;
        // Made here and not on another thread: a file that appears after this future was dropped
        // would have nobody to remove it.
        let part = Part { path: self.part_path(self.attempt) };
        let file = File::create(&part.path).map_err(failed)?;
        Ok((part, tokio::fs::File::from_std(file)))
    }

    /// Gives the part its name, durably. Its content must be synced before.
    pub async fn accept(&self, part: Part) -> Result<(), Failure> {
        let path = self.path.clone();
        blocking(move || {
            fs::rename(&part.path, &path)?;
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(dir)?.sync_all()
        })
        .await
        .map_err(|error| here(&self.path, &error))
    }

    fn part_path(&self, attempt: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".part-{}-{}-{attempt}", self.task.job, self.task.index));
        path.into()
    }
}

/// A part file; removed when dropped, unless it has become the target.
pub(super) struct Part {
    path: PathBuf,
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A failure of this machine's disk, which no other source can mend.
pub(super) fn here(path: &Path, error: &io::Error) -> Failure {
    use io::ErrorKind::*;
    let class = match error.kind() {
        PermissionDenied | ReadOnlyFilesystem | NotADirectory | IsADirectory | InvalidFilename => {
            ErrorClass::Permanent
        }
        _ => ErrorClass::Transient,
    };
    Failure::new(class, format!("cannot use {}: {error}", path.display()))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn hash_file(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hex(hasher))
}

/// The digest as lower case hex.
pub(super) fn hex(hasher: Sha256) -> String {
    format!("{:x}", hasher.finalize())
}

/// A name from the key of a queue's job, else from the first URL: the tasks of a flow share its key. Whatever had to be changed or left out of it
/// stands in a short hash: two downloads must never take each other's file for their own.
fn default_name(download: &Download, leased: &Leased) -> PathBuf {
    let key = leased.key.as_ref().filter(|_| leased.flow.is_none());
    let name = match (key, download.sources.first()) {
        (Some(key), _) => safe_name(key, key),
        (None, Some(source)) => {
            let last = source.url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
            safe_name(last, source.url.as_str())
        }
        (None, None) => safe_name("", &leased.task.to_string()),
    };
    // Keys are unique within a tenant only.
    if &*leased.tenant == DEFAULT_TENANT {
        name.into()
    } else {
        Path::new(&safe_name(&leased.tenant, &leased.tenant)).join(name)
    }
}

/// `text` as a file name. Where it is not all of `whole`, a hash of `whole` goes before its extension.
fn safe_name(text: &str, whole: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let safe: String = text.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    // A leading dot hides a file, or names a directory; a leading dash looks like an option.
    let safe = safe.trim_start_matches(['.', '-']);
    if safe == whole && (1..=MAX_FILE_NAME).contains(&safe.len()) {
        return safe.to_owned();
    }
    let digest = hex(Sha256::new_with_prefix(whole));
    let (stem, extension) = match safe.rsplit_once('.') {
        Some((stem, ext)) if !stem.is_empty() && is_extension(ext) => (stem, Some(ext)),
        _ => (safe, None),
    };
    let stem = &stem[..stem.len().min(100)];
    let mut name = if stem.is_empty() { "file".to_owned() } else { stem.to_owned() };
    name.push('-');
    name.push_str(&digest[..12]);
    if let Some(extension) = extension {
        name.push('.');
        name.push_str(extension);
    }
    name
}

fn is_extension(text: &str) -> bool {
    (1..=8).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_key_is_its_own_name() {
        assert_eq!(safe_name("report-7.pdf", "report-7.pdf"), "report-7.pdf");
    }

    #[test]
    fn a_changed_name_carries_a_hash_of_the_whole() {
        let name = safe_name("doi:10.1/x", "doi:10.1/x");
        assert!(name.starts_with("doi_10.1_x-"), "{name}");
        let pdf = safe_name("a.pdf", "https://one.example/a.pdf");
        assert!(pdf.starts_with("a-") && pdf.ends_with(".pdf"), "{pdf}");
        assert_ne!(pdf, safe_name("a.pdf", "https://two.example/a.pdf"));
        assert_ne!(safe_name("a/b", "a/b"), safe_name("a_b", "a_b"));
    }

    #[test]
    fn no_name_leads_anywhere_else() {
        for text in
            ["", ".", "..", "../../etc/passwd", "-rf", ".hidden", "é", &"x".repeat(500), "a\0b", "a\nb"]
        {
            let name = safe_name(text, text);
            assert!(
                !name.contains('/') && !name.starts_with(['.', '-']) && !name.is_empty(),
                "{text:?}: {name}"
            );
            assert!(name.len() <= MAX_FILE_NAME, "{name}");
        }
    }
}
