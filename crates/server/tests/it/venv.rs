//! A private Python with the packages of a test, kept under the target directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory of the programs of a Python that has this package. It is made the first time, and kept.
pub fn with(package: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("venv-{}", package.replace("==", "-")));
    let (programs, whole) = (home.join("bin"), home.join("whole"));
    if whole.exists() {
        return programs;
    }
    // What an earlier try left half done may be broken.
    let _ = std::fs::remove_dir_all(&home);
    let make = || run(Command::new("python3").args(["-m", "venv"]).arg(&home));
    if make().is_err() {
        install_python();
        make().unwrap_or_else(|error| panic!("cannot make a Python for the tests: {error}"));
    }
    let pip = run(Command::new(programs.join("python")).args(["-m", "pip", "install", "-q", package]));
    pip.unwrap_or_else(|error| panic!("cannot install {package} for the tests: {error}"));
    std::fs::write(whole, "").unwrap();
    programs
}

/// Debian's Python, where there is none that can make a private one.
fn install_python() {
    // The package index may be missing or old; if it cannot be had, the installation says so.
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-q", "-o", "DPkg::Lock::Timeout=300"]).args(arguments);
        run(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let _ = apt(&["update"]);
    let installed = apt(&["install", "-y", "--no-install-recommends", "python3", "python3-venv"]);
    installed.unwrap_or_else(|error| {
        panic!(
            "there is no Python with venv here: install it (Debian: apt-get install python3-venv); {error}"
        )
    });
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
