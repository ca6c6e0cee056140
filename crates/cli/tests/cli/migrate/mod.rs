//! Moving a file to PostgreSQL, against a real server.

mod crash;
mod refusals;
mod schema;
mod whole;

use crate::support::{Done, Place};
use pg_harness::Server;

const FILE: &str = "orchestrator.db";

/// A database of the tests' server, and its name.
fn database() -> (String, String) {
    let url = Server::shared().database();
    let name = url.rsplit('/').next().unwrap().to_owned();
    (url, name)
}

/// What SQL says in a database.
fn sql(name: &str, sql: &str) -> String {
    Server::shared().sql(name, sql).trim().to_owned()
}

/// A file with three jobs, of which one is done.
fn filled() -> Place {
    let place = Place::new();
    place.enqueue_script("first", "true", &[]);
    place.expect(0, &["queue", "run", "--drain"]);
    place.enqueue_script("second", "echo second >> ran", &[]);
    place.enqueue_script("third", "echo third >> ran", &[]);
    place
}

fn copy(place: &Place, url: &str, more: &[&str]) -> Done {
    place.run(&[&["migrate", "copy", "--from", FILE, "--to", url], more].concat())
}

fn copied(place: &Place, url: &str) -> Done {
    let done = copy(place, url, &[]);
    assert_eq!(done.code, 0, "{done:#?}");
    done
}
