//! The binary: found, and started in every way that a storm needs. Whatever is started dies with the storm.

use crate::Failure;
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// No command of ours takes longer, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start the binary.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The binary.
    pub bin: PathBuf,
    /// This program.
    pub me: PathBuf,
    /// The store.
    pub db: String,
    /// The servers through which everything but they themselves works; without any, all work on the store.
    pub servers: Vec<String>,
    /// The configuration.
    pub config: PathBuf,
    /// Where to start it.
    pub dir: PathBuf,
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; none where it was killed or took too long.
    pub code: Option<i32>,
    /// What it wrote.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

impl Tools {
    /// A command that dies with this program.
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_at(0, args)
    }

    /// A command by way of one of the servers, where there are any.
    fn command_at(&self, number: usize, args: &[&str]) -> Command {
        match self.servers.get(number % self.servers.len().max(1)) {
            Some(server) => self.start(args, ["--server", server]),
            None => self.start(args, ["--db", &self.db]),
        }
    }

    fn start(&self, args: &[&str], place: [&str; 2]) -> Command {
        let mut command = Command::new(&self.me);
        command.arg("child").arg(std::process::id().to_string()).arg(&self.bin).args(args);
        command.args(place).arg("--config").arg(&self.config);
        command.current_dir(&self.dir).stdin(Stdio::null()).kill_on_drop(true);
        let steering = |name: &str| name.starts_with("ORCHESTRATOR_") || name == "RUST_LOG";
        for (name, _) in std::env::vars().filter(|(name, _)| steering(name)) {
            command.env_remove(name);
        }
        command
    }

    /// Runs a command to its end.
    pub async fn run(&self, args: &[&str]) -> Result<Said, Failure> {
        let output = self.command(args).output();
        let Ok(output) = tokio::time::timeout(PATIENCE, output).await else {
            return Ok(Said {
                code: None,
                stdout: String::new(),
                stderr: format!("no end after {PATIENCE:?}"),
            });
        };
        let output = output?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said =
            Said { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) };
        if said.code != Some(0) {
            let mut log = self.log("commands")?;
            writeln!(log, "{args:?} ended with {:?}: {}", said.code, said.stderr.trim_end())?;
        }
        Ok(said)
    }

    /// Runs a command that must work.
    pub async fn must(&self, args: &[&str]) -> Result<String, Failure> {
        let said = self.run(args).await?;
        if said.code != Some(0) {
            return Err(format!("{args:?} ended with {:?}: {}", said.code, said.stderr).into());
        }
        Ok(said.stdout)
    }

    /// A file for complaints, to whose end is written.
    pub fn log(&self, name: &str) -> Result<File, Failure> {
        Ok(OpenOptions::new().create(true).append(true).open(self.dir.join(format!("{name}.log")))?)
    }

    /// Starts a worker, whose complaints go to the end of a file.
    pub fn worker(&self, number: usize) -> Result<Worker, Failure> {
        let log = self.log(&format!("worker-{number}"))?;
        let child = self.command_at(number, &["worker"]).stdout(Stdio::null()).stderr(log).spawn()?;
        Ok(Worker { child })
    }

    /// Starts one of the servers on the store, always at the same address.
    pub fn serve(&self, number: usize) -> Result<Worker, Failure> {
        let url = self.servers.get(number).ok_or("there is no such server")?;
        let address = url.strip_prefix("http://").unwrap_or(url);
        let log = self.log(&format!("server-{number}"))?;
        let mut command = self.start(&["serve", "--listen", address], ["--db", &self.db]);
        Ok(Worker { child: command.stdout(Stdio::null()).stderr(log).spawn()? })
    }

    /// Waits until every server takes connections.
    pub async fn until_served(&self) -> Result<(), Failure> {
        for url in &self.servers {
            let address = url.strip_prefix("http://").unwrap_or(url);
            let until = tokio::time::Instant::now() + PATIENCE;
            while let Err(error) = tokio::net::TcpStream::connect(address).await {
                if tokio::time::Instant::now() > until {
                    return Err(format!("{url} is not served: {error}").into());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }
}

/// A process at work: a worker, or a server.
pub struct Worker {
    child: Child,
}

impl Worker {
    /// Sends it a signal; one that has ended hears nothing.
    pub fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// Kills it, and waits until it is gone. Answers whether it was at work until then.
    pub async fn kill(&mut self) -> Result<bool, Failure> {
        let lived = self.lives();
        self.signal(Signal::KILL);
        self.child.wait().await?;
        Ok(lived)
    }

    /// Waits for its end, at most so long; answers with its exit code.
    pub async fn end_within(&mut self, span: Duration) -> Result<Option<i32>, Failure> {
        match tokio::time::timeout(span, self.child.wait()).await {
            Ok(status) => Ok(status?.code()),
            Err(_) => Ok(None),
        }
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Sends a process a signal.
pub fn send(child: &Child, signal: Signal) {
    // A child that was not waited for keeps its number, so this reaches nobody else.
    if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Becomes another program that is killed when `parent`, who started it, dies.
pub fn become_child(parent: i32, program: &Path, args: &[String]) -> Failure {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // Who died before the line above is not told of.
    if Pid::as_raw(getppid()) != parent {
        return "the storm is over".into();
    }
    std::process::Command::new(program).args(args).exec().into()
}

/// The binary to storm: the one given, else that beside this program, else a new build.
pub fn find_binary(given: Option<PathBuf>, me: &Path) -> Result<PathBuf, Failure> {
    if let Some(bin) = given {
        return bin.canonicalize().map_err(|error| format!("{}: {error}", bin.display()).into());
    }
    let dir = me.parent().ok_or("this program stands nowhere")?;
    // Tests stand one directory deeper than programs.
    let dir = if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir };
    let beside = dir.join("orchestrator");
    if beside.exists() {
        return Ok(beside);
    }
    let mut build = std::process::Command::new("cargo");
    build.args(["build", "-p", "orchestrator"]);
    if dir.ends_with("release") {
        build.arg("--release");
    }
    if !build.status()?.success() || !beside.exists() {
        return Err(
            format!("there is no {}; build it with `cargo build -p orchestrator`", beside.display()).into()
        );
    }
    Ok(beside)
}
