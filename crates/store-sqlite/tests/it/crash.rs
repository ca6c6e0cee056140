//! kill -9 at any moment: what was acked is there, what was not is there whole or not at all.

use crate::support::{Child, assert_sound, given, open, say, scratch};
use orchestrator_store::conformance::crash;
use std::path::Path;

const ROUNDS: u64 = 40;
const WORKER: &str = "crash::a_worker_that_is_killed";

#[tokio::test]
#[ignore = "a process that the other tests start and kill"]
async fn a_worker_that_is_killed() {
    let (path, seed) = given();
    let store = open(&path);
    crash::work_until_killed(&*store, seed, &mut |line| say(&line)).await;
}

#[test]
fn a_file_that_was_being_made_is_made_anew() {
    let dir = scratch();
    // Killed at once, or as soon as a file is there: the database, its log, and what comes after its tables.
    for (n, awaited) in
        [None, Some("db"), Some("db-wal"), Some("db-turn")].into_iter().cycle().enumerate().take(32)
    {
        let path = dir.path().join(format!("{n}.db"));
        let mut worker = Child::start(WORKER, &path, n as u64);
        while awaited.is_some_and(|file| !path.with_extension(file).exists()) {
            assert!(worker.is_alive(), "it ended before it made {awaited:?}");
        }
        worker.kill();
        open(&path).close();
        assert_sound(&path);
    }
}

#[tokio::test]
async fn nothing_acked_is_lost() {
    let dir = scratch();
    let path = dir.path().join("crash.db");
    let mut rng = fastrand::Rng::with_seed(1);
    let mut log = vec![];
    for round in 0..ROUNDS {
        let mut worker = Child::start(WORKER, &path, round);
        // Some die before they have said anything: while they open or make the file.
        log.extend(worker.lines(rng.usize(0..150)));
        log.extend(worker.kill());
        let store = open(&path);
        crash::check(&*store, &log).await;
        // Not each time: the next worker also meets what a dead one left.
        if round % 5 == 4 {
            crash::heal(&*store).await;
            crash::check(&*store, &log).await;
        }
        store.close();
    }
    assert!(log.len() > 1000, "only {} lines", log.len());
    assert_sound(&path);
}

#[tokio::test]
async fn the_death_of_one_process_does_not_hold_up_another() {
    let dir = scratch();
    let path = dir.path().join("crash.db");
    let mut rng = fastrand::Rng::with_seed(2);
    let mut log = vec![];
    for round in 0..10 {
        let mut victim = Child::start(WORKER, &path, 1000 + 2 * round);
        let mut other = Child::start(WORKER, &path, 1001 + 2 * round);
        log.extend(other.lines(1));
        log.extend(victim.lines(rng.usize(1..100)));
        log.extend(victim.kill());
        let commits = last_commit(&path);
        while last_commit(&path) < commits + 20 {
            log.extend(other.lines(1));
        }
        log.extend(other.kill());
        let store = open(&path);
        crash::check(&*store, &log).await;
        store.close();
    }
    let store = open(&path);
    crash::heal(&*store).await;
    crash::check(&*store, &log).await;
    store.close();
    assert_sound(&path);
}

/// The number of the newest journal entry.
fn last_commit(path: &Path) -> i64 {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.query_row("SELECT ifnull(max(n), 0) FROM journal", [], |row| row.get(0)).unwrap()
}
