//! Prometheus' own checker. It is taken from the PATH, or from Debian's package, unpacked beside the tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Checks a page of metrics.
pub fn check_metrics(page: &str) {
    let mut child = Command::new(program())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    passed(&child.wait_with_output().unwrap());
}

/// Runs it in a directory.
pub fn run(dir: &Path, args: &[&str]) {
    passed(&Command::new(program()).current_dir(dir).args(args).output().unwrap());
}

fn passed(output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed =
            std::env::split_paths(&path).map(|dir| dir.join("promtool")).find(|path| path.is_file());
        installed.unwrap_or_else(unpacked)
    })
}

/// Debian's package, unpacked into the target directory: nothing of the machine is changed.
fn unpacked() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus");
    let program = dir.join("usr/bin/promtool");
    if program.is_file() {
        return program;
    }
    // Two runs of the tests may do this at once: the last step is a rename.
    let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let advice = "install promtool (Debian's package prometheus has it), or put it on the PATH";
    let download = || {
        Command::new("apt-get").args(["-q", "download", "prometheus"]).current_dir(&fresh).output().unwrap()
    };
    let mut got = download();
    if !got.status.success() {
        let _ = Command::new("apt-get").args(["-q", "update"]).output();
        got = download();
    }
    assert!(got.status.success(), "{}: {advice}", String::from_utf8_lossy(&got.stderr));
    let package = std::fs::read_dir(&fresh).unwrap().flatten().map(|entry| entry.path());
    let package =
        package.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "deb")).unwrap();
    passed(&Command::new("dpkg").arg("-x").arg(&package).arg(fresh.path().join("all")).output().unwrap());
    // Somebody else may have been faster, which is as good.
    let _ = std::fs::rename(fresh.path().join("all"), &dir);
    assert!(program.is_file(), "{advice}");
    program
}
