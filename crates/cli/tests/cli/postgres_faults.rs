//! What goes wrong with a PostgreSQL database, as the one who types the command sees it: what it is, what to do, an exit
//! code that scripts can tell apart, and never a password.

use crate::support::{Place, WAIT_FOR_GO, until};
use pg_harness::{GUARDED_USER, Server};
use rustix::process::Signal;

/// Stands in URLs and in the environment, and must not be repeated.
const SECRET: &str = "hunter2";

/// Every command that opens the database ends with this code and says all of this.
fn refused(url: &str, exit: i32, told: &[&str]) {
    let place = Place::new();
    let commands: [&[&str]; 4] =
        [&["queue", "stats"], &["worker"], &["migrate", "up"], &["queue", "stats", "--json"]];
    for command in commands {
        let done = place.run_with(&[("PGPASSWORD", SECRET)], &[command, &["--db", url]].concat());
        assert_eq!(done.code, exit, "{command:?}: {done:?}");
        for words in told {
            assert!(done.stderr.contains(words), "{command:?} should say {words:?}: {done:?}");
        }
        assert!(!format!("{done:?}").contains(SECRET), "{command:?}: {done:?}");
    }
}

#[test]
fn a_url_that_cannot_be_one_says_what_is_wrong_with_it() {
    for (url, told) in [
        ("mysql://ann:hunter2@db/jobs", "postgres://"),
        ("postgres:///jobs?password=hunter2", "no host"),
        ("postgres://ann:hunter2@db/jobs?sslmode=sometimes", "sslmode"),
        ("postgres://ann:hunter2@db/jobs?schema=pg_mine", "schema"),
        ("postgres://ann:hunter2@db:many/jobs", "port"),
    ] {
        refused(url, 1, &[told]);
    }
}

#[test]
fn a_server_that_cannot_be_reached_has_an_exit_code_of_its_own() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    for url in [
        format!("postgres://ann:{SECRET}@127.0.0.1:{closed}/jobs"),
        format!("postgres://ann:{SECRET}@no-such-host.invalid/jobs"),
    ] {
        refused(&url, 8, &["cannot reach the database", "check that the server runs"]);
    }
}

#[test]
fn a_server_that_says_no_is_understood() {
    let server = Server::shared();
    let with = |user: &str, database: &str| server.url_for(&format!("{user}:{SECRET}"), database);
    refused(&with(GUARDED_USER, "postgres"), 1, &["check the user and the password", "pg_hba.conf"]);
    refused(&with("nobody", "postgres"), 1, &["check the user and the password"]);
    refused(&with("orchestrator", "nowhere"), 1, &["create the database"]);
}

#[test]
fn a_schema_that_is_newer_or_not_ours_is_left_alone() {
    let server = Server::shared();
    let place = Place::new();
    let with_password = |url: &str| url.replace("orchestrator@", &format!("orchestrator:{SECRET}@"));
    let url = server.database();
    let name = url.rsplit('/').next().unwrap();
    place.expect(0, &["migrate", "up", "--db", &url]);
    server.sql(name, "UPDATE orchestrator.meta SET value = '99' WHERE name = 'version'");
    refused(&with_password(&url), 1, &["schema version 99", "newer orchestrator"]);

    let url = server.database();
    let name = url.rsplit('/').next().unwrap();
    server.sql(name, "CREATE SCHEMA orchestrator; CREATE TABLE orchestrator.bookmarks (url text)");
    server.sql(name, "GRANT USAGE ON SCHEMA orchestrator TO PUBLIC");
    refused(&with_password(&url), 1, &["bookmarks", "another program", "?schema=NAME"]);
    let mut beside = with_password(&url);
    beside.push_str("?schema=jobs");
    place.expect(0, &["migrate", "up", "--db", &beside]);
}

#[test]
fn a_standby_is_read_and_never_written_and_work_goes_on_when_it_is_promoted() {
    let server = Server::start();
    let place = Place::new();
    place.write("orchestrator.toml", &format!("[store]\ndb = \"{}\"\n", server.database()));
    let mut worker = place.start(&["worker", "-v", "--poll", "50ms"]);
    until("the worker to serve", || worker.log().contains("serving default"));
    place.enqueue_script("runs", &format!("touch started; {WAIT_FOR_GO}"), &[]);
    until("a job to run", || place.path("started").exists());
    server.become_standby();
    until("it to be read", || place.run(&["queue", "stats"]).code == 0);
    assert_eq!(place.count("in_progress"), 1);
    for command in [&["queue", "enqueue", "--artifact-id", "no", "--handler", "noop"][..], &["worker"]] {
        let refused = place.expect(1, command);
        assert!(refused.stderr.contains("standby") && refused.stderr.contains("primary"), "{refused:?}");
    }
    place.write("go", "");
    until("the worker to say why it cannot hand in the outcome", || worker.log().contains("standby"));
    assert!(worker.runs(), "{}", worker.log());
    assert_eq!(place.count("in_progress"), 1, "nothing was lost, nothing was added");

    server.promote();
    until("the outcome to be handed in", || place.count("done") == 1);
    place.enqueue_script("after", "true", &[]);
    until("the next job to be done", || place.count("done") == 2);
    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code(), Some(0), "{}", worker.log());
}
