//! The server starts, survives what tests do to it, and leaves nothing behind.

use pg_harness::{Options, Server};
use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn home(server: &Server) -> PathBuf {
    let data = server.sql("postgres", "SHOW data_directory");
    PathBuf::from(data.trim()).parent().unwrap().to_owned()
}

#[test]
fn it_stops_starts_and_keeps_what_was_written() {
    let server = Server::start();
    assert_ne!(server.database(), server.database());
    server.sql("db_1", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
    server.stop();
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
    server.start_again();
    server.restart();
    assert_eq!(server.sql("db_1", "SELECT n FROM kept").trim(), "7");
    assert_eq!(server.sql("db_2", "SHOW fsync").trim(), "off");
    assert_eq!(server.kill_backends(), 0);
    let home = home(&server);
    drop(server);
    assert!(!home.exists(), "{home:?} is left");
}

#[test]
fn a_standby_refuses_writes_until_it_is_promoted() {
    let server = Server::start_with(Options { fsync: true, ..Options::default() });
    server.database();
    assert_eq!(server.sql("db_1", "SHOW fsync").trim(), "on");
    server.become_standby();
    assert_eq!(server.sql("db_1", "SELECT pg_is_in_recovery()").trim(), "t");
    server.promote();
    server.sql("db_1", "CREATE TABLE taken (n int)");
}

#[test]
fn it_ends_with_the_program_that_was_killed() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_pg-harness"))
        .args(["--fsync", "work_mem=5MB"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let port: u16 = url.split([':', '/']).rev().nth(1).unwrap().parse().unwrap();
    let began = Instant::now();
    program.kill().unwrap();
    program.wait().unwrap();
    while let Ok(mut session) = TcpStream::connect(("127.0.0.1", port)) {
        assert!(began.elapsed() < Duration::from_secs(50), "the server goes on");
        // Without its client's half closed, a session that came during the shutdown would hold it up.
        let _ = session.shutdown(Shutdown::Write);
        let _ = session.read_to_end(&mut vec![]);
    }
}
