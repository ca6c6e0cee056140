//! What was told stays true.

use crate::scene::{OUTPUT, Scene, seen, task};
use orchestrator_core::{JobId, JobState, TaskState};
use orchestrator_history::{Answer, Call, Kind, LastTask};

#[test]
fn a_job_that_was_seen_as_ended_stays_so() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.read(job, JobState::Completed, &[(0, TaskState::Completed, 1)]);
    scene.read(job, JobState::Completed, &[(0, TaskState::Completed, 1)]);
    scene.is_clean();
    scene.read(job, JobState::Running, &[]);
    scene.finds(Kind::Lost, "was completed, and without a revival it was running later");
}

#[test]
fn a_job_that_was_seen_as_ended_is_so_at_the_end() {
    let mut scene = Scene::new();
    let job = scene.failed("a");
    scene.read(job, JobState::TimedOut, &[]);
    scene.finds(Kind::Wrong, "was timed_out, and without a revival it is failed at the end");
}

#[test]
fn reads_that_overlap_may_see_either() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    let late = scene.call(Call::Read { job });
    scene.read(job, JobState::Completed, &[(0, TaskState::Completed, 1)]);
    scene.answer(late, seen(JobState::Running, &[(0, TaskState::Running, 1)]));
    scene.is_clean();
}

/// A job fails, is seen so, is revived with this answer, and completes.
fn revived(answer: Option<Answer>) -> (Scene, JobId) {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.start(job, 0, 1);
    scene.finish(job, 0, 1, None);
    scene.read(job, JobState::Failed, &[(0, TaskState::Failed, 1)]);
    let revive = scene.call(Call::Revive { job });
    if let Some(answer) = answer {
        scene.answer(revive, answer);
    }
    scene.read(job, JobState::Running, &[]);
    scene.start(job, 0, 2);
    scene.finish(job, 0, 2, Some(OUTPUT));
    scene.ends(job, "a", JobState::Completed, vec![task(0, TaskState::Completed, 2)]);
    (scene, job)
}

#[test]
fn a_revival_explains_a_new_life_also_if_nobody_knows_of_it() {
    for answer in [Some(Answer::Done), Some(Answer::Unknown), None] {
        revived(answer).0.is_clean();
    }
}

#[test]
fn a_revival_that_had_no_effect_explains_nothing() {
    for answer in [Answer::Failed, Answer::Refused] {
        let (scene, _) = revived(Some(answer));
        scene.finds_also(Kind::Lost, "was failed, and without a revival it was running later");
        scene.finds_also(Kind::Wrong, "was failed, and without a revival it is completed at the end");
        scene.finds_also(Kind::Doubled, "without a revival attempt 2 was started");
    }
}

#[test]
fn a_revival_of_before_or_after_explains_nothing() {
    let (mut scene, job) = revived(Some(Answer::Done));
    scene.read(job, JobState::Completed, &[]);
    scene.read(job, JobState::Failed, &[]);
    scene.ask(Call::Revive { job }, Answer::Refused);
    scene.finds_also(Kind::Wrong, "was completed, and without a revival it was failed later");
}

#[test]
fn what_completed_or_was_cancelled_is_never_revived() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.read(job, JobState::Completed, &[]);
    scene.ask(Call::Revive { job }, Answer::Done);
    scene.finds(Kind::Lost, "was completed, and without a revival it could be revived later");
}

#[test]
fn what_has_ended_cannot_be_paused_or_resumed() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.ask(Call::Pause { job }, Answer::Done);
    scene.ask(Call::Resume { job }, Answer::Done);
    scene.is_clean();
    scene.read(job, JobState::Completed, &[]);
    scene.ask(Call::Pause { job }, Answer::Refused);
    scene.is_clean();
    scene.ask(Call::Pause { job }, Answer::Done);
    scene.finds(Kind::Lost, "it could be paused or resumed later");
}

#[test]
fn attempts_only_rise() {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.start(job, 0, 1);
    scene.abort(job, 0, 1);
    scene.read(job, JobState::Running, &[(0, TaskState::Queued, 1)]);
    scene.start(job, 0, 2);
    scene.read(job, JobState::Running, &[(0, TaskState::Running, 2)]);
    scene.finish(job, 0, 2, Some(OUTPUT));
    let completed = LastTask { crashes: 1, ..task(0, TaskState::Completed, 2) };
    scene.ends(job, "a", JobState::Completed, vec![completed]);
    scene.is_clean();
    scene.read(job, JobState::Running, &[(0, TaskState::Running, 1)]);
    scene.finds(Kind::Lost, "was at attempt 2, and a later read saw attempt 1");
}

#[test]
fn a_read_sees_the_attempt_that_started_before() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.start(job, 0, 2);
    scene.last(job).tasks[0].attempt = 2;
    scene.finish(job, 0, 2, Some(OUTPUT));
    scene.is_clean();
    scene.read(job, JobState::Running, &[(0, TaskState::Running, 1)]);
    scene.finds(Kind::Lost, "was at attempt 2, and a later read saw attempt 1");
}

#[test]
fn the_last_attempt_is_not_below_one_that_was_seen_or_started() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.read(job, JobState::Running, &[(0, TaskState::Running, 2)]);
    scene.finds(Kind::Lost, "was seen at attempt 2, but its last one is 1");

    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.start(job, 0, 2);
    scene.finds(Kind::Wrong, "was started, but its last one is 1");
}

#[test]
fn a_task_that_was_seen_over_stays_so() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.read(job, JobState::Running, &[(0, TaskState::Completed, 1)]);
    scene.is_clean();
    scene.read(job, JobState::Running, &[(0, TaskState::Queued, 1)]);
    scene.finds(Kind::Lost, "was completed, and without a revival it is queued later");

    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.read(job, JobState::Running, &[(0, TaskState::Skipped, 1)]);
    scene.finds(Kind::Wrong, "was skipped, and without a revival it is completed at the end");
}

#[test]
fn a_task_that_is_over_is_not_started_again_but_an_old_attempt_may_begin_late() {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.start(job, 0, 2);
    scene.finish(job, 0, 2, Some(OUTPUT));
    scene.read(job, JobState::Completed, &[(0, TaskState::Completed, 2)]);
    scene.start(job, 0, 1);
    let completed = LastTask { crashes: 1, ..task(0, TaskState::Completed, 2) };
    scene.ends(job, "a", JobState::Completed, vec![completed]);
    scene.is_clean();
    scene.start(job, 0, 3);
    scene.finish(job, 0, 3, Some(OUTPUT));
    scene.last(job).tasks[0].attempt = 3;
    scene.finds_also(Kind::Doubled, "was over at attempt 2, and without a revival attempt 3 was started");
    scene.finds_also(Kind::Doubled, "it is at attempt 3 at the end");
}

#[test]
fn a_task_does_not_vanish_but_items_go_with_a_revival() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.start(job, 7, 1);
    scene.finds(Kind::Wrong, "its job has no such task");
    scene.ask(Call::Revive { job }, Answer::Unknown);
    scene.is_clean();

    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.read(job, JobState::Running, &[(7, TaskState::Queued, 0)]);
    scene.finds(Kind::Lost, "its job has no such task");
}
