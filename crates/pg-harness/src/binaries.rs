//! Where PostgreSQL's programs are; Debian's package is installed where there are none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where Debian and Ubuntu put each version's programs.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Where Debian's package is told not to make a cluster of its own.
const CREATE_CLUSTER: &str = "/etc/postgresql-common/createcluster.conf";
const NEEDED: [&str; 3] = ["initdb", "postgres", "psql"];

/// The directory of the programs. Installs them if need be and if this process may.
pub fn find_or_install() -> io::Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    let advice = "install PostgreSQL 14 or newer (on Debian and Ubuntu: apt-get install postgresql), \
                  or put its directory of programs (with initdb and postgres) on the PATH";
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/apt-get").exists() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("there is no PostgreSQL here: {advice}"),
        ));
    }
    install().map_err(|error| {
        io::Error::other(format!("there is no PostgreSQL here and installing it failed: {error}; {advice}"))
    })?;
    find().ok_or_else(|| io::Error::other(format!("the installed PostgreSQL is not complete: {advice}")))
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find(|dir| is_complete(dir)).or_else(|| newest(Path::new(DEBIAN)))
}

fn newest(root: &Path) -> Option<PathBuf> {
    let version = |dir: &PathBuf| dir.file_name()?.to_str()?.parse::<u32>().ok();
    let mut versions: Vec<_> = fs::read_dir(root).ok()?.flatten().map(|entry| entry.path()).collect();
    versions.sort_by_key(version);
    versions.into_iter().rev().map(|dir| dir.join("bin")).find(|dir| is_complete(dir))
}

fn is_complete(dir: &Path) -> bool {
    NEEDED.iter().all(|program| dir.join(program).is_file())
}

fn install() -> io::Result<()> {
    // The package index may be missing or old; if it cannot be had, the installation says so.
    let _ = apt(&["update"]);
    apt(&["install", "-y", "--no-install-recommends", "postgresql-common"])?;
    // Else the package would start a server for the whole machine.
    let settings = fs::read_to_string(CREATE_CLUSTER).unwrap_or_default();
    fs::write(CREATE_CLUSTER, format!("{settings}\ncreate_main_cluster = false\n"))?;
    let installed = apt(&["install", "-y", "--no-install-recommends", "postgresql"]);
    fs::write(CREATE_CLUSTER, settings)?;
    installed
}

fn apt(arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("apt-get")
        // Several test programs may install at once.
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "apt-get {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}
