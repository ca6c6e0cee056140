//! How things stand at the end.

use crate::scene::{OUTPUT, Scene, task};
use orchestrator_core::{JobState, TaskState};
use orchestrator_history::{Answer, Call, Kind, LastTask};

#[test]
fn a_job_that_has_not_ended_is_stuck() {
    for state in JobState::ALL.iter().filter(|state| !state.is_terminal()) {
        let mut scene = Scene::new();
        let job = scene.acked("a");
        scene.ends(job, "a", *state, vec![task(0, TaskState::Queued, 0)]);
        scene.finds(Kind::Stuck, &format!("is {state} at the end; tasks: 0 (t0) queued at attempt 0"));
    }
}

#[test]
fn an_acked_cancel_ends_the_job() {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.ask(Call::Cancel { job }, Answer::Done);
    scene.ends(job, "a", JobState::Cancelled, vec![task(0, TaskState::Cancelled, 0)]);
    scene.is_clean();

    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.ask(Call::Cancel { job }, Answer::Refused);
    scene.is_clean();
    scene.ask(Call::Cancel { job }, Answer::Done);
    scene.finds(Kind::Wrong, "was cancelled, and without a revival it is completed at the end");
}

#[test]
fn nothing_completes_after_an_acked_cancel() {
    let story = |cancel_first: bool| {
        let mut scene = Scene::new();
        let job = scene.acked("a");
        scene.start(job, 0, 1);
        if cancel_first {
            scene.ask(Call::Cancel { job }, Answer::Done);
            scene.finish(job, 0, 1, Some(OUTPUT));
        } else {
            scene.finish(job, 0, 1, Some(OUTPUT));
            scene.ask(Call::Cancel { job }, Answer::Done);
        }
        let tasks = vec![task(0, TaskState::Completed, 1), task(1, TaskState::Cancelled, 0)];
        scene.ends(job, "a", JobState::Cancelled, tasks);
        scene
    };
    story(false).is_clean();
    story(true).finds(Kind::Wrong, "was completed by attempt 1 after its job was cancelled");
}

#[test]
fn a_job_that_ended_has_no_open_task() {
    let fits = |job, state| {
        let mut scene = Scene::new();
        let id = scene.acked("a");
        scene.ends(id, "a", job, vec![task(0, state, 0)]);
        scene
    };
    for state in TaskState::ALL {
        let scene = fits(JobState::Failed, *state);
        match state {
            // Nobody ran it.
            TaskState::Completed => scene.finds(Kind::Wrong, "gave no result"),
            state if state.is_terminal() => scene.is_clean(),
            state => scene.finds(Kind::Wrong, &format!("is {state}, but its job is failed")),
        }
    }
    fits(JobState::Completed, TaskState::Skipped).is_clean();
    fits(JobState::Completed, TaskState::Failed).finds(Kind::Wrong, "is failed, but its job is completed");
}

#[test]
fn no_more_attempts_end_badly_than_there_are() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.last(job).tasks[0] = LastTask { failures: 1, ..task(0, TaskState::Completed, 1) };
    scene.is_clean();
    scene.last(job).tasks[0].crashes = 1;
    scene.finds(Kind::Wrong, "has 1 failures and 1 crashes, but only 1 attempts");
}

#[test]
fn crashes_are_wrong_where_nothing_crashes() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.last(job).tasks[0].crashes = 1;
    scene.is_clean();
    scene.rules.no_crashes = true;
    scene.finds(Kind::Wrong, "lost 1 attempts");
}
