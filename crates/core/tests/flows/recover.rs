//! Taking a job up again: what runs again, what is kept, and what is refused.

use crate::harness::{Job, flow, task};
use orchestrator_core::flow::JoinRule::{AllDone, AnyFailed};
use orchestrator_core::flow::advance::{From, NoRecovery};
use orchestrator_core::{JobState, Millis, TaskState};
use serde_json::json;

fn from(job: &Job, name: &str) -> From {
    From::Task(job.plan.task_named(name).unwrap())
}

fn blocked(task: &str, need: &str, state: TaskState) -> NoRecovery {
    NoRecovery::Blocked { task: task.to_owned(), need: need.to_owned(), state }
}

/// a -> b -> c, and x beside them; `b` failed.
fn broken() -> Job {
    let mut job =
        Job::new(flow([task("a"), task("b").needs(["a"]), task("c").needs(["b"]), task("x")]), json!({}));
    job.complete("a", json!("kept"));
    job.complete("x", json!(null));
    job.fail("b");
    assert_eq!(
        (job.run.state, &*job.states()),
        (JobState::Failed, "a completed, b failed, c skipped, x completed")
    );
    job
}

#[test]
fn only_what_failed_and_what_needs_it_runs_again() {
    let mut job = broken();
    job.recover(From::Failures, true).unwrap();
    assert_eq!(job.states(), "a completed, b queued, c pending, x completed");
    assert_eq!((job.run.state, job.run.ended, job.run.recoveries), (JobState::Running, None, 1));
    assert_eq!(job.run.deadline, Some(job.now + Millis::mins(30)));
    job.complete_all();
    assert_eq!((job.run.state, &*job.take_entered()), (JobState::Completed, "b c"));
}

#[test]
fn from_a_task_it_and_its_descendants_run_again_even_what_had_completed() {
    let mut job = broken();
    job.recover(from(&job, "a"), true).unwrap();
    assert_eq!(job.states(), "a queued, b pending, c pending, x completed");
    job.complete_all();
    assert_eq!(job.take_entered(), "a b c");

    // What went wrong elsewhere stays wrong.
    let mut job = broken();
    job.recover(from(&job, "x"), true).unwrap();
    assert_eq!(job.states(), "a completed, b failed, c skipped, x queued");
    job.complete_all();
    assert_eq!((job.run.state, &*job.take_entered()), (JobState::Failed, "x"));
}

#[test]
fn a_task_whose_needs_went_wrong_cannot_be_where_it_starts() {
    let mut job = broken();
    let before = job.run.clone();
    assert_eq!(job.recover(from(&job, "c"), true), Err(blocked("c", "b", TaskState::Failed)));
    assert_eq!(job.run, before);
    assert_eq!(
        blocked("c", "b", TaskState::Failed).to_string(),
        "c needs b, which is failed: recover from there"
    );

    // Another rule does not ask for their good end.
    let after = task("after").needs(["b"]).join(AllDone);
    let mut job = Job::new(flow([task("b"), after]), json!({}));
    job.fail("b");
    job.fail("after");
    job.recover(from(&job, "after"), true).unwrap();
    assert_eq!(job.states(), "b failed, after queued");
}

#[test]
fn recoveries_are_counted_and_retries_are_not() {
    let mut job = Job::new(flow([task("a")]).max_recoveries(2), json!({}));
    for recovered in [1, 2] {
        job.fail("a");
        job.recover(From::Failures, true).unwrap();
        assert_eq!(job.run.recoveries, recovered);
    }
    job.fail("a");
    assert_eq!(job.recover(From::Failures, true), Err(NoRecovery::Exhausted(2)));
    job.recover(From::Failures, false).unwrap();
    assert_eq!(job.run.recoveries, 2);
    job.complete_all();
    assert_eq!((job.run.state, job.seen("a").attempt), (JobState::Completed, 4));
}

#[test]
fn only_a_job_that_ended_badly_is_recovered() {
    let mut job = Job::new(flow([task("a")]), json!({}));
    assert_eq!(job.recover(From::Failures, true), Err(NoRecovery::State(JobState::Pending)));
    job.complete("a", json!(null));
    assert_eq!(job.recover(From::Failures, true), Err(NoRecovery::State(JobState::Completed)));
    let mut job = Job::new(flow([task("a")]), json!({}));
    job.stop(JobState::Cancelled);
    assert_eq!(job.recover(From::Task(0), true), Err(NoRecovery::State(JobState::Cancelled)));
}

#[test]
fn handlers_of_a_failure_are_reset_with_it() {
    let clean_up = task("clean-up").needs(["a"]).join(AnyFailed);
    let report = task("report").needs(["a", "clean-up"]).join(AllDone);
    let mut job = Job::new(flow([task("a"), clean_up, report]), json!({}));
    job.fail("a");
    job.complete_all();
    assert_eq!(job.states(), "a failed, clean-up completed, report completed");
    job.recover(From::Failures, true).unwrap();
    job.complete_all();
    assert_eq!(job.states(), "a completed, clean-up skipped, report completed");
    assert_eq!((job.run.state, &*job.take_entered()), (JobState::Completed, "a report"));
}

#[test]
fn attempts_are_never_numbered_twice() {
    let mut job = broken();
    for round in 1..=3 {
        job.recover(from(&job, "a"), true).unwrap();
        assert_eq!(job.run.attempts, [(0, round), (1, round)]);
        job.complete("a", json!(null));
        job.fail("b");
        assert_eq!((job.seen("a").attempt, job.seen("b").attempt), (round + 1, round + 1));
    }
    // What never ran has no attempt to go on from.
    assert_eq!((job.run.attempts_before(2), job.run.attempts_before(3)), (0, 0));
}

fn list(tasks: impl IntoIterator<Item = orchestrator_core::flow::Task>) -> Job {
    let each = task("each").for_each("{{ input.list }}").concurrency(2);
    let tasks = [each, task("z").needs(["each"]).with("{{ tasks.each.output }}")].into_iter().chain(tasks);
    Job::new(flow(tasks), json!({"list": [0, 1, 2, 3, 4]}))
}

#[test]
fn of_a_list_only_the_items_that_failed_run_again_as_many_at_once_as_may() {
    let mut job = list([]);
    for n in 0..5 {
        if n == 2 { job.complete("each[2]", json!("two")) } else { job.fail(&format!("each[{n}]")) }
    }
    job.recover(From::Failures, true).unwrap();
    assert_eq!(
        job.states(),
        "each running, each[0] queued, each[1] queued, each[2] completed, each[3] pending, each[4] pending, z pending"
    );
    assert_eq!((job.payload("each[4]"), job.seen("each[3]").attempt), (json!(4), 1));
    job.complete("each[1]", json!("one"));
    assert_eq!(job.take_entered(), "each[0] each[1] each[3]");
    job.fail("each[3]");
    job.complete("each[0]", json!("zero"));
    job.complete("each[4]", json!("four"));
    assert_eq!((job.run.state, &*job.take_entered()), (JobState::Failed, "each[4]"));

    job.recover(From::Failures, true).unwrap();
    assert_eq!(job.take_entered(), "each[3]");
    job.complete("each[3]", json!("three"));
    assert_eq!(job.payload("z"), json!(["zero", "one", "two", "three", "four"]));
    assert_eq!(job.seen("each[3]").attempt, 3);
    job.complete_all();
    assert_eq!(job.run.state, JobState::Completed);
}

#[test]
fn a_list_of_which_every_item_failed_runs_again() {
    let mut job = list([]);
    while let Some(index) = job.ready().first().copied() {
        job.fail(&job.name(index));
    }
    assert_eq!((job.run.state, job.run.groups[0].failed), (JobState::Failed, 5));
    job.recover(From::Failures, true).unwrap();
    assert_eq!(job.take_entered(), "each[0] each[1]");
    job.complete_all();
    assert_eq!(job.run.state, JobState::Completed);
}

#[test]
fn one_item_alone_can_run_again() {
    let mut job = list([]);
    for n in 0..5 {
        if n < 2 { job.fail(&format!("each[{n}]")) } else { job.complete(&format!("each[{n}]"), json!(n)) }
    }
    job.recover(From::Item(job.index("each[1]")), false).unwrap();
    assert_eq!((job.run.recoveries, &*job.take_entered()), (0, "each[1]"));
    assert_eq!(job.seen("each[0]").state, TaskState::Failed);
    job.complete("each[1]", json!(1));
    assert_eq!((job.run.state, job.seen("z").state), (JobState::Failed, TaskState::Skipped));
    job.recover(From::Item(job.index("each[0]")), false).unwrap();
    job.complete("each[0]", json!(0));
    assert_eq!(job.payload("z"), json!([0, 1, 2, 3, 4]));
}

#[test]
fn from_a_list_as_a_whole_it_is_made_anew() {
    let mut job = list([]);
    job.fail("each[0]");
    job.complete_all();
    job.recover(From::Failures, true).unwrap();
    job.fail("each[0]");
    assert_eq!(job.run.attempts, [(2, 1)]);
    job.recover(from(&job, "each"), true).unwrap();
    assert_eq!((job.index("each[0]"), job.run.next, job.run.groups.len()), (7, 12, 1));
    assert_eq!((job.ready().len(), job.seen("each[0]").attempt), (2, 0));
    // What is gone is forgotten, so that a job does not grow with each recovery.
    assert_eq!(job.run.attempts, []);
    job.complete_all();
    assert_eq!(job.run.state, JobState::Completed);
}

#[test]
fn a_list_that_hangs_on_a_failure_is_made_anew() {
    // `second` ran over what `first` had left, and both failed.
    let first = task("first").for_each(json!([1, 2]));
    let second = task("second").needs(["first"]).join(AllDone).for_each("{{ tasks.first.output }}");
    let third = task("third").needs(["second"]).for_each(json!([1]));
    let mut job = Job::new(flow([first, second, third]), json!({}));
    job.fail("first[0]");
    job.complete("first[1]", json!("b"));
    job.fail("second[0]");
    job.complete("second[1]", json!(null));
    assert_eq!(
        job.states(),
        "first failed, first[0] failed, first[1] completed, \
         second failed, second[0] failed, second[1] completed, third skipped"
    );
    job.recover(From::Failures, true).unwrap();
    assert_eq!(
        job.states(),
        "first running, first[0] queued, first[1] completed, second pending, third pending"
    );
    job.complete("first[0]", json!("a"));
    assert_eq!((job.payload("second[0]"), job.index("second[0]")), (json!("a"), 7));
    job.complete_all();
    assert_eq!(
        (job.run.state, &*job.take_entered()),
        (JobState::Completed, "first[0] second[0] second[1] third[0]")
    );
}

#[test]
fn what_ran_out_of_time_goes_on_where_it_was() {
    let mut job = list([task("b"), task("c").needs(["b"])]);
    job.complete("each[0]", json!(0));
    job.fail("each[1]");
    job.stop(JobState::TimedOut);
    assert_eq!(
        job.states(),
        "each timed_out, each[0] completed, each[1] failed, each[2] timed_out, each[3] timed_out, \
         each[4] timed_out, z timed_out, b timed_out, c timed_out"
    );
    assert_eq!(job.recover(from(&job, "c"), true), Err(blocked("c", "b", TaskState::TimedOut)));
    job.recover(From::Failures, true).unwrap();
    assert_eq!(
        job.states(),
        "each running, each[0] completed, each[1] queued, each[2] queued, each[3] pending, \
         each[4] pending, z pending, b queued, c pending"
    );
    assert_eq!(job.run.reason, None);
    job.complete_all();
    assert_eq!(job.run.state, JobState::Completed);
}

#[test]
fn one_item_of_a_list_that_ran_out_of_time() {
    let mut job = list([]);
    job.fail("each[0]");
    job.stop(JobState::TimedOut);
    job.recover(From::Item(job.index("each[0]")), false).unwrap();
    assert_eq!(job.take_entered(), "each[0]");
    job.complete("each[0]", json!(0));
    // The rest of the list stays as it ended, and so does the list.
    assert_eq!((job.run.state, job.seen("each").state), (JobState::Failed, TaskState::Failed));
    job.recover(From::Failures, true).unwrap();
    job.complete_all();
    assert_eq!(job.run.state, JobState::Completed);
}

#[test]
fn a_template_that_failed_is_tried_again() {
    let mut job =
        Job::new(flow([task("a"), task("b").needs(["a"]).with("{{ tasks.a.output.n }}")]), json!({}));
    job.complete("a", json!({}));
    assert_eq!(job.states(), "a completed, b failed");
    job.recover(From::Failures, true).unwrap();
    assert_eq!((job.run.state, &*job.states()), (JobState::Failed, "a completed, b failed"));
    job.recover(from(&job, "a"), true).unwrap();
    job.complete("a", json!({"n": 1}));
    assert_eq!((job.payload("b"), job.seen("b").attempt), (json!(1), 0));
}

#[test]
fn an_output_that_failed_is_made_again() {
    let mut job = Job::new(flow([task("a")]).output("{{ tasks.a.output.n }}"), json!({}));
    job.complete("a", json!({}));
    job.recover(From::Failures, true).unwrap();
    assert_eq!((job.run.state, job.run.recoveries), (JobState::Failed, 1));
    job.recover(From::Task(0), true).unwrap();
    job.complete("a", json!({"n": 1}));
    assert_eq!(
        (job.run.state, job.output.clone(), job.run.reason.clone()),
        (JobState::Completed, Some(json!(1)), None)
    );
}

#[test]
fn an_optional_task_that_failed_is_left_alone() {
    let mut job = Job::new(flow([task("soft").optional(), task("a")]), json!({}));
    job.fail("soft");
    job.fail("a");
    job.recover(From::Failures, true).unwrap();
    assert_eq!(job.states(), "soft skipped, a queued");
}
