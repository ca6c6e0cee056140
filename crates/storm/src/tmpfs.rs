//! A small disk in memory, which can be filled up.

use crate::Failure;
use rustix::fs::statvfs;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// It is gone when dropped.
pub struct SmallDisk {
    dir: TempDir,
}

impl SmallDisk {
    /// Mounts it. `Ok(None)` where this program may not.
    pub fn mount(megabytes: u64) -> Result<Option<SmallDisk>, Failure> {
        let dir = tempfile::Builder::new().prefix("storm-disk-").tempdir()?;
        let size = CString::new(format!("size={megabytes}m"))?;
        match mount("tmpfs", dir.path(), "tmpfs", MountFlags::empty(), size.as_c_str()) {
            Ok(()) => Ok(Some(SmallDisk { dir })),
            Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => Ok(None),
            Err(error) => Err(format!("cannot mount a tmpfs: {error}").into()),
        }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// A file on it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Takes all the room that is left.
    pub fn fill(&self) -> Result<(), Failure> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.path("filler"))?;
        // A page at the end, lest the last few bytes stay free.
        for piece in [vec![0; 1 << 20], vec![0; 4096]] {
            loop {
                match file.write_all(&piece) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Gives the room back.
    pub fn free(&self) -> Result<(), Failure> {
        Ok(std::fs::remove_file(self.path("filler"))?)
    }

    /// Copies the files on it, for it is gone soon.
    pub fn save(&self, to: &Path) -> Result<(), Failure> {
        for entry in std::fs::read_dir(self.dir.path())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                continue;
            }
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
        Ok(())
    }

    /// How much room there is, in bytes.
    pub fn room(&self) -> Result<u64, Failure> {
        let stat = statvfs(self.dir.path())?;
        Ok(stat.f_bavail * stat.f_frsize)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still has a file open on it keeps it until then; the name is free at once.
        let _ = unmount(self.dir.path(), UnmountFlags::DETACH);
    }
}
