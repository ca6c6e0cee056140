//! What cannot be copied is told, and nothing is touched.

use super::*;
use orchestrator_store_sqlite::{Options, SqliteStore};

fn refused(done: &Done, code: i32, words: &[&str]) {
    assert_eq!(done.code, code, "{done:#?}");
    for word in words {
        assert!(done.stderr.contains(word), "{word:?} is missing: {done:#?}");
    }
}

#[test]
fn wrong_ends() {
    let place = filled();
    let (url, name) = database();
    let run = |from: &str, to: &str| place.run(&["migrate", "copy", "--from", from, "--to", to]);
    refused(&run("missing.db", &url), 3, &["no such database", "missing.db"]);
    assert!(!place.path("missing.db").exists(), "nothing is made");
    place.write("text.db", "this is not a database, however long it may be, and never was one ........");
    refused(&run("text.db", &url), 1, &["not an orchestrator database"]);
    place.write("empty.db", "");
    refused(&run("empty.db", &url), 1, &["not an orchestrator database", "empty"]);
    rusqlite::Connection::open(place.path("other.db")).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    refused(&run("other.db", &url), 1, &["another program"]);
    refused(&run(FILE, "copy.db"), 2, &["only from a SQLite file to PostgreSQL"]);
    refused(&run("postgres://a:hunter2@b/c", &url), 2, &["only from a SQLite file to PostgreSQL"]);
    assert!(!run("postgres://a:hunter2@b/c", &url).stderr.contains("hunter2"));
    refused(&run(FILE, "mysql://a@b/c"), 1, &["postgres://"]);
    refused(&run(FILE, "postgres://orchestrator@127.0.0.1:1/x"), 8, &["cannot reach"]);
    refused(&run(FILE, &url.replace(&name, "no_such_database")), 1, &["create the database"]);
    refused(&place.run(&["migrate", "copy", "--from", FILE]), 2, &["--to"]);
    assert_eq!(place.count("queued"), 2, "the file is as it was");
    assert_eq!(sql(&name, "SELECT count(*) FROM pg_namespace WHERE nspname = 'orchestrator'"), "0");
}

#[test]
fn a_destination_with_something_in_it() {
    let place = filled();
    let (url, _) = database();
    place.expect(0, &["queue", "enqueue", "--artifact-id", "x", "--handler", "noop", "--db", &url]);
    place.expect(0, &["limits", "set", "host:a", "--concurrency", "1", "--db", &url]);
    for more in [&["--dry-run"][..], &[]] {
        let done = copy(&place, &url, more);
        refused(&done, 5, &["not empty: 1 jobs, 0 versions of flows, 1 limits", "DROP SCHEMA", "?schema="]);
    }
    assert_eq!(place.count("queued"), 2, "the file is as it was");
    // Beside it there is room.
    copied(&place, &format!("{url}?schema=moved"));
}

#[test]
fn a_file_that_others_use() {
    let place = filled();
    place.write("orchestrator.toml", "[store]\nbusy_timeout = \"100ms\"\n");
    let (url, name) = database();
    let other = SqliteStore::open(&place.path(FILE), Options::default()).unwrap();
    refused(&copy(&place, &url, &[]), 5, &["another process has this database open", "stop it first"]);
    refused(&copy(&place, &url, &["--dry-run"]), 5, &["stop it first"]);
    refused(&place.run(&["migrate", "reopen"]), 5, &["stop it first"]);
    assert_eq!(sql(&name, "SELECT count(*) FROM pg_namespace WHERE nspname = 'orchestrator'"), "0");
    other.close();
    copied(&place, &url);
}

#[test]
fn a_destination_that_others_use() {
    let place = filled();
    let (url, _) = database();
    let worker = Place::new();
    let _running = worker.start(&["queue", "run", "--db", &url, "-v"]);
    crate::support::until("a leader", || _running.log().contains("leads"));
    refused(&copy(&place, &url, &[]), 5, &["another process works on the destination"]);
    assert_eq!(place.count("queued"), 2, "the file is as it was");
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = filled();
    let (url, name) = database();
    let done = copy(&place, &url, &["--dry-run"]);
    assert!(done.code == 0 && done.stdout.contains("nothing was written"), "{done:#?}");
    let summary = place.json(&["migrate", "copy", "--from", FILE, "--to", &url, "--dry-run"]);
    assert_eq!((&summary["tables"]["jobs"], &summary["dry_run"]), (&3.into(), &true.into()));
    assert_eq!(sql(&name, "SELECT count(*) FROM pg_namespace WHERE nspname = 'orchestrator'"), "0");
    assert_eq!(place.json(&["migrate", "status"])["moved_to"], serde_json::Value::Null);
}
