//! Removing old jobs, by hand and by itself.

use crate::support::{Place, until};
use pg_harness::Server;
use rustix::process::Signal;
use serde_json::Value;
use tokio_postgres::NoTls;

fn place() -> Place {
    let place = Place::new();
    fill(&place);
    place
}

/// Two jobs that completed, one that failed, and one that was cancelled.
fn fill(place: &Place) {
    place.enqueue_script("good-1", "true", &[]);
    place.enqueue_script("good-2", "true", &[]);
    place.enqueue_script("bad", "exit 1", &["--max-retries", "0"]);
    place.expect(6, &["queue", "run", "--drain"]);
    place.enqueue_script("unwanted", "true", &[]);
    place.expect(0, &["jobs", "cancel", &place.newest()]);
}

fn keys(place: &Place) -> Vec<String> {
    let list = place.expect(0, &["jobs", "list", "--oldest-first", "-o", "jsonl"]).stdout;
    let key = |line: &str| serde_json::from_str::<Value>(line).unwrap()["key"].as_str().unwrap().to_owned();
    list.lines().map(key).collect()
}

/// The jobs in an archive.
fn archived(place: &Place, dir: &str) -> Vec<Value> {
    let files = std::fs::read_dir(place.path(dir)).into_iter().flatten().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    let text: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn jobs_are_pruned_by_kind() {
    let place = place();
    let would = place.expect(0, &["jobs", "prune", "--older-than", "0s", "--dry-run"]);
    assert_eq!(would.stdout, "would remove 2 jobs with 2 tasks\n");
    assert_eq!(place.json(&["jobs", "prune", "--older-than", "1h"])["jobs"], 0, "none is so old");
    assert_eq!(keys(&place).len(), 4);

    let removed = place.expect(0, &["jobs", "prune", "--older-than", "0s", "--archive", "old"]);
    assert_eq!(removed.stdout, "removed 2 jobs with 2 tasks, archived in old\n");
    assert_eq!(keys(&place), ["bad", "unwanted"]);
    let old = archived(&place, "old");
    assert_eq!(old.len(), 2);
    assert_eq!((&old[0]["key"], &old[0]["state"]), (&"good-1".into(), &"completed".into()));
    assert_eq!(old[0]["tasks"][0]["counters"]["attempt"], 1, "the whole job: {}", old[0]);

    let failed = place.json(&["jobs", "prune", "--older-than", "0s", "--failed"]);
    assert_eq!((&failed["jobs"], &failed["archived"]), (&1.into(), &0.into()));
    assert_eq!(keys(&place), ["bad"], "its dead letter waits for somebody's decision");
    assert_eq!(place.json(&["jobs", "prune", "--older-than", "0s", "--dead-letters"])["jobs"], 1);
    assert_eq!(keys(&place), [""; 0]);
    place.enqueue_script("good-1", "true", &[]);
    assert_eq!(keys(&place), ["good-1"], "its key is free again");
}

#[test]
fn old_jobs_go_by_themselves() {
    let place = place();
    place.write(
        "orchestrator.toml",
        "[retention]\ncompleted = \"1ms\"\nfailed = \"1ms\"\njournal = \"1ms\"\narchive = \"old\"\n",
    );
    let _running = place.start(&["queue", "run"]);
    until("the old ones to be gone", || keys(&place) == ["bad"]);
    assert_eq!(archived(&place, "old").len(), 3);
}

#[test]
fn what_is_wrong_is_told() {
    let place = place();
    place.write("file", "");
    let span = place.expect(2, &["jobs", "prune", "--older-than", "-1d"]);
    assert!(span.stderr.contains("is not a span of time"), "{span:?}");
    place.expect(2, &["jobs", "prune"]);
    let file = place.expect(2, &["jobs", "prune", "--older-than", "0s", "--archive", "file"]);
    assert!(file.stderr.contains("a file, not a directory"), "{file:?}");
    let missing = place.expect(3, &["jobs", "prune", "--older-than", "0s", "--db", "none.db"]);
    assert!(missing.stderr.contains("there is no database yet"), "{missing:?}");
    place.write("orchestrator.toml", "[retention]\ncompleted = \"never\"\n");
    let config = place.expect(1, &["jobs", "list"]);
    assert!(config.stderr.contains("nor off; write it as 12h, 30d or off"), "{config:?}");
    place.write("orchestrator.toml", "");
    assert_eq!(keys(&place).len(), 4, "nothing was removed");
}

/// Kills a prune that has written the archive and waits for a lock to remove; `let_go` gives the lock up.
fn killed_before_the_removal(place: &Place, let_go: impl FnOnce()) {
    const PRUNE: [&str; 6] = ["jobs", "prune", "--older-than", "0s", "--archive", "old"];
    let lines = || {
        let files = std::fs::read_dir(place.path("old")).into_iter().flatten();
        let files = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        files.map(|text| text.matches('\n').count()).sum::<usize>()
    };
    let mut victim = place.start(&PRUNE);
    until("the archive to be written", || lines() == 2);
    victim.signal(Signal::KILL);
    assert_eq!(victim.end().code(), None);
    let_go();
    place.expect(0, &PRUNE);
    assert_eq!(keys(place), ["bad", "unwanted"]);
    let mut old = archived(place, "old");
    old.sort_by_key(|job| job["id"].to_string());
    assert!(old.len() >= 2, "{old:#?}");
    old.dedup();
    let kept: Vec<&str> = old.iter().filter_map(|job| job["key"].as_str()).collect();
    assert_eq!(kept, ["good-1", "good-2"], "once or twice, but always the same");
}

#[test]
fn a_kill_between_archive_and_removal_loses_nothing() {
    let place = place();
    let other = rusqlite::Connection::open(place.path("orchestrator.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    killed_before_the_removal(&place, || {
        drop(other);
        assert_eq!(keys(&place), ["good-1", "good-2", "bad", "unwanted"], "nothing went");
    });
}

#[test]
fn a_kill_between_archive_and_removal_loses_nothing_on_postgres() {
    let place = Place::new();
    let url = Server::shared().database();
    place.write("orchestrator.toml", &format!("[store]\ndb = \"{url}\"\n"));
    fill(&place);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (other, wire) = runtime.block_on(tokio_postgres::connect(&url, NoTls)).unwrap();
    runtime.spawn(wire);
    let lock = "BEGIN; SELECT FROM orchestrator.jobs FOR UPDATE";
    runtime.block_on(other.batch_execute(lock)).unwrap();
    // What the dead process sent may still be carried out.
    killed_before_the_removal(&place, || drop((other, runtime)));
}
