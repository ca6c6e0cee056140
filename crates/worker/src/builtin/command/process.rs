//! A program in a process group of its own, which never outlives its attempt.
//!
//! Whoever the program starts belongs to the group, unless it leaves it on purpose. The group is
//! asked to end (SIGTERM) and, after a grace, killed (SIGKILL); when the attempt's future is dropped
//! it is killed at once. What the program leaves in the background when it exits is killed too, so
//! that nothing works on for a task that has ended.

use super::payload::Program;
use orchestrator_core::{Failure, Millis};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// How much of the end of standard error is kept.
const STDERR_TAIL: usize = 2048;
/// How often a group that was asked to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process group; kills what is left of it when dropped.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // The only error that can come is that nobody is left, which is what was wanted.
            let _ = kill_process_group(leader, signal);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_none_or(|leader| test_kill_process_group(leader).is_err())
    }

    /// Kills the rest and lets go: once the leader was waited for and the group is empty, its
    /// number may come to mean somebody else.
    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a program ended.
pub(super) struct Ended {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    /// The end of it.
    pub stderr: String,
}

/// Why there is no [`Ended`].
pub(super) enum Trouble {
    TooMuch,
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Io(error)
    }
}

/// A program that runs. The pipes stay open until it is gone, so that it can write while it ends.
pub(super) struct Running {
    group: Group,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl Running {
    /// Starts a program, with `ours` on top of its environment.
    pub fn start(program: &Program, ours: &[(&'static str, String)]) -> Result<Running, Failure> {
        if let Some(cwd) = program.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(Failure::permanent(format!("cwd {} is not a directory", cwd.display())));
        }
        let mut command = Command::new(&program.run[0]);
        command
            .args(&program.run[1..])
            .envs(&program.env)
            .envs(ours.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn().map_err(|error| not_started(program, &error))?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let piped = "the pipe was asked for";
        Ok(Running {
            group: Group(leader),
            stdin: child.stdin.take(),
            stdout: child.stdout.take().expect(piped),
            stderr: child.stderr.take().expect(piped),
            child,
        })
    }

    /// Feeds the program and waits for its end.
    pub async fn finish(&mut self, input: &[u8], max_output: usize, grace: Millis) -> Result<Ended, Trouble> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = {
            let mut pump = pin!(async {
                tokio::try_join!(
                    feed(self.stdin.take(), input),
                    read_all(&mut self.stdout, &mut stdout, max_output),
                    read_tail(&mut self.stderr, &mut stderr),
                )
            });
            let mut pumped = false;
            let status = loop {
                tokio::select! {
                    done = &mut pump, if !pumped => {
                        done?;
                        pumped = true;
                    }
                    status = self.child.wait() => break status?,
                }
            };
            self.group.kill();
            // The pipes close with the group. Somebody who left it may hold them open for ever, and
            // has no claim to be waited for.
            if !pumped && let Ok(done) = timeout(grace.into(), pump).await {
                done?;
            }
            status
        };
        Ok(Ended { status, stdout, stderr: String::from_utf8_lossy(&stderr).trim().to_owned() })
    }

    /// Asks the group to end, and kills it when it has not after `grace`.
    pub async fn stop(&mut self, grace: Millis) {
        self.group.signal(Signal::TERM);
        let gone = async {
            let _ = self.child.wait().await;
            while !self.group.is_empty() {
                sleep(LOOK_EVERY).await;
            }
        };
        let _ = timeout(grace.into(), gone).await;
        self.group.kill();
        let _ = self.child.wait().await;
    }
}

fn not_started(program: &Program, error: &io::Error) -> Failure {
    use io::ErrorKind::*;
    let name = program.name();
    match error.kind() {
        NotFound => Failure::permanent(format!("there is no program {name:?} here: {error}")),
        PermissionDenied | InvalidInput | ArgumentListTooLong | NotADirectory | InvalidFilename => {
            Failure::permanent(format!("{name:?} cannot be run: {error}"))
        }
        _ if Errno::from_io_error(error) == Some(Errno::NOEXEC) => {
            Failure::permanent(format!("{name:?} is not a program: {error}"))
        }
        // Short of memory, processes or files: another time it may start.
        _ => Failure::transient(format!("{name:?} could not be started: {error}")),
    }
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> Result<(), Trouble> {
    if let Some(mut stdin) = stdin {
        // A program need not read what it is given.
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
    Ok(())
}

async fn read_all(
    from: &mut (impl AsyncRead + Unpin),
    into: &mut Vec<u8>,
    max: usize,
) -> Result<(), Trouble> {
    let cap = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    from.take(cap).read_to_end(into).await?;
    if into.len() > max { Err(Trouble::TooMuch) } else { Ok(()) }
}

async fn read_tail(from: &mut (impl AsyncRead + Unpin), into: &mut Vec<u8>) -> Result<(), Trouble> {
    let mut chunk = [0; 4096];
    loop {
        let n = from.read(&mut chunk).await?;
        if n == 0 {
            return Ok(());
        }
        into.extend_from_slice(&chunk[..n]);
        into.drain(..into.len().saturating_sub(STDERR_TAIL));
    }
}
