//! Files to test on, and this test binary as a process of its own that can be watched and killed.

use orchestrator_core::{Json, Millis, NewJob, Outcome, WorkerId};
use orchestrator_store::{Held, LeaseAsk, Settlement};
use orchestrator_store_sqlite::{Options, SqliteStore};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::Arc;

const DB: &str = "ORCHESTRATOR_TEST_DB";
const SEED: &str = "ORCHESTRATOR_TEST_SEED";
/// What tells a child's own lines from those of the test harness around it.
const MARK: &str = "child: ";

/// A directory in memory where there is such a place: what a sync costs is not what is tested.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

pub fn open(path: &Path) -> Arc<SqliteStore> {
    SqliteStore::open(path, Options::default()).unwrap()
}

/// A job of the line that [`ask`] asks for.
pub fn job(payload: &str) -> NewJob {
    NewJob::new("work").payload(Json::parse(payload).unwrap())
}

pub fn ask(slots: u32) -> LeaseAsk {
    LeaseAsk {
        worker: WorkerId::new("w"),
        queues: vec!["default".into()],
        handlers: vec!["work".into()],
        slots,
        ttl: Millis::mins(10),
        hold: Millis(0),
    }
}

pub fn completed(held: Held) -> Settlement {
    Settlement { held, outcome: Outcome::Completed(Json::null()), jitter: 0.0 }
}

/// Asserts that SQLite finds nothing wrong with a file.
pub fn assert_sound(path: &Path) {
    let conn = rusqlite::Connection::open(path).unwrap();
    let found: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

/// In a child: the file and the seed that it was started with.
pub fn given() -> (PathBuf, u64) {
    let path = std::env::var_os(DB).expect("only other tests start this, with a path");
    (path.into(), std::env::var(SEED).unwrap().parse().unwrap())
}

/// In a child: tells the parent a line.
pub fn say(line: &str) {
    // Straight to the pipe, in one write: the harness would keep what is printed, and a line must
    // be whole or not there when the process is killed.
    std::io::stdout().write_all(format!("{MARK}{line}\n").as_bytes()).unwrap();
}

/// A test of this binary, run in a process of its own.
pub struct Child {
    process: std::process::Child,
    lines: BufReader<ChildStdout>,
}

impl Child {
    /// Starts the test `name`, which must be one that is ignored.
    pub fn start(name: &str, path: &Path, seed: u64) -> Child {
        Child::start_under(Command::new(std::env::current_exe().unwrap()), name, path, seed)
    }

    /// The same, where the command line begins with `command`, which ends with this binary.
    pub fn start_under(mut command: Command, name: &str, path: &Path, seed: u64) -> Child {
        command.args([name, "--exact", "--ignored", "--nocapture"]);
        command.env(DB, path).env(SEED, seed.to_string()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut child = Child { process, lines };
        // Past what the harness says first it is about to do its work.
        while !child.raw_line().expect("the child did not start").starts_with("running 1 test") {}
        child
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    fn raw_line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        // Without its end it is the rest that a killed process left, or nothing.
        line.strip_suffix('\n').map(str::to_owned)
    }

    /// The next line that it says; `None` when it has ended.
    pub fn line(&mut self) -> Option<String> {
        loop {
            if let Some(said) = self.raw_line()?.strip_prefix(MARK) {
                return Some(said.to_owned());
            }
        }
    }

    /// The next `count` lines. Panics if it ends before.
    pub fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line().expect("the child ended by itself")).collect()
    }

    /// Kills it with SIGKILL, and gives what it had said until then.
    pub fn kill(mut self) -> Vec<String> {
        assert_eq!(self.process.try_wait().unwrap(), None, "the child ended by itself");
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Waits for its end, which must be a good one, and gives the rest of what it said.
    pub fn end(mut self) -> Vec<String> {
        let said = std::iter::from_fn(|| self.line()).collect();
        let status = self.process.wait().unwrap();
        assert!(status.success(), "the child ended with {status} after {said:?}");
        said
    }
}

impl Drop for Child {
    /// No child outlives a test that fails. One that has ended already is not there to be killed.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
