//! Limits per key.

use crate::scene::{OUTPUT, Scene, limit, task};
use orchestrator_core::{JobId, JobState, TaskState};
use orchestrator_history::{Kind, LastTask};

/// Two jobs whose handlers work under one key that allows one.
fn scene() -> (Scene, [JobId; 2]) {
    let mut scene = Scene::new();
    scene.rules.limits.insert(limit("host:x"), 1);
    let jobs = ["a", "b"].map(|key| {
        let job = scene.acked(key);
        scene.ends(job, key, JobState::Completed, vec![task(0, TaskState::Completed, 1)]);
        job
    });
    (scene, jobs)
}

#[test]
fn one_after_the_other_is_fine() {
    let (mut scene, jobs) = scene();
    for job in jobs {
        scene.start_under(job, 0, 1, vec![limit("host:x"), limit("host:y")]);
        scene.finish(job, 0, 1, Some(OUTPUT));
    }
    scene.is_clean();
}

#[test]
fn two_at_once_are_one_too_many() {
    let (mut scene, jobs) = scene();
    for job in jobs {
        scene.start_under(job, 0, 1, vec![limit("host:x")]);
    }
    for job in jobs {
        scene.finish(job, 0, 1, Some(OUTPUT));
    }
    scene.finds(Kind::Wrong, "2 handlers worked at once under host:x, which allows 1");
    scene.rules.limits.insert(limit("host:x"), 2);
    scene.is_clean();
}

#[test]
fn a_run_that_is_gone_frees_its_slot_and_one_without_an_end_does_not() {
    for aborted in [true, false] {
        let (mut scene, [one, other]) = scene();
        scene.start_under(one, 0, 1, vec![limit("host:x")]);
        if aborted {
            scene.abort(one, 0, 1);
        }
        scene.start_under(other, 0, 1, vec![limit("host:x")]);
        scene.finish(other, 0, 1, Some(OUTPUT));
        let failed = LastTask { crashes: 1, ..task(0, TaskState::Failed, 1) };
        scene.last(one).state = JobState::Failed;
        scene.last(one).tasks = vec![failed];
        if aborted { scene.is_clean() } else { scene.finds(Kind::Wrong, "worked at once under host:x") }
    }
}
