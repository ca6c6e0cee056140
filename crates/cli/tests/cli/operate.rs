//! Limits, changed while others run.

use crate::support::{Place, until};

#[test]
fn a_limit_set_while_jobs_run_holds_at_once() {
    let place = Place::new();
    place.expect(0, &["limits", "set", "gate:main", "--concurrency", "0"]);
    for n in 0..3 {
        place.enqueue_script(&format!("gated-{n}"), "true", &["--limit", "gate=main"]);
    }
    place.enqueue_script("free", "true", &[]);
    let _running = place.start(&["queue", "run"]);
    until("the free one to end", || place.count("done") == 1);
    until("the gated ones to be parked", || place.count("parked") == 3);
    assert_eq!((place.count("done"), place.count("in_progress")), (1, 0));
    place.expect(0, &["limits", "set", "gate:main", "--concurrency", "2"]);
    until("the gated ones to end", || place.count("done") == 4);
}

#[test]
fn rules_are_listed_set_and_cleared() {
    let place = Place::new();
    place.write(
        "orchestrator.toml",
        "[queue]\nmax_per_resolver = { unpaywall = 2 }\n[limits]\n\"db:main\" = { concurrency = 1 }\n",
    );
    place.expect(0, &["queue", "run", "--drain"]);
    let rule = |key: &str| -> Option<String> {
        let list = place.expect(0, &["limits", "list"]).stdout;
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(key))?;
        Some(line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(rule("host:*").as_deref(), Some("4 - 0 config"));
    assert_eq!(rule("resolver:*").as_deref(), Some("8 - 0 config"));
    assert_eq!(rule("resolver:unpaywall").as_deref(), Some("2 - 0 config"));

    let set = place.expect(0, &["limits", "set", "host:a.example", "--rate", "10/s burst 5"]);
    assert_eq!(set.stdout, "host:a.example  4 at once, 10/1s burst 5\n", "the number of its kind stays");
    place.expect(0, &["limits", "set", "resolver:unpaywall", "--concurrency", "1"]);
    place.write("orchestrator.toml", "");
    place.expect(0, &["queue", "run", "--drain"]);
    assert_eq!(rule("db:main"), None, "gone with the configuration that asked for it");
    assert_eq!(rule("resolver:unpaywall").as_deref(), Some("1 - 0 operator"), "an operator's rule stays");

    let cleared = place.json(&["limits", "clear", "resolver:unpaywall"]);
    assert_eq!((&cleared["key"], &cleared["concurrency"]), (&"resolver:unpaywall".into(), &8.into()));
    place.expect(3, &["limits", "clear", "resolver:unpaywall"]);
    place.expect(2, &["limits", "set", "host:a.example"]);
    place.expect(2, &["limits", "set", "nonsense", "--concurrency", "1"]);
    place.expect(2, &["limits", "set", "host:x", "--rate", "often"]);
}

#[test]
fn stacked_limits_are_never_exceeded() {
    let place = Place::new();
    place.write("orchestrator.toml", "[queue]\nmax_per_resolver = { slow = 2 }\n");
    // Each job notes how many of its kind run beside it.
    let script = "mkdir busy.$$; ls -d busy.* | wc -l >> seen; sleep 0.05; rmdir busy.$$";
    for n in 0..12 {
        place.enqueue_script(
            &n.to_string(),
            script,
            &["--limit", "resolver=slow", "--limit", "host=example.org"],
        );
    }
    let mut other = place.start(&["queue", "run", "--drain", "--max-workers", "4"]);
    place.expect(0, &["queue", "run", "--drain", "--max-workers", "4"]);
    assert_eq!(other.end().code(), Some(0));
    let seen = place.read("seen");
    let most = seen.lines().map(|line| line.trim().parse::<u32>().unwrap()).max();
    assert_eq!((seen.lines().count(), most.is_some_and(|most| most <= 2)), (12, true), "{seen}");
}
