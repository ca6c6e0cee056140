//! What can be wrong with a file, its place or its disk: a clear error, nothing lost, and work goes
//! on by itself when it is put right.

use crate::support::{ask, completed, job, open, scratch};
use orchestrator_core::{Key, LimitKey, LimitRule, Limits, TaskState, WorkerId};
use orchestrator_store::{Catalog, LeaseAsk, LimitChange, RuleOrigin, Store, StoreError, Submitted};
use orchestrator_store_sqlite::{Options, SCHEMA_VERSION, SqliteStore};
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

fn refused(path: &Path) -> StoreError {
    match SqliteStore::open(path, Options::default()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

/// Files and their contents, to see that a refusal changes nothing.
fn contents(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// The bytes of a database with some jobs in it.
async fn database() -> Vec<u8> {
    let dir = scratch();
    let path = dir.path().join("good.db");
    let store = open(&path);
    store.submit(vec![job("1"); 500]).await.unwrap();
    store.close();
    std::fs::read(&path).unwrap()
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_alone() {
    let good = database().await;
    let mut overwritten = good.clone();
    overwritten[4096..].fill(0x55);
    let files = [
        ("a word", b"hello\n".to_vec()),
        ("a text", b"hello\n".repeat(10_000)),
        ("half a header", good[..50].to_vec()),
        ("a header", good[..100].to_vec()),
        ("one page", good[..4096].to_vec()),
        ("half of the pages", good[..good.len() / 2].to_vec()),
        ("overwritten pages", overwritten),
    ];
    for (what, bytes) in files {
        let dir = scratch();
        let path = dir.path().join("file.db");
        std::fs::write(&path, &bytes).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::NotADatabase { .. }), "{what}: {error:?}");
        let message = error.to_string();
        assert!(
            message.contains("file.db") && message.contains("--db"),
            "{what}: where, and what to do: {message}"
        );
        assert!(
            contents(dir.path()) == [(path, bytes)],
            "{what}: the file was changed, or others left behind"
        );
    }
}

#[test]
fn the_database_of_another_program_is_refused_and_left_alone() {
    let dir = scratch();
    let path = dir.path().join("places.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let before = contents(dir.path());
    let error = refused(&path);
    assert!(
        matches!(&error, StoreError::NotADatabase { detail, .. } if detail.contains("bookmarks")),
        "{error:?}"
    );
    assert!(contents(dir.path()) == before);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let dir = scratch();
    let path = dir.path().join("newer.db");
    std::fs::write(&path, database().await).unwrap();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    let before = contents(dir.path());
    match refused(&path) {
        StoreError::NewerSchema { found, known, .. } => {
            assert_eq!((found, known), (SCHEMA_VERSION + 1, SCHEMA_VERSION));
        }
        other => panic!("{other:?}"),
    }
    assert!(contents(dir.path()) == before);
}

#[test]
fn a_place_where_no_file_can_be_is_named() {
    let dir = scratch();
    std::fs::write(dir.path().join("file"), "x").unwrap();
    for place in ["", "no/such/directory.db", "file/below.db"] {
        let path = dir.path().join(place);
        let error = refused(&path);
        assert!(matches!(error, StoreError::Open { .. }), "{place:?}: {error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{place:?}: {error}");
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let dir = scratch();
    let path = dir.path().join("empty.db");
    std::fs::write(&path, "").unwrap();
    open(&path).submit(vec![job("1")]).await.unwrap();
}

#[tokio::test]
async fn a_lock_that_another_holds_too_long_is_an_answer() {
    let dir = scratch();
    let path = dir.path().join("locked.db");
    let impatient = Options { busy_timeout: Duration::from_millis(5), ..Options::default() };
    let new = dir.path().join("new.db");
    let maker = Connection::open(&new).unwrap();
    maker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = SqliteStore::open(&new, impatient.clone()).err();
    assert!(matches!(error, Some(StoreError::Busy { .. })), "a file that is being made: {error:?}");

    let store = SqliteStore::open(&path, impatient.clone()).unwrap();
    store.submit(vec![job("1")]).await.unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    for _ in 0..2 {
        let error = store.submit(vec![job("2")]).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }) && error.is_transient(), "{error:?}");
        let error = store.lease(ask(1)).await.unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
        assert_eq!(store.stats().await.unwrap().lines[0].ready, 1, "reads go on, and nothing was taken in");
        SqliteStore::open(&path, impatient.clone()).unwrap().close();
    }
    holder.execute_batch("ROLLBACK").unwrap();
    store.submit(vec![job("3")]).await.unwrap();
    let leased = store.lease(ask(9)).await.unwrap().tasks;
    let payloads: Vec<_> = leased.iter().map(|task| task.payload.as_str()).collect();
    assert_eq!(payloads, ["1", "3"], "what was answered with busy did not happen");
}

/// A trigger stands in for all that SQLite may refuse about a single request.
#[tokio::test]
async fn a_refused_request_does_not_take_down_those_beside_it() {
    let dir = scratch();
    let path = dir.path().join("refuse.db");
    let store = open(&path);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(
        "CREATE TRIGGER refuse BEFORE INSERT ON jobs WHEN new.key = 'poison'
         BEGIN SELECT RAISE(ABORT, 'no such job'); END",
    )
    .unwrap();
    let submit = |key: &'static str| store.submit(vec![job("1").key(Key::new(key))]);
    // While the lock is held the requests gather. Whatever the first transaction took along, the
    // poison is not alone in its own.
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let requests =
        async { tokio::join!(submit("a"), submit("b"), submit("poison"), submit("c"), submit("a")) };
    let release = async { conn.execute_batch("ROLLBACK").unwrap() };
    let ((a, b, poison, c, again), ()) = tokio::join!(requests, release);
    let created = |answer: &Result<Vec<Submitted>, StoreError>| {
        matches!(answer.as_deref(), Ok([Submitted::Created { .. }]))
    };
    assert!(created(&a) && created(&b) && created(&c), "{a:?} {b:?} {c:?}");
    let error = poison.unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error:?}");
    assert!(format!("{error}").contains("no such job"), "{error}");
    assert_eq!(again.unwrap()[0].id(), a.unwrap()[0].id(), "what was undone and done again is known");
    assert_eq!(store.stats().await.unwrap().lines[0].ready, 3);
    let leased = store.lease(ask(9)).await.unwrap().tasks;
    assert_eq!(leased.len(), 3);
    assert!(store.settle(leased.iter().map(|task| completed(task.held())).collect()).await.is_ok());
}

#[tokio::test]
async fn what_was_rolled_back_is_not_remembered() {
    let dir = scratch();
    let path = dir.path().join("undone.db");
    let store = open(&path);
    let key: LimitKey = "host:a".parse().unwrap();
    let rule = Some(LimitRule::at_most(1));
    let origin = RuleOrigin::Operator;
    store.set_limits(vec![LimitChange { key: key.clone(), rule, origin }]).await.unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER refuse_job BEFORE INSERT ON jobs WHEN new.key = 'poison'
             BEGIN SELECT RAISE(ABORT, 'no such job'); END;
             CREATE TRIGGER refuse_lease BEFORE INSERT ON leases WHEN new.worker = 'poison'
             BEGIN SELECT RAISE(ABORT, 'no such worker'); END",
        )
        .unwrap();
    // The first of its tenant, its handler and its limits: their names go with it.
    let limited = |key: &str| {
        let limits = Limits::new(["host:a".parse().unwrap()]).unwrap();
        job("1").tenant("new").limits(limits).key(Key::new(key))
    };
    store.submit(vec![limited("fine"), limited("poison")]).await.unwrap_err();
    let created = store.submit(vec![limited("fine")]).await.unwrap();
    assert!(matches!(created[..], [Submitted::Created { .. }]), "{created:?}");
    let poison = LeaseAsk { worker: WorkerId::new("poison"), ..ask(1) };
    store.lease(poison).await.unwrap_err();
    let leased = store.lease(ask(1)).await.unwrap().tasks;
    assert_eq!(leased.len(), 1, "the slot of a lease that came to nothing is free");
    store.close();
    let store = open(&path);
    let kept = store.job(created[0].id()).await.unwrap().expect("it was acked");
    assert_eq!((&*kept.tenant, kept.task().worker.is_some()), ("new", true), "{kept:?}");
    assert_eq!(
        store.settle(vec![completed(leased[0].held())]).await.unwrap()[0].state(),
        Some(TaskState::Completed)
    );
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = scratch();
    let store = open(&dir.path().join("closed.db"));
    store.close();
    store.close();
    assert!(matches!(store.submit(vec![job("1")]).await, Err(StoreError::Closed)));
    assert!(matches!(store.stats().await, Err(StoreError::Closed)));
}
