//! The configuration from the outside.

use crate::support::Place;
use serde_json::Value;

#[test]
fn all_errors_are_told_at_once() {
    let place = Place::new();
    place.write("orchestrator.toml", "[queue]\nmax_workers = 0\nmax_per_hosts = 3\n\n[retry]\nbase = 0\n");
    let env = [("ORCHESTRATOR_MAX_PER_RESOLVER", "x")];
    let check = place.run_with(&env, &["config", "check"]);
    assert_eq!(check.code, 1, "{check:?}");
    let lines: Vec<&str> = check.stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{check:?}");
    assert_eq!(lines[0], "4 errors");
    for (line, start, end) in [
        (lines[1], "  orchestrator.toml:2  queue.max_workers = 0", "must be 1 to 100000"),
        (lines[2], "  orchestrator.toml:3  queue.max_per_hosts", "unknown; did you mean queue.max_per_host?"),
        (lines[3], "  orchestrator.toml:6  retry.base = 0", "must be >= 1"),
        (lines[4], "  env ORCHESTRATOR_MAX_PER_RESOLVER = \"x\"", "not a number"),
    ] {
        assert!(line.starts_with(start) && line.ends_with(end), "{line:?}");
    }
    let json = place.run_with(&env, &["config", "check", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["ok"].as_bool(), json["errors"].as_array().unwrap().len()), (Some(false), 4));
    let run = place.run_with(&env, &["queue", "run", "--drain"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("error: 4 errors in the configuration"), "{run:?}");
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let place = Place::new();
    place.write("mine.toml", "[store]\ndb = \"file.db\"\n[queue]\ngrace = \"3s\"\n");
    let show = place.run_with(
        &[
            ("ORCHESTRATOR_DB", "env.db"),
            ("ORCHESTRATOR_MAX_RETRY_ATTEMPTS", "9"),
            ("ORCHESTRATOR_LOG_LEVEL", "info"),
        ],
        &["config", "show", "--origins", "--config", "mine.toml", "--db", "flag.db"],
    );
    for line in [
        "db = \"flag.db\" # flag --db",
        "grace = \"3s\" # mine.toml:4",
        "max_retries = 9 # env ORCHESTRATOR_MAX_RETRY_ATTEMPTS",
        "level = \"info\" # env ORCHESTRATOR_LOG_LEVEL",
        "max_workers = 8 # default",
    ] {
        let found =
            show.stdout.lines().any(|shown| shown.split_whitespace().collect::<Vec<_>>().join(" ") == line);
        assert!(found, "{line}\n{show:?}");
    }
    let json = place.json(&["config", "show", "--config", "mine.toml"]);
    assert_eq!((&json["store"]["db"], &json["queue"]["max_per_host"]), (&"file.db".into(), &4.into()));
}

#[test]
fn the_default_file_checks_out_and_is_what_is_in_force() {
    let place = Place::new();
    let without = place.json(&["config", "show"]);
    place.write("orchestrator.toml", &place.expect(0, &["config", "show", "--default"]).stdout);
    assert_eq!(place.expect(0, &["config", "check"]).stdout, "ok\n");
    assert_eq!(place.json(&["config", "show"]), without);
    let schema = place.json(&["config", "schema"]);
    assert_eq!(schema["properties"]["queue"]["properties"]["max_workers"]["default"], 8);
}

#[test]
fn a_wrong_flag_is_a_usage_error() {
    let place = Place::new();
    let done = place.expect(2, &["queue", "run", "--drain", "--max-workers", "0", "--heartbeat", "9m"]);
    assert!(done.stderr.contains("flag --max-workers = \"0\"   must be 1 to 100000"), "{done:?}");
    assert!(done.stderr.contains("must be shorter than half of queue.lease_ttl"), "{done:?}");
}

#[test]
fn a_misspelt_variable_is_pointed_out() {
    let place = Place::new();
    let done = place.run_with(&[("ORCHESTRATOR_MAX_WORKER", "3")], &["config", "check"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "ok\n"));
    assert!(done.stderr.contains("did you mean ORCHESTRATOR_MAX_WORKERS?"), "{done:?}");
}
