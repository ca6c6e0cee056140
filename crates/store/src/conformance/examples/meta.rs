//! Examples of what jobs carry along, and of finding them by it and by when they came.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Command, Submitted};
use crate::views::{JobFilter, Page};
use orchestrator_core::{JobState, Key, Meta, Millis, NewJob, Outcome};
use std::sync::Arc;

/// Jobs whose context has a field with a value.
pub(super) fn by_context(field: &str, value: &str) -> JobFilter {
    JobFilter { context: vec![(field.into(), json(value))], ..JobFilter::default() }
}

fn whole() -> Meta {
    Meta {
        correlation_id: Some("c-7".into()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        user: Some("ann".into()),
        ..with_context(r#"{ "b": 1.50, "a": "x\u0000y" }"#)
    }
}

pub(super) async fn it_is_kept_and_handed_out(world: &World) {
    let id = world.add(job().meta(whole())).await;
    let plain = world.add(job()).await;
    assert_eq!(world.job(id).await.meta, whole(), "to the letter");
    assert_eq!(world.job(plain).await.meta, Meta::default());
    let leased = world.lease(2).await;
    assert_eq!(
        leased.iter().map(|leased| Meta::clone(&leased.meta)).collect::<Vec<_>>(),
        [whole(), Meta::default()]
    );
    world.settle(leased[0].held(), Outcome::Released).await;
    assert_eq!(*world.lease_one().await.meta, whole(), "at every attempt");
}

pub(super) async fn every_task_of_a_flow_gets_it(world: &World) {
    let each = task("each").for_each("{{ input.list }}");
    let new = NewJob::of_flow(plan(flow([task("a"), each.needs(["a"])])));
    let id = world.add(new.payload(json(r#"{"list":[1,2]}"#)).meta(whole())).await;
    let mut names = vec![];
    while let Some(leased) = world.lease(1).await.pop() {
        assert_eq!(*leased.meta, whole(), "{}", leased.name);
        names.push(leased.name.clone());
        world.complete(&leased).await;
    }
    assert_eq!(names, ["a", "each[0]", "each[1]"].map(Arc::from));
    assert_eq!(world.job(id).await.meta, whole());
    let paused = world.add(job().meta(with_context("{}"))).await;
    world.control(Command::Pause(paused)).await;
    world.control(Command::Resume(paused)).await;
    assert_eq!(*world.lease_one().await.meta, with_context("{}"), "also a job of a queue that was paused");
}

pub(super) async fn it_does_not_tell_jobs_apart(world: &World) {
    let keyed = || job().key(Key::new("k"));
    let id = world.add(keyed().meta(whole())).await;
    for other in [keyed(), keyed().meta(with_context("{\"b\":2}"))] {
        assert_eq!(world.submit(other).await, Submitted::Existing { id, state: JobState::Pending });
    }
    assert_eq!(world.job(id).await.meta, whole(), "that of the first stays");
}

pub(super) async fn jobs_are_found_by_their_context(world: &World) {
    let mut ids = vec![];
    for context in [
        r#"{"n": 1, "city": "Rome"}"#,
        r#"{"n": "1", "city": "Rome"}"#,
        r#"{"city": {"name": "Rome", "zip": [1, 2]}, "n": null}"#,
        r#"{"n": 1.0, "far": 0.1000000000000000055}"#,
        r#"{"city": "R\u0000me"}"#,
    ] {
        ids.push(world.add(job().meta(with_context(context))).await);
        world.add(job()).await;
        world.add(job().meta(Meta { user: Some("Rome".into()), ..Meta::default() })).await;
    }
    let pick = |numbers: &[usize]| numbers.iter().map(|n| ids[*n]).collect::<Vec<_>>();
    for (field, value, expected) in [
        ("n", "1", pick(&[0])),
        ("n", "\"1\"", pick(&[1])),
        ("n", "null", pick(&[2])),
        ("n", "1.0", pick(&[3])),
        ("far", "0.1", pick(&[3])),
        ("city", "\"Rome\"", pick(&[0, 1])),
        ("city", r#"{ "zip": [1, 2], "name": "Rome" }"#, pick(&[2])),
        ("city", r#"{"name": "Rome"}"#, vec![]),
        ("city", r#""R\u0000me""#, pick(&[4])),
        ("city", "\"R\u{FFFD}me\"", vec![]),
        ("user", "\"Rome\"", vec![]),
        ("zip", "[1, 2]", vec![]),
    ] {
        assert_eq!(world.listed(by_context(field, value)).await, expected, "{field} = {value}");
    }
    let both = vec![("n".into(), json("1")), ("city".into(), json("\"Rome\""))];
    let both = JobFilter { context: both, ..JobFilter::default() };
    assert_eq!(world.listed(both).await, pick(&[0]), "all of them must be so");
    let newest = JobFilter { newest_first: true, ..by_context("city", "\"Rome\"") };
    assert_eq!(world.listed(newest.clone()).await, pick(&[1, 0]));
    let page = Page { after: Some(ids[1]), limit: 1 };
    let page = world.store.list(newest, page).await.unwrap();
    assert_eq!(page.iter().map(|job| job.id).collect::<Vec<_>>(), pick(&[0]));
    world.work_off(1).await;
    let live = JobFilter { states: vec![JobState::Pending], ..by_context("city", "\"Rome\"") };
    assert_eq!(world.listed(live).await, pick(&[1]));
}

pub(super) async fn jobs_are_found_by_when_they_came(world: &World) {
    let mut ids = vec![];
    for n in 0..6 {
        ids.push(world.add(job()).await);
        // Two at a time, and far apart.
        if n % 2 == 1 {
            world.advance(Millis::hours(5));
        }
    }
    let between = |from: Option<u64>, before: Option<u64>, newest_first| {
        let at = |hours: u64| START + Millis::hours(hours);
        JobFilter {
            created_from: from.map(at),
            created_before: before.map(at),
            newest_first,
            ..JobFilter::default()
        }
    };
    for (from, before, expected) in [
        (None, None, 0..6),
        (Some(0), None, 0..6),
        (Some(1), None, 2..6),
        (Some(5), Some(10), 2..4),
        (Some(5), Some(11), 2..6),
        (None, Some(5), 0..2),
        (None, Some(0), 0..0),
        (Some(10), Some(5), 0..0),
        (Some(11), None, 6..6),
    ] {
        let expected = &ids[expected];
        assert_eq!(world.listed(between(from, before, false)).await, expected, "{from:?} to {before:?}");
        let newest: Vec<_> = expected.iter().rev().copied().collect();
        assert_eq!(world.listed(between(from, before, true)).await, newest, "{from:?} to {before:?}");
    }
    let exactly = JobFilter { created_from: Some(START + Millis(1)), ..JobFilter::default() };
    assert_eq!(world.listed(exactly).await, ids[2..], "to the millisecond");
    let exactly = JobFilter { created_before: Some(START + Millis(1)), ..JobFilter::default() };
    assert_eq!(world.listed(exactly).await, ids[..2]);
    let page = Page { after: Some(ids[2]), limit: 9 };
    let page = world.store.list(between(Some(1), Some(11), false), page).await.unwrap();
    assert_eq!(page.iter().map(|job| job.id).collect::<Vec<_>>(), ids[3..]);
    let live = JobFilter { states: vec![JobState::Pending], ..between(Some(5), Some(6), false) };
    assert_eq!(world.listed(live).await, ids[2..4]);
}
