//! Starts the binary and looks at what it did.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a condition may take before a test gives up. Far more than any needs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits in a script until the test says so.
pub const WAIT_FOR_GO: &str = "while [ ! -e go ]; do sleep 0.02; done";

/// A directory in which the binary runs.
pub struct Place {
    dir: tempfile::TempDir,
}

/// What a run left.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The binary in this directory, with nothing of our own environment that would steer it.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orchestrator"));
        command.current_dir(self.dir.path()).args(args).stdin(Stdio::null());
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("ORCHESTRATOR_") || name == "RUST_LOG")
        {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> Done {
        done(self.command(args))
    }

    pub fn run_with(&self, env: &[(&str, &str)], args: &[&str]) -> Done {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        done(command)
    }

    /// Runs, and expects an exit code.
    pub fn expect(&self, code: i32, args: &[&str]) -> Done {
        let done = self.run(args);
        assert_eq!(done.code, code, "{args:?}: {done:#?}");
        done
    }

    /// Runs with `--json` and reads its last line, or all of it.
    pub fn json(&self, args: &[&str]) -> Value {
        let done = self.run(&[args, &["-o", "jsonl"]].concat());
        let line = done.stdout.lines().last().unwrap_or_else(|| panic!("{args:?}: {done:#?}"));
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{args:?}: {error}: {done:#?}"))
    }

    /// One number of `queue stats`.
    pub fn count(&self, state: &str) -> u64 {
        self.json(&["queue", "stats"])[state].as_u64().unwrap()
    }

    /// Puts a job in that runs a shell script in this directory.
    pub fn enqueue_script(&self, id: &str, script: &str, more: &[&str]) {
        let payload = serde_json::json!({ "run": ["sh", "-c", script], "cwd": self.dir.path() }).to_string();
        let args = ["queue", "enqueue", "--artifact-id", id, "--handler", "command", "--payload", &payload];
        self.expect(0, &[&args, more].concat());
    }

    /// Writes a flow of shell scripts that run in this directory: names, needs, scripts. `more` adds to
    /// or replaces fields of the flow.
    pub fn flow(&self, file: &str, tasks: &[(&str, &[&str], &str)], more: Value) {
        let mut flow = serde_json::json!({
            "flow": file.split('.').next(),
            "defaults": { "retries": 0, "backoff": { "initial": "10ms" } },
            "tasks": {},
        });
        for (name, needs, script) in tasks {
            let with = serde_json::json!({ "run": ["sh", "-c", script], "cwd": "." });
            flow["tasks"][name] = serde_json::json!({ "handler": "command", "needs": needs, "with": with });
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            flow[name] = value.clone();
        }
        self.write(file, &flow.to_string());
    }

    /// The id of the newest job.
    pub fn newest(&self) -> String {
        self.json(&["jobs", "list", "--limit", "1"])["id"].as_str().unwrap().to_owned()
    }

    /// The document of a job.
    pub fn job(&self, id: &str) -> Value {
        self.json(&["jobs", "status", id])
    }

    /// The state of a task of a job.
    pub fn task(&self, id: &str, task: &str) -> String {
        self.json(&["tasks", "show", id, task])["state"].as_str().unwrap().to_owned()
    }

    /// Starts the binary and lets it run; its stderr goes to a file.
    pub fn start(&self, args: &[&str]) -> Running {
        self.start_as("running", args)
    }

    /// The same under a name, for one of several.
    pub fn start_as(&self, name: &str, args: &[&str]) -> Running {
        self.start_command(name, self.command(args))
    }

    /// Any command under a name.
    pub fn start_command(&self, name: &str, mut command: Command) -> Running {
        let log = self.path(&format!("{name}.log"));
        let stderr = std::fs::File::create(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        Running { child, log }
    }
}

fn done(mut command: Command) -> Done {
    let output = command.output().unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The flows that come with the program.
pub fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/flows").canonicalize().unwrap()
}

/// A binary at work; killed when the test ends.
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it has not ended.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        let mut status = None;
        until("the process to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
