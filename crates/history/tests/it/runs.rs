//! Runs of handlers.

use crate::scene::{OUTPUT, Scene, json, seen, task};
use orchestrator_core::{JobId, JobState, TaskState};
use orchestrator_history::{Answer, Call, Kind, LastTask};

#[test]
fn an_attempt_starts_and_finishes_once() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.is_clean();
    scene.start(job, 0, 1);
    scene.finds(Kind::Doubled, "attempt 1 of task 0 (t0) of job");

    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.finish(job, 0, 1, Some(OUTPUT));
    scene.finds(Kind::Doubled, "was finished 2 times");
}

#[test]
fn what_never_started_does_not_end() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.last(job).tasks[0].attempt = 2;
    scene.finish(job, 0, 2, Some(OUTPUT));
    scene.finds(Kind::Wrong, "ended, but was never started");
}

#[test]
fn a_start_of_a_job_that_is_not_there_is_wrong() {
    let mut scene = Scene::new();
    let job = scene.id();
    scene.start(job, 0, 1);
    scene.finds(Kind::Wrong, "its job is not there");
}

#[test]
fn a_completed_task_has_a_result_of_its_last_attempt() {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.start(job, 0, 1);
    scene.finish(job, 0, 1, Some("1"));
    scene.start(job, 0, 2);
    scene.finish(job, 0, 2, Some("2"));
    let last = LastTask { output: Some(json("2")), ..task(0, TaskState::Completed, 2) };
    scene.ends(job, "a", JobState::Completed, vec![last]);
    scene.is_clean();

    scene.last(job).tasks[0].output = Some(json("1"));
    scene.finds(Kind::Wrong, "is completed at attempt 2 with the output of attempt 1");
    scene.last(job).tasks[0].output = Some(json("3"));
    scene.finds(Kind::Wrong, "has the output 3, but attempt 2 gave 2");
    scene.last(job).tasks[0].output = None;
    scene.finds(Kind::Wrong, "has the output null, but attempt 2 gave 2");
    scene.last(job).tasks[0].attempt = 3;
    scene.finds(Kind::Wrong, "is completed at attempt 3, which gave no result");
}

#[test]
fn an_attempt_that_failed_completes_nothing() {
    let mut scene = Scene::new();
    let job = scene.failed("a");
    scene.is_clean();
    let last = scene.last(job);
    last.state = JobState::Completed;
    last.tasks = vec![task(0, TaskState::Completed, 1)];
    scene.finds(Kind::Wrong, "is completed at attempt 1, which gave no result");
}

#[test]
fn a_task_that_its_items_end_needs_no_handler() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    let group = LastTask { runs: false, output: None, ..task(1, TaskState::Completed, 0) };
    scene.last(job).tasks.push(group);
    scene.is_clean();
}

#[test]
fn a_task_is_not_seen_completed_before_it_gave_its_result() {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.start(job, 0, 1);
    let early = scene.call(Call::Read { job });
    scene.finish(job, 0, 1, Some(OUTPUT));
    scene.answer(early, seen(JobState::Completed, &[(0, TaskState::Completed, 1)]));
    scene.ends(job, "a", JobState::Completed, vec![task(0, TaskState::Completed, 1)]);
    scene.is_clean();

    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.start(job, 0, 1);
    scene.read(job, JobState::Completed, &[(0, TaskState::Completed, 1)]);
    scene.finish(job, 0, 1, Some(OUTPUT));
    scene.ends(job, "a", JobState::Completed, vec![task(0, TaskState::Completed, 1)]);
    scene.finds(Kind::Wrong, "which had not given a result yet");
}

/// Two tasks, the second needs the first; their starts and ends in the order given.
fn chain(order: &[(&str, u32)]) -> (Scene, JobId) {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    for (what, index) in order {
        match *what {
            "start" => scene.start(job, *index, 1),
            _ => scene.finish(job, *index, 1, Some(OUTPUT)),
        }
    }
    let second = LastTask { needs: vec![0], ..task(1, TaskState::Completed, 1) };
    scene.ends(job, "a", JobState::Completed, vec![task(0, TaskState::Completed, 1), second]);
    (scene, job)
}

#[test]
fn a_task_starts_after_what_it_needs() {
    chain(&[("start", 0), ("finish", 0), ("start", 1), ("finish", 1)]).0.is_clean();
    let (mut scene, job) = chain(&[("start", 0), ("start", 1), ("finish", 0), ("finish", 1)]);
    scene.finds(Kind::Wrong, "was started before attempt 1 of task 0 (t0), which it needs, was over");
    // A revival may have run the first again, and who knows when.
    scene.ask(Call::Revive { job }, Answer::Unknown);
    scene.is_clean();
}
