//! How many calls worked while nothing was broken.

use crate::scene::{Scene, submit};
use orchestrator_history::{Answer, Event, Kind};

fn broken(scene: &mut Scene, what: &str) {
    scene.note(Event::FaultBegan { what: what.into() });
}

fn healed(scene: &mut Scene, what: &str) {
    scene.note(Event::FaultEnded { what: what.into() });
}

/// So many calls of which some fail.
fn calls(scene: &mut Scene, all: usize, failed: usize) {
    for n in 0..all {
        scene.submit("x", if n < failed { Answer::Failed } else { Answer::Refused });
    }
}

#[test]
fn one_failure_in_twenty_is_borne() {
    let mut scene = Scene::new();
    calls(&mut scene, 20, 1);
    scene.is_clean();
    let verdict = scene.verdict();
    assert_eq!((verdict.calm_calls, verdict.calm_successes, verdict.unknown), (20, 19, 0));
    calls(&mut scene, 1, 1);
    scene.finds(Kind::Unavailable, "only 19 of 21 calls worked");
}

#[test]
fn few_calls_say_nothing_but_are_counted() {
    let mut scene = Scene::new();
    calls(&mut scene, 19, 19);
    scene.is_clean();
    assert_eq!((scene.verdict().calm_calls, scene.verdict().calm_successes), (19, 0));
}

#[test]
fn a_call_without_an_answer_did_not_work() {
    let mut scene = Scene::new();
    for _ in 0..20 {
        scene.call(submit("x"));
    }
    scene.finds(Kind::Unavailable, "only 0 of 20 calls worked");
    assert_eq!(scene.verdict().unknown, 20);
}

#[test]
fn calls_may_fail_while_something_is_broken() {
    let mut scene = Scene::new();
    broken(&mut scene, "disk");
    calls(&mut scene, 30, 30);
    broken(&mut scene, "network");
    healed(&mut scene, "disk");
    // The network is still down.
    calls(&mut scene, 30, 30);
    healed(&mut scene, "network");
    scene.is_clean();
    assert_eq!(scene.verdict().calm_calls, 0);
    calls(&mut scene, 30, 30);
    scene.finds(Kind::Unavailable, "only 0 of 30 calls worked");
}

#[test]
fn a_call_that_meets_a_fault_anywhere_is_not_calm() {
    let mut scene = Scene::new();
    let (before, across) = (scene.call(submit("x")), scene.call(submit("x")));
    scene.answer(before, Answer::Refused);
    broken(&mut scene, "disk");
    let within = scene.call(submit("x"));
    healed(&mut scene, "disk");
    scene.answer(across, Answer::Failed);
    scene.answer(within, Answer::Failed);
    calls(&mut scene, 1, 0);
    broken(&mut scene, "for ever");
    calls(&mut scene, 3, 3);
    assert_eq!((scene.verdict().calm_calls, scene.verdict().calm_successes), (2, 2));
}
