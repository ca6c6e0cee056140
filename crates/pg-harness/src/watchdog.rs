//! Clears up when the process that started a server ends, also when it is killed.
//!
//! A shell waits for the end of its input, which only this process can write to. No signal of the kernel would do:
//! a parent-death signal comes when the *thread* ends that started the child, and each test has a thread of its own.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends the server of the directory `$1` if one still runs, and removes the directory.
const SCRIPT: &str = r#"
cat >/dev/null
if pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null); then
    kill -QUIT "$pid" 2>/dev/null
    tries=200
    while [ -e "$1/data/postmaster.pid" ] && [ "$tries" -gt 0 ]; do sleep 0.05; tries=$((tries - 1)); done
fi
rm -rf "$1"
"#;

/// Holds the other end of the shell's input.
pub struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Watches over the server in `home`, which is removed in the end.
    pub fn start(home: &Path) -> io::Result<Watchdog> {
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "pg-harness-watchdog"])
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // The signals of a terminal are not for it: it has to outlive us.
            .process_group(0)
            .spawn()?;
        Ok(Watchdog { shell })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // Nobody can act on a failure here, and the temporary directory is all that would be left.
        let _ = self.shell.wait();
    }
}
