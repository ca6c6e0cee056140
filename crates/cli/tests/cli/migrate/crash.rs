//! A copy that dies: whenever it does, the jobs are in one place that works, and never in two.

use super::*;
use crate::support::until;
use rustix::process::Signal;
use tokio_postgres::NoTls;

/// Holds a copy up at a trigger as long as it is there.
struct Gate {
    name: String,
    _client: tokio_postgres::Client,
    /// Drives the session that holds the lock; dropped, it ends the session.
    _runtime: tokio::runtime::Runtime,
}

/// The lock behind the gate.
const LOCK: i64 = 4711;
/// In the middle of the copy: the journal comes last.
const MIDDLE: &str = "TRIGGER gate BEFORE INSERT ON orchestrator.journal";
/// When everything is written and the commit is under way.
const COMMIT: &str =
    "CONSTRAINT TRIGGER gate AFTER INSERT ON orchestrator.journal DEFERRABLE INITIALLY DEFERRED";

impl Gate {
    fn close(url: &str, name: &str, trigger: &str) -> Gate {
        make_trigger(name, trigger, &format!("PERFORM pg_advisory_xact_lock({LOCK}); RETURN NEW;"));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (client, wire) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
        runtime.spawn(wire);
        runtime.block_on(client.execute("SELECT pg_advisory_lock($1)", &[&LOCK])).unwrap();
        Gate { name: name.to_owned(), _client: client, _runtime: runtime }
    }

    /// Waits for a copy to stand before the gate.
    fn until_reached(&self) {
        until("the copy to reach the gate", || self.waiting("count(*)") == "1");
    }

    /// Ends the session that stands before the gate.
    fn end_session(&self) {
        assert_eq!(self.waiting("count(*) FILTER (WHERE pg_terminate_backend(pid))"), "1");
    }

    fn waiting(&self, what: &str) -> String {
        let sessions = "FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname";
        sql("postgres", &format!("SELECT {what} {sessions} = '{}'", self.name))
    }
}

fn make_trigger(name: &str, trigger: &str, body: &str) {
    let make = format!(
        "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$;
        CREATE {trigger} FOR EACH ROW EXECUTE FUNCTION gate()"
    );
    sql(name, &make);
}

/// Waits until no copy is under way any more.
fn until_quiet(name: &str) {
    let sessions = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND application_name = 'orchestrator'"
    );
    until("the sessions to end", || sql("postgres", &sessions) == "0");
}

/// A copy that is killed at a gate; what happens to its session at the server is the caller's choice.
fn killed_at(trigger: &str, session: impl FnOnce(Gate)) -> (Place, String, String) {
    let place = filled();
    let (url, name) = database();
    place.expect(0, &["migrate", "up", "--db", &url]);
    let gate = Gate::close(&url, &name, trigger);
    let mut running = place.start(&["migrate", "copy", "--from", FILE, "--to", &url]);
    gate.until_reached();
    running.signal(Signal::KILL);
    running.end();
    session(gate);
    until_quiet(&name);
    sql(&name, "DROP FUNCTION gate CASCADE");
    (place, url, name)
}

fn jobs_at(name: &str) -> String {
    sql(name, "SELECT count(*) FROM orchestrator.jobs")
}

#[test]
fn killed_in_the_middle() {
    let (place, url, name) = killed_at(MIDDLE, drop);
    assert_eq!(jobs_at(&name), "0", "nothing came over");
    assert_eq!(place.count("queued"), 2, "the file is as it was");
    copied(&place, &url);
    assert_eq!(jobs_at(&name), "3");
}

#[test]
fn killed_while_the_server_commits() {
    let (place, url, name) = killed_at(COMMIT, drop);
    assert_eq!(jobs_at(&name), "3", "the server had it all, and committed");
    place.expect(5, &["queue", "run", "--drain"]);
    let again = copied(&place, &url);
    assert!(again.stdout.contains("already"), "{again:?}");
}

#[test]
fn killed_before_a_commit_that_fails() {
    let (place, url, name) = killed_at(COMMIT, |gate| gate.end_session());
    assert_eq!(jobs_at(&name), "0", "nothing came over");
    let closed = place.expect(5, &["queue", "run", "--drain"]);
    assert!(closed.stderr.contains("moved to"), "whether it came over is not known yet: {closed:?}");
    copied(&place, &url);
    assert_eq!(jobs_at(&name), "3");
    place.expect(0, &["queue", "run", "--drain", "--db", &url]);
    assert_eq!(place.read("ran").lines().count(), 2, "each ran once");
}

#[test]
fn a_commit_that_is_refused() {
    let place = filled();
    let (url, name) = database();
    place.expect(0, &["migrate", "up", "--db", &url]);
    make_trigger(&name, COMMIT, "RAISE EXCEPTION 'no commit today';");
    let failed = copy(&place, &url, &[]);
    assert!(failed.code == 1 && failed.stderr.contains("no commit today"), "{failed:#?}");
    assert_eq!((jobs_at(&name).as_str(), place.count("queued")), ("0", 2), "all is as before");
}
