//! A program and all that it started end with its attempt.
//!
//! Each script opens a FIFO and leaves it to its children. The reader sees "ready" when the script
//! is up, and the end of the file when the last of them is gone. Who is not killed says so.

use super::{config, failed, handler, work};
use orchestrator_core::{ErrorClass, Json, Millis, Outcome};
use orchestrator_worker::builtin::BuiltinConfig;
use orchestrator_worker::{Handler, Work};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::task::{JoinHandle, spawn_blocking};

/// A grandchild in the background: it is killed, or it will tell.
const SURVIVOR: &str = "(sleep 30; echo survived >&3) &";

/// Watches a script through its FIFO.
struct Watch {
    dir: TempDir,
    reader: Option<BufReader<File>>,
}

impl Watch {
    fn new() -> Watch {
        let dir = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").arg(dir.path().join("fifo")).status().unwrap().success());
        Watch { dir, reader: None }
    }

    /// A payload that runs `script` with the FIFO open as 3, in a directory of its own, and with
    /// SURVIVOR put in.
    fn payload(&self, script: &str) -> Value {
        json!({"run": ["sh", "-c", format!("exec 3>fifo; {}", script.replace("SURVIVOR", SURVIVOR))], "cwd": self.dir.path()})
    }

    /// Waits until the script is up.
    async fn ready(&mut self) {
        let path = self.dir.path().join("fifo");
        let reader = spawn_blocking(move || BufReader::new(File::open(path).unwrap()));
        self.reader = Some(reader.await.unwrap());
        self.says("ready\n").await;
    }

    /// Waits for the next line, and that it is this one.
    async fn says(&mut self, expected: &str) {
        let mut reader = self.reader.take().expect("it was ready");
        let read = spawn_blocking(move || {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            (reader, line)
        });
        let (reader, line) = read.await.unwrap();
        assert_eq!(line, expected);
        self.reader = Some(reader);
    }

    /// Waits until nobody is left.
    async fn all_gone(&mut self) {
        let reader = self.reader.take().expect("it was ready");
        let rest = spawn_blocking(move || std::io::read_to_string(reader).unwrap());
        assert_eq!(rest.await.unwrap(), "");
    }
}

fn command() -> Arc<dyn Handler> {
    // No test waits that long: they end by a signal or on a paused clock.
    handler("command", BuiltinConfig { kill_grace: Millis::hours(1), ..config(Path::new("nowhere")) })
}

fn start(work: Work) -> JoinHandle<Outcome> {
    tokio::spawn(async move { command().run(work).await })
}

#[tokio::test]
async fn a_cancelled_program_may_tidy_up() {
    let mut watch = Watch::new();
    // A shell may lose a signal for a child that it forks while it has a trap: fork first.
    let script = "SURVIVOR trap 'wait; echo bye >&3; exit 0' TERM; echo ready >&3; wait";
    let job = work(watch.payload(script));
    let (cancelled, running) = (job.cancelled.clone(), start(job));
    watch.ready().await;
    cancelled.cancel();
    watch.says("bye\n").await;
    assert_eq!(running.await.unwrap(), Outcome::Released);
    watch.all_gone().await;
}

#[tokio::test]
async fn a_grandchild_has_the_grace_too() {
    let mut watch = Watch::new();
    // The leader dies of the signal at once; its child still says good-bye.
    let script = "(SURVIVOR trap 'wait; echo bye >&3; exit 0' TERM; echo ready >&3; wait) & wait";
    let job = work(watch.payload(script));
    let (cancelled, running) = (job.cancelled.clone(), start(job));
    watch.ready().await;
    cancelled.cancel();
    watch.says("bye\n").await;
    // Who adopts the dead may take a while to bury them; the rest of the grace is not worth waiting for.
    tokio::time::pause();
    assert_eq!(running.await.unwrap(), Outcome::Released);
    watch.all_gone().await;
}

#[tokio::test]
async fn who_does_not_listen_is_killed_after_the_grace() {
    let mut watch = Watch::new();
    let job = work(watch.payload("trap '' TERM; SURVIVOR echo ready >&3; wait"));
    let (cancelled, running) = (job.cancelled.clone(), start(job));
    watch.ready().await;
    tokio::time::pause();
    cancelled.cancel();
    assert_eq!(running.await.unwrap(), Outcome::Released);
    watch.all_gone().await;
}

#[tokio::test]
async fn a_dropped_attempt_kills_the_grandchildren() {
    let mut watch = Watch::new();
    let running = start(work(watch.payload("trap '' TERM; SURVIVOR echo ready >&3; wait")));
    watch.ready().await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    watch.all_gone().await;
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_stopped() {
    let mut watch = Watch::new();
    let mut payload = watch.payload("SURVIVOR echo ready >&3; wait");
    payload["timeout"] = json!("20m");
    let running = start(work(payload));
    watch.ready().await;
    tokio::time::pause();
    let failure = failed(running.await.unwrap());
    assert_eq!(failure.class, ErrorClass::Timeout);
    assert_eq!(failure.message, "sh took longer than 20m");
    watch.all_gone().await;
}

#[tokio::test]
async fn a_program_that_writes_too_much_is_killed() {
    let mut watch = Watch::new();
    let running = start(work(watch.payload("SURVIVOR echo ready >&3; yes")));
    watch.ready().await;
    let failure = failed(running.await.unwrap());
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert_eq!(failure.message, "sh wrote more than 10000 bytes");
    watch.all_gone().await;
}

#[tokio::test]
async fn what_stays_behind_in_the_background_is_killed() {
    let mut watch = Watch::new();
    let running = start(work(watch.payload("SURVIVOR echo ready >&3; echo '\"done\"'; exit 0")));
    watch.ready().await;
    assert_eq!(running.await.unwrap(), Outcome::Completed(json!("done").into()));
    watch.all_gone().await;
}

#[tokio::test]
async fn who_left_the_group_is_not_waited_for() {
    let mut watch = Watch::new();
    for fifo in ["up", "go"] {
        assert!(Command::new("mkfifo").arg(watch.dir.path().join(fifo)).status().unwrap().success());
    }
    // A session of its own, which holds standard output open until the test lets it go.
    let script = "setsid sh -c 'exec 3>&-; echo > up; : < go' & read _ < up; echo ready >&3; exit 0";
    let running = start(work(watch.payload(script)));
    watch.ready().await;
    tokio::time::pause();
    assert_eq!(running.await.unwrap(), Outcome::Completed(Json::null()));
    drop(File::options().write(true).open(watch.dir.path().join("go")).unwrap());
}
