//! Jobs that are cancelled, run out of time, or are paused.

use crate::harness::{Job, START, flow, task};
use orchestrator_core::flow::Run;
use orchestrator_core::{JobState, Millis};
use serde_json::json;

fn midway() -> Job {
    let each = task("each").needs(["a"]).for_each(json!([0, 1, 2])).concurrency(1);
    let mut job = Job::new(flow([task("a"), each, task("z").needs(["each"]), task("b")]), json!({}));
    job.complete("a", json!(null));
    job.complete("each[0]", json!(null));
    job
}

#[test]
fn stopping_ends_what_has_not_ended_and_nothing_else() {
    for (state, word) in [(JobState::Cancelled, "cancelled"), (JobState::TimedOut, "timed_out")] {
        let mut job = midway();
        job.stop(state);
        assert_eq!(
            job.states(),
            format!(
                "a completed, each {word}, each[0] completed, each[1] {word}, each[2] {word}, z {word}, b {word}"
            )
        );
        assert_eq!((job.run.state, job.run.ended), (state, Some(START)));
        assert_eq!(job.run.reason.as_deref(), Some("that is enough"));
        assert_eq!(job.run.groups[0].failed, 2);
    }
}

#[test]
fn the_clock_stands_still_while_a_job_is_paused() {
    let plan = flow([task("a")]).timeout(Millis::mins(10)).plan().unwrap();
    let at = |minutes| START + Millis::mins(minutes);
    let mut run = Run::new(&plan);
    assert_eq!(run.times_out(), None, "it has not begun");
    run.deadline = Some(at(10));
    run.start(START);
    run.start(at(1));
    assert_eq!((run.started, run.times_out()), (Some(START), Some(at(10))));
    assert!(run.pause(true, at(4)) && !run.pause(true, at(5)));
    assert_eq!((run.state, run.times_out(), run.is_paused()), (JobState::Pausing, None, true));
    assert!(run.come_to_rest() && !run.come_to_rest());
    assert_eq!(run.state, JobState::Paused);
    assert!(run.resume(at(9)) && !run.resume(at(9)));
    assert_eq!((run.state, run.times_out()), (JobState::Running, Some(at(15))));
    assert!(run.pause(false, at(9)));
    assert_eq!(run.state, JobState::Paused);
}

#[test]
fn a_job_that_ended_is_not_paused_and_has_no_deadline() {
    let mut job = midway();
    assert!(job.run.pause(false, job.now));
    job.stop(JobState::Cancelled);
    assert_eq!((job.run.paused, job.run.times_out()), (None, None));
    assert!(!job.run.pause(false, job.now) && !job.run.resume(job.now) && !job.run.come_to_rest());
    assert_eq!(job.run.state, JobState::Cancelled);
}

#[test]
fn a_job_may_end_while_it_is_pausing() {
    let mut job = Job::new(flow([task("a")]), json!({}));
    job.run.start(job.now);
    assert!(job.run.pause(true, job.now));
    job.complete("a", json!(null));
    assert_eq!((job.run.state, job.run.paused), (JobState::Completed, None));
}
