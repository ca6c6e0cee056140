//! A small storm of each kind on the binary of the same build.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The exit code of a storm that cannot be had here.
const SKIPPED: i32 = 77;

/// The binary, which the workspace's tests build.
fn binary() -> PathBuf {
    let bin = Path::new(env!("CARGO_BIN_EXE_storm")).with_file_name("orchestrator");
    assert!(
        bin.exists(),
        "there is no {}: build it first, with `cargo build -p orchestrator`",
        bin.display()
    );
    bin
}

/// Runs a storm in a directory of its own; answers with what it said and what it left there.
fn storm(args: &[&str]) -> (Output, Vec<String>) {
    storm_on(&binary(), args)
}

fn storm_on(bin: &Path, args: &[&str]) -> (Output, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    // A PostgreSQL server that root starts runs as somebody else, who has to get to its files.
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_storm"));
    let output = command.args(args).arg("--bin").arg(bin).env("TMPDIR", dir.path()).output().unwrap();
    let left = std::fs::read_dir(dir.path()).unwrap();
    (output, left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Runs a storm in which nothing may be found; answers with what it said.
fn calm(args: &[&str]) -> String {
    let (output, left) = storm(args);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("lost 0, doubled 0, stuck 0, wrong 0"), "{said}");
    assert_eq!(left, [""; 0], "a storm leaves nothing behind: {said}");
    said
}

#[test]
fn kills() {
    let said = calm(&["kill", "--jobs", "400", "--kills", "8", "--over", "4"]);
    assert!(said.contains("6 kills of workers, 2 kills of the submitter"), "{said}");
}

#[test]
fn stops() {
    let said = calm(&["stop", "--jobs", "400", "--stops", "8", "--workers", "4"]);
    assert!(said.contains(", 8 stops, "), "{said}");
}

#[test]
fn terms() {
    let said = calm(&["term", "--jobs", "400", "--terms", "4", "--over", "4"]);
    assert!(said.contains("(0 lost, ") && said.contains(", 4 SIGTERMs, "), "{said}");
}

#[test]
fn kills_of_replicas() {
    let said = calm(&["replicas", "--jobs", "400", "--kills", "8", "--over", "4"]);
    assert!(said.contains(", 3 workers, seed 1, postgres://"), "{said}");
    assert!(said.contains("6 kills of workers, 2 kills of the submitter"), "{said}");
}

#[test]
fn kills_of_servers_and_of_workers_elsewhere() {
    let said = calm(&["remote", "--jobs", "400", "--kills", "12", "--over", "5"]);
    assert!(said.contains(", 3 workers through 1 servers, "), "{said}");
    assert!(said.contains(" kills of workers, 3 kills of the submitter, "), "{said}");
    assert!(!said.contains(" 0 kills of servers"), "{said}");
}

#[test]
fn kills_of_servers_on_postgres() {
    let said = calm(&["remote", "--postgres", "--jobs", "400", "--kills", "12", "--over", "5"]);
    assert!(said.contains(", 3 workers through 2 servers, seed 1, postgres://"), "{said}");
    assert!(!said.contains(" 0 kills of servers"), "{said}");
}

#[test]
fn terms_on_postgres() {
    let said = calm(&["term", "--postgres", "--jobs", "300", "--terms", "4", "--over", "4"]);
    assert!(said.contains("(0 lost, ") && said.contains(", 4 SIGTERMs, "), "{said}");
}

#[test]
fn faults_of_the_database() {
    let args = ["database", "--jobs", "500", "--restarts", "2", "--kills", "2", "--cuts", "2", "--over", "5"];
    let said = calm(&args);
    assert!(
        said.contains(", 2 restarts of the server, 2 kills of sessions, 2 cuts and silences, "),
        "{said}"
    );
    assert!(said.contains("slowest: work went on "), "{said}");
}

/// A server whose database goes away says so, takes nothing in, and goes on by itself when it is back.
#[test]
fn faults_of_the_database_under_servers() {
    let faults = ["--restarts", "2", "--kills", "1", "--cuts", "1"];
    calm(&[&["database", "--servers", "2", "--jobs", "300", "--over", "4"], &faults[..]].concat());
}

/// Runs where small disks can be mounted.
fn full_disk(args: &[&str]) -> Option<String> {
    let (output, left) = storm(&[&["disk", "--jobs", "400", "--over", "8"], args].concat());
    let said = said(&output);
    if output.status.code() == Some(SKIPPED) {
        assert!(said.contains("skipped"), "{said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("submits failed"), "{said}");
    assert_eq!(left, [""; 0], "a storm leaves nothing behind: {said}");
    Some(said)
}

#[test]
fn full_disks() {
    if let Some(said) = full_disk(&["--rounds", "1"]) {
        assert!(said.contains("1 full disks"), "{said}");
    }
}

/// A server on a full disk takes nothing in, and goes on by itself when there is room.
#[test]
fn full_disks_under_a_server() {
    if let Some(said) = full_disk(&["--rounds", "1", "--servers", "1"]) {
        assert!(said.contains("1 full disks") && said.contains("through 1 servers"), "{said}");
    }
}

/// The last round takes the server's log away, which it does not survive.
#[test]
fn full_disks_under_postgres() {
    if let Some(said) = full_disk(&["--postgres", "--rounds", "2"]) {
        assert!(said.contains("2 full disks") && said.contains("the server gave up 1 times"), "{said}");
    }
}

const SMALL: [&str; 7] = ["kill", "--jobs", "40", "--kills", "0", "--over", "1"];

/// The storm must have found something, and kept what tells more.
fn found(output: &Output, left: &[String], what: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(what), "{what} not in\n{said}");
    assert!(left.iter().any(|name| name.starts_with("storm-")), "the directory is kept: {left:?}");
}

#[test]
fn a_job_that_nobody_submitted_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("other.db").display().to_string();
    let enqueue = ["queue", "enqueue", "--artifact-id", "other", "--handler", "noop", "--db", &db];
    assert!(Command::new(binary()).args(enqueue).current_dir(dir.path()).output().unwrap().status.success());
    let (output, left) = storm(&[&SMALL[..], &["--db", &db]].concat());
    found(&output, &left, "nobody submitted it");
}

/// A binary that tells the end of the story wrongly: what it says of all jobs goes through a filter.
#[test]
fn a_lost_job_and_a_result_of_another_attempt_are_found() {
    let dir = tempfile::tempdir().unwrap();
    for (filter, what) in [("sed 5d", "lost 1,"), (r#"sed 's/"attempt":1,/"attempt":2,/g'"#, "wrong: ")] {
        let bin = dir.path().join("liar");
        let real = binary();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *--full*) {0} \"$@\" | {filter};; *) exec {0} \"$@\";; esac\n",
            real.display()
        );
        std::fs::write(&bin, script).unwrap();
        std::fs::set_permissions(&bin, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (output, left) = storm_on(&bin, &SMALL);
        found(&output, &left, what);
    }
}

#[test]
fn a_storm_that_is_stopped_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_storm"));
    command
        .args(["kill", "--jobs", "4000", "--over", "300", "--bin"])
        .arg(binary())
        .env("TMPDIR", dir.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Its first line comes when everything is set up.
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("storm kill: "), "{line}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // The directory can only go, and stay away, when nobody writes into it any more.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
