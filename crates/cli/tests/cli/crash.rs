//! kill -9 in the middle: started again, everything ends and nothing is lost.

use crate::support::{Place, until};
use rustix::process::Signal;

#[test]
fn after_kill_9_everything_ends_and_nothing_is_lost() {
    let place = Place::new();
    let lines: String = (0..120)
        .map(|n| {
            format!("{{\"artifact_id\":\"{n}\",\"handler\":\"sleep\",\"payload\":{{\"for\":\"20ms\"}}}}\n")
        })
        .collect();
    place.write("jobs.jsonl", &lines);
    place.expect(0, &["queue", "import", "jobs.jsonl"]);
    // Leases that soon run out, so that what the dead process held comes back soon.
    let run = ["queue", "run", "--drain", "--max-workers", "4", "--lease-ttl", "1s", "--heartbeat", "100ms"];
    for done in [10, 40] {
        let mut victim = place.start(&run);
        until("some to be done", || place.count("done") >= done);
        victim.signal(Signal::KILL);
        assert_eq!(victim.end().code(), None);
    }
    let last = place.expect(0, &run);
    assert!(last.stdout.starts_with("done "), "{last:?}");
    assert_eq!((place.count("done"), place.count("error"), place.count("in_progress")), (120, 0, 0));
    let again = place.json(&["queue", "import", "jobs.jsonl"]);
    assert_eq!(
        (&again["imported"], &again["duplicate"]),
        (&0.into(), &120.into()),
        "every acked job is there"
    );
}

#[test]
fn a_job_that_kills_its_workers_is_put_aside() {
    let place = Place::new();
    place.write("orchestrator.toml", "[task]\nmax_crashes = 2\n");
    // The parent of the script is the worker process.
    place.enqueue_script("poison", "kill -9 $PPID; sleep 60", &[]);
    place.enqueue_script("fine", "true", &["--priority", "low"]);
    // One worker, so that no other job is there when it happens.
    let run = ["queue", "run", "--drain", "--max-workers", "1", "--lease-ttl", "1s", "--heartbeat", "100ms"];
    for _ in 0..2 {
        // What the dead process held comes back when its lease runs out, which the next run finds.
        assert_eq!(place.start(&run).end().code(), None, "the worker was killed");
    }
    place.expect(6, &run);
    assert_eq!((place.count("done"), place.count("error")), (1, 1));
    assert_eq!(
        place.json(&["queue", "retry-failed", "--reason", "poison", "--dry-run"])["jobs"][0]["key"],
        "poison"
    );
}
