//! `migrate status`, `up` and `reopen`.

use super::*;
use serde_json::json;

#[test]
fn status_and_up_tell_of_both_kinds() {
    let place = filled();
    let status = place.json(&["migrate", "status"]);
    assert_eq!((&status["kind"], &status["jobs"]), (&json!("sqlite"), &json!(3)));
    assert_eq!((&status["pending"], &status["moved_to"]), (&json!([]), &json!(null)));
    assert_eq!(status["version"], status["known"]);
    let up = place.expect(0, &["migrate", "up"]);
    assert!(up.stdout.contains("nothing to do"), "{up:?}");

    let (url, _) = database();
    let secret = url.replace("orchestrator@", "orchestrator:hunter2@");
    let status = place.json(&["migrate", "status", "--db", &secret]);
    assert_eq!((&status["kind"], &status["version"]), (&json!("postgresql"), &json!(null)));
    assert_eq!(status["pending"].as_array().unwrap().len() as i64, status["known"].as_i64().unwrap());
    let text = place.expect(0, &["migrate", "status", "--db", &secret]).stdout;
    assert!(text.contains("none yet") && !text.contains("hunter2"), "{text}");
    let up = place.json(&["migrate", "up", "--db", &url]);
    assert_eq!((&up["from"], &up["to"]), (&json!(0), &status["known"]));
    let again = place.json(&["migrate", "up", "--db", &url]);
    assert_eq!(again["from"], again["to"]);
    assert_eq!(place.json(&["migrate", "status", "--db", &url])["jobs"], 0);
}

#[test]
fn a_newer_schema_is_shown_and_refused() {
    let place = filled();
    let (url, name) = database();
    place.expect(0, &["migrate", "up", "--db", &url]);
    sql(&name, "UPDATE orchestrator.meta SET value = '99' WHERE name = 'version'");
    let status = place.json(&["migrate", "status", "--db", &url]);
    assert_eq!((&status["version"], &status["newer"]), (&json!(99), &json!(true)));
    let up = place.expect(1, &["migrate", "up", "--db", &url]);
    assert!(up.stderr.contains("schema version 99"), "{up:?}");
    let refused = copy(&place, &url, &[]);
    assert!(refused.code == 1 && refused.stderr.contains("schema version 99"), "{refused:?}");

    rusqlite::Connection::open(place.path(FILE)).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(place.json(&["migrate", "status"])["version"], 99);
    let up = place.expect(1, &["migrate", "up"]);
    assert!(up.stderr.contains("schema version 99"), "{up:?}");
    let (url, _) = database();
    let refused = copy(&place, &url, &[]);
    assert!(refused.code == 1 && refused.stderr.contains("schema version 99"), "{refused:?}");
}

#[test]
fn a_moved_file_is_closed_until_it_is_reopened() {
    let place = filled();
    let (url, _) = database();
    copied(&place, &url);
    for args in [&["queue", "stats"][..], &["queue", "run", "--drain"], &["jobs", "list"]] {
        let refused = place.expect(5, args);
        assert!(refused.stderr.contains(&format!("moved to {url}")), "{refused:?}");
        assert!(refused.stderr.contains("--db") && refused.stderr.contains("reopen"), "{refused:?}");
    }
    assert_eq!(place.json(&["migrate", "status"])["moved_to"], url.as_str());
    let from = place.json(&["migrate", "status", "--db", &url])["copied_from"].clone();
    assert_eq!(from, place.path(FILE).display().to_string());
    let again = copied(&place, &url);
    assert!(again.stdout.contains("already"), "{again:?}");
    let elsewhere = copy(&place, &database().0, &[]);
    assert!(elsewhere.code == 5 && elsewhere.stderr.contains(&url), "{elsewhere:?}");

    let careful = place.expect(5, &["migrate", "reopen"]);
    assert!(careful.stderr.contains("--yes") && careful.stderr.contains(&url), "{careful:?}");
    place.expect(0, &["migrate", "reopen", "--yes"]);
    assert_eq!(place.count("queued"), 2);
    let twice = copy(&place, &url, &[]);
    assert!(twice.code == 5 && twice.stderr.contains("earlier copy"), "{twice:?}");
    let nothing = place.expect(0, &["migrate", "reopen", "--yes"]);
    assert!(nothing.stdout.contains("nothing to do"), "{nothing:?}");
}
