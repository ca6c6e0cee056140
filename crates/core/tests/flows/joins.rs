//! When a task starts, is skipped or is blocked, and how the job ends.

use crate::harness::{Job, START, flow, task};
use orchestrator_core::flow::JoinRule::{AllDone, AnyFailed};
use orchestrator_core::flow::run::Standing;
use orchestrator_core::{JobState, TaskState};
use serde_json::json;

fn chain() -> Job {
    Job::new(flow([task("a"), task("b").needs(["a"]), task("c").needs(["b"])]), json!({}))
}

#[test]
fn a_chain_runs_in_its_order() {
    let mut job = chain();
    assert_eq!(
        (job.run.state, job.run.started, &*job.states()),
        (JobState::Pending, None, "a queued, b pending, c pending")
    );
    job.complete("a", json!(1));
    assert_eq!((job.run.state, job.run.started), (JobState::Running, Some(START)));
    assert_eq!(job.states(), "a completed, b queued, c pending");
    job.complete("b", json!(2));
    job.complete("c", json!(3));
    assert_eq!((job.run.state, job.run.ended, job.output.clone()), (JobState::Completed, Some(START), None));
    assert_eq!(job.take_entered(), "a b c");
    assert_eq!(job.run.over(), 3);
}

#[test]
fn what_needs_a_failed_task_never_runs_and_the_rest_does() {
    let mut job = Job::new(
        flow([task("a"), task("b").needs(["a"]), task("c").needs(["b"]), task("x"), task("y").needs(["x"])]),
        json!({}),
    );
    job.fail("a");
    assert_eq!(job.states(), "a failed, b skipped, c skipped, x queued, y pending");
    assert_eq!(job.run.tasks[1..3], [Standing::Blocked, Standing::Blocked]);
    job.complete("x", json!(null));
    assert_eq!(job.run.state, JobState::Running);
    job.complete("y", json!(null));
    assert_eq!((job.run.state, job.run.reason.clone()), (JobState::Failed, None));
}

#[test]
fn a_diamond_joins_once_when_both_sides_have_ended() {
    for order in [["left", "right"], ["right", "left"]] {
        let sides = [task("left").needs(["top"]), task("right").needs(["top"])];
        let join = task("join").needs(["left", "right"]);
        let mut job = Job::new(flow([join, task("top")].into_iter().chain(sides)), json!({}));
        job.complete("top", json!(1));
        assert_eq!(job.take_entered(), "top left right");
        job.complete(order[0], json!(2));
        assert_eq!(job.take_entered(), "");
        job.complete(order[1], json!(3));
        assert_eq!(job.take_entered(), "join");
        job.complete("join", json!(4));
        assert_eq!(job.run.state, JobState::Completed);
    }
}

/// `a` and `b`, and a task that joins them, with the states that they end in.
fn joined(rule: orchestrator_core::flow::JoinRule, ends: [TaskState; 2]) -> TaskState {
    let mut job = Job::new(flow([task("a"), task("b"), task("z").needs(["a", "b"]).join(rule)]), json!({}));
    for (name, end) in ["a", "b"].into_iter().zip(ends) {
        match end {
            TaskState::Completed => job.complete(name, json!(null)),
            TaskState::Skipped => job.skip(name),
            _ => job.fail(name),
        }
    }
    let joined = job.seen("z").state;
    if joined == TaskState::Queued {
        job.complete("z", json!(null));
    }
    let bad = ends.contains(&TaskState::Failed);
    assert_eq!(job.run.state, if bad { JobState::Failed } else { JobState::Completed });
    joined
}

#[test]
fn each_rule_holds_for_its_ends() {
    use TaskState::{Completed, Failed, Queued, Skipped};
    for (ends, completed, done, failed) in [
        ([Completed, Completed], Queued, Queued, Skipped),
        ([Completed, Skipped], Skipped, Queued, Skipped),
        ([Skipped, Skipped], Skipped, Queued, Skipped),
        ([Completed, Failed], Skipped, Queued, Queued),
        ([Failed, Skipped], Skipped, Queued, Queued),
        ([Failed, Failed], Skipped, Queued, Queued),
    ] {
        assert_eq!(joined(Default::default(), ends), completed, "all completed {ends:?}");
        assert_eq!(joined(AllDone, ends), done, "all done {ends:?}");
        assert_eq!(joined(AnyFailed, ends), failed, "any failed {ends:?}");
    }
}

#[test]
fn a_blocked_task_counts_as_failed_for_those_after_it() {
    let clean_up = task("clean-up").needs(["b"]).join(AnyFailed);
    let report = task("report").needs(["clean-up"]);
    let mut job = Job::new(flow([task("a"), task("b").needs(["a"]), clean_up, report]), json!({}));
    job.fail("a");
    assert_eq!(job.states(), "a failed, b skipped, clean-up queued, report pending");
    job.complete("clean-up", json!(null));
    job.complete("report", json!(null));
    assert_eq!(job.run.state, JobState::Failed);
}

#[test]
fn without_an_optional_task_the_flow_goes_on() {
    let tasks = || flow([task("a"), task("extra").needs(["a"]).optional(), task("z").needs(["a", "extra"])]);
    let mut job = Job::new(tasks(), json!({}));
    job.complete("a", json!(null));
    job.fail("extra");
    assert_eq!(job.states(), "a completed, extra skipped, z queued");
    assert_eq!(job.run.tasks[1], Standing::Skipped);
    job.complete("z", json!(null));
    assert_eq!(job.run.state, JobState::Completed);

    // What an optional task needs is not optional by that.
    let mut job = Job::new(tasks(), json!({}));
    job.fail("a");
    assert_eq!(job.states(), "a failed, extra skipped, z skipped");
    assert_eq!(job.run.tasks[1..], [Standing::Blocked, Standing::Blocked]);
    assert_eq!(job.run.state, JobState::Failed);
}

#[test]
fn a_condition_that_does_not_hold_skips_a_task_and_what_needs_it() {
    let tasks = |optional: bool| {
        let b = task("b").needs(["a"]).when("tasks.a.output.go");
        let b = if optional { b.optional() } else { b };
        flow([task("a"), b, task("c").needs(["b"]), task("d").needs(["c"]).join(AllDone)])
    };
    for (optional, output, expected) in [
        (false, json!({"go": false}), "a completed, b skipped, c skipped, d queued"),
        (false, json!({"go": []}), "a completed, b skipped, c skipped, d queued"),
        (true, json!({"go": false}), "a completed, b skipped, c queued, d pending"),
        (false, json!({"go": "yes"}), "a completed, b queued, c pending, d pending"),
    ] {
        let mut job = Job::new(tasks(optional), json!({}));
        job.complete("a", output);
        assert_eq!(job.states(), expected);
        job.complete_all();
        assert_eq!(job.run.state, JobState::Completed);
    }
}

#[test]
fn a_job_of_nothing_but_skipped_tasks_completes_at_once() {
    let job = Job::new(flow([task("a").when("input.go"), task("b").needs(["a"])]), json!({"go": false}));
    assert_eq!((job.run.state, &*job.states()), (JobState::Completed, "a skipped, b skipped"));
    assert_eq!((job.run.started, job.run.ended), (None, Some(START)));
}

#[test]
fn beginning_twice_lets_nothing_in_twice() {
    let mut job = chain();
    job.begin();
    assert_eq!(job.take_entered(), "a");
    job.complete_all();
    job.begin();
    assert_eq!(job.take_entered(), "b c");
}
