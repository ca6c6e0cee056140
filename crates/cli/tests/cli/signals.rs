//! Ctrl-C and SIGTERM: what runs may finish, the rest goes back, and none of it costs an attempt.

use crate::support::{Place, until};
use rustix::process::Signal;

const WAIT_FOR_GO: &str = "touch started.$ORCHESTRATOR_KEY; while [ ! -e go ]; do sleep 0.02; done";

#[test]
fn ctrl_c_lets_running_jobs_finish_and_gives_back_the_rest() {
    let place = Place::new();
    place.enqueue_script("first", WAIT_FOR_GO, &["--priority", "high"]);
    place.enqueue_script("second", WAIT_FOR_GO, &["--priority", "low"]);
    let mut run = place.start(&["queue", "run", "--max-workers", "1"]);
    until("the first to start", || place.path("started.first").exists());
    run.signal(Signal::INT);
    until("the run to say so", || run.log().contains("stopping: 1 running may take up to 30s to finish"));
    place.write("go", "");
    assert_eq!(run.end().code(), Some(130));
    assert_eq!((place.count("done"), place.count("queued"), place.count("in_progress")), (1, 1, 0));
    assert!(!place.path("started.second").exists());
}

#[test]
fn ctrl_c_twice_stops_at_once() {
    let place = Place::new();
    place.enqueue_script("stuck", WAIT_FOR_GO, &["--max-retries", "0"]);
    let mut run = place.start(&["queue", "run"]);
    until("it to start", || place.path("started.stuck").exists());
    run.signal(Signal::INT);
    until("the run to say so", || run.log().contains("stopping:"));
    run.signal(Signal::INT);
    assert_eq!(run.end().code(), Some(130));
    assert_eq!((place.count("queued"), place.count("in_progress"), place.count("error")), (1, 0, 0));
    place.write("go", "");
    place.expect(0, &["queue", "run", "--drain"]);
    assert_eq!(place.count("done"), 1, "the interrupted attempt cost nothing");
}

#[test]
fn sigterm_gives_work_back_without_costing_attempts() {
    let place = Place::new();
    for n in 0..6 {
        place.enqueue_script(&n.to_string(), WAIT_FOR_GO, &["--max-retries", "0"]);
    }
    // More often than a job may crash: neither failures nor crashes may be counted.
    for _ in 0..4 {
        let mut run = place.start(&["queue", "run", "--max-workers", "3", "--grace", "1ms"]);
        until("three to run", || place.count("in_progress") == 3);
        run.signal(Signal::TERM);
        assert_eq!(run.end().code(), Some(0), "{}", run.log());
        assert_eq!((place.count("queued"), place.count("in_progress"), place.count("error")), (6, 0, 0));
    }
    place.write("go", "");
    place.expect(0, &["queue", "run", "--drain"]);
    assert_eq!(place.count("done"), 6);
}
