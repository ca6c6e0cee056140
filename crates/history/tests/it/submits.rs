//! What was submitted is there, once, and nothing else is.

use crate::scene::{Scene, json, submit, task};
use orchestrator_core::{JobState, TaskState};
use orchestrator_history::{Answer, Call, Kind};

#[test]
fn an_acked_job_that_is_there_is_fine_whatever_its_payloads_spelling() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.submit("a", Answer::Acked { job, created: false });
    scene.last(job).payload = json("{ \"n\": 1, \"for\": \"a\" }");
    scene.is_clean();
}

#[test]
fn an_acked_job_that_is_not_there_is_lost() {
    let mut scene = Scene::new();
    let job = scene.acked("a");
    scene.finds(Kind::Lost, &format!("key a was acked with job {job}, which is not there"));
}

#[test]
fn an_acked_job_with_another_payload_or_key_is_wrong() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.last(job).payload = json(r#"{"for":"a","n":2}"#);
    scene.finds(Kind::Wrong, "has the payload");

    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.submit("b", Answer::Acked { job, created: false });
    scene.finds(Kind::Wrong, &format!("key b was acked with job {job}, which has key a"));
}

#[test]
fn an_unknown_submit_may_have_made_a_job_or_not() {
    let mut scene = Scene::new();
    scene.submit("a", Answer::Unknown);
    scene.call(submit("a"));
    scene.is_clean();
    let job = scene.id();
    scene.ends(job, "a", JobState::Cancelled, vec![]);
    scene.is_clean();
    // Two unknown submits may even have made two jobs, one after the other, but not three.
    let (second, third) = (scene.id(), scene.id());
    scene.ends(second, "a", JobState::Cancelled, vec![]);
    scene.is_clean();
    scene.ends(third, "a", JobState::Cancelled, vec![]);
    scene.finds(Kind::Doubled, "only 2 submits of it are unknown");
}

#[test]
fn a_job_of_an_unknown_submit_has_its_payload() {
    let mut scene = Scene::new();
    scene.submit("a", Answer::Unknown);
    let job = scene.id();
    scene.ends(job, "a", JobState::Cancelled, vec![]);
    scene.last(job).payload = json("{}");
    scene.finds(Kind::Wrong, "which nobody submitted");
}

#[test]
fn a_job_that_nobody_submitted_is_wrong() {
    let mut scene = Scene::new();
    let job = scene.id();
    scene.ends(job, "a", JobState::Cancelled, vec![]);
    scene.finds(Kind::Wrong, "nobody submitted it");
    scene.last(job).key = None;
    scene.finds(Kind::Wrong, "has no key");
}

#[test]
fn a_job_whose_submits_were_all_refused_is_wrong() {
    let mut scene = Scene::new();
    scene.submit("a", Answer::Failed);
    scene.submit("a", Answer::Refused);
    scene.is_clean();
    let job = scene.id();
    scene.ends(job, "a", JobState::Cancelled, vec![]);
    scene.finds(Kind::Wrong, "no submit can have made it");
}

#[test]
fn a_key_whose_job_ended_badly_gets_another_one() {
    let mut scene = Scene::new();
    scene.failed("a");
    scene.completed("a");
    scene.is_clean();
}

#[test]
fn two_jobs_of_a_key_that_did_not_end_badly_are_doubled() {
    let mut scene = Scene::new();
    let (one, other) = (scene.id(), scene.id());
    let calls = [scene.call(submit("a")), scene.call(submit("a"))];
    for (call, job) in calls.into_iter().zip([one, other]) {
        scene.answer(call, Answer::Acked { job, created: true });
        scene.ends(job, "a", JobState::Completed, vec![]);
    }
    scene.finds(Kind::Doubled, "key a has 2 jobs that did not end badly");
    scene.last(one).state = JobState::TimedOut;
    scene.is_clean();
}

#[test]
fn the_job_before_stays_ended() {
    let mut scene = Scene::new();
    scene.completed("a");
    scene.failed("a");
    scene.finds(Kind::Doubled, "did not stay ended");

    // It is enough that both were alive at a time, though one was ended later.
    let mut scene = Scene::new();
    let before = scene.failed("a");
    scene.completed("a");
    scene.read(before, JobState::Running, &[]);
    scene.finds(Kind::Doubled, "did not stay ended");
}

#[test]
fn a_submit_is_not_answered_with_a_superseded_job() {
    let mut scene = Scene::new();
    let before = scene.failed("a");
    scene.completed("a");
    scene.submit("a", Answer::Acked { job: before, created: false });
    scene.finds(Kind::Doubled, "did not stay ended");
}

#[test]
fn a_submit_is_not_answered_with_a_job_that_had_ended_badly() {
    let mut scene = Scene::new();
    let job = scene.failed("a");
    scene.read(job, JobState::Failed, &[]);
    scene.submit("a", Answer::Acked { job, created: false });
    scene.finds(Kind::Lost, "a later submit was answered with it");
}

#[test]
fn a_job_is_made_once() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    scene.submit("a", Answer::Acked { job, created: true });
    scene.finds(Kind::Doubled, "another submit was told that it made it");
}

#[test]
fn what_is_known_is_found() {
    let mut scene = Scene::new();
    let job = scene.completed("a");
    let early = scene.id();
    scene.ask(Call::Read { job: early }, Answer::NotFound);
    scene.is_clean();
    scene.ask(Call::Read { job }, Answer::NotFound);
    scene.finds(Kind::Lost, "1 later calls did not find it");
}

#[test]
fn a_read_that_began_before_the_ack_need_not_find_the_job() {
    let mut scene = Scene::new();
    let job = scene.id();
    let (submit, read) = (scene.call(submit("a")), scene.call(Call::Read { job }));
    scene.answer(submit, Answer::Acked { job, created: true });
    scene.answer(read, Answer::NotFound);
    scene.ends(job, "a", JobState::Cancelled, vec![task(0, TaskState::Cancelled, 0)]);
    scene.is_clean();
}

#[test]
fn a_job_of_an_unknown_submit_that_was_seen_is_there_at_the_end() {
    let mut scene = Scene::new();
    scene.submit("a", Answer::Unknown);
    let job = scene.id();
    scene.read(job, JobState::Running, &[]);
    scene.finds(Kind::Lost, "was seen, and is not there at the end");
}
