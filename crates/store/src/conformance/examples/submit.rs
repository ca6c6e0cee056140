//! Examples of `submit` and of what keys do.

use crate::conformance::world::*;
use crate::verbs::{Command, Submitted};
use orchestrator_core::order::Priority;
use orchestrator_core::{Counters, JobState, Key, Millis, NewJob, Outcome, TaskSpec, TaskState};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) async fn a_job_is_kept_as_it_was_given(world: &World) {
    let spec = Arc::new(TaskSpec { max_crashes: 7, ..TaskSpec::new("render").on_queue("nightly") });
    let payload = json(r#"{ "text": "a \" quote, a line\n, ünïcode 🦀", "n": 1.50 }"#);
    let id = world
        .add(
            NewJob::with_spec(spec.clone())
                .tenant("acme")
                .key(Key::new("artifact-1"))
                .payload(payload.clone())
                .priority(Priority::High)
                .limits(limits(&["host:b", "host:a"])),
        )
        .await;
    let job = world.job(id).await;
    assert_eq!((job.id, job.created, job.previous), (id, START, None));
    assert_eq!(
        (&*job.tenant, job.key.as_deref(), job.priority),
        ("acme", Some("artifact-1"), Priority::High)
    );
    assert_eq!(job.task().spec, spec);
    assert_eq!(job.payload.as_str(), payload.as_str(), "a payload is kept to the letter");
    assert_eq!((job.state, job.task().state), (JobState::Pending, TaskState::Queued));
    assert_eq!(job.task().limits, limits(&["host:a", "host:b"]));
    assert_eq!(job.task().counters, Counters::default());
    assert_eq!((job.task().due, job.task().ended, &job.task().worker), (None, None, &None));
    assert_eq!(job.task().history, []);
    assert_eq!(id.created(), START, "an id carries the time of its creation");
}

pub(super) async fn a_repeated_key_names_the_same_job(world: &World) {
    let new = job().key(Key::new("k")).payload(json(r#"{"a":1,"b":2}"#));
    let id = world.add(new.clone()).await;
    assert_eq!(world.submit(new.clone()).await, Submitted::Existing { id, state: JobState::Pending });
    let reworded = new.clone().payload(json(r#"{ "b": 2, "a": 1 }"#));
    assert_eq!(world.submit(reworded).await, Submitted::Existing { id, state: JobState::Pending });
    let leased = world.lease_one().await;
    assert_eq!(world.submit(new.clone()).await, Submitted::Existing { id, state: JobState::Running });
    world.complete(&leased).await;
    assert_eq!(world.submit(new).await, Submitted::Existing { id, state: JobState::Completed });
    assert_eq!(world.jobs().await.len(), 1);
}

pub(super) async fn another_payload_is_a_conflict(world: &World) {
    let new = job().key(Key::new("k")).payload(json("1"));
    let id = world.add(new.clone()).await;
    assert_eq!(world.submit(new.clone().payload(json("2"))).await, Submitted::Conflict { id });
    assert_eq!(world.jobs().await.len(), 1, "nothing of a conflict is taken in");
    assert_eq!(world.job(id).await.payload, json("1"));
}

pub(super) async fn keys_belong_to_tenant_and_handler(world: &World) {
    let k = || Key::new("k");
    let first = world.add(job().key(k()).tenant("a")).await;
    let other_tenant = world.add(job().key(k()).tenant("b")).await;
    let other_handler = world.add(NewJob::new("other").key(k()).tenant("a")).await;
    let without_key = world.add(job().tenant("a")).await;
    world.add(job().tenant("a")).await;
    let other_queue = NewJob::with_spec(Arc::new(spec().on_queue("elsewhere"))).key(k()).tenant("a");
    assert_eq!(world.submit(other_queue).await.id(), first, "the queue is no part of the key");
    world.add(job().key(Key::new("K")).tenant("a")).await;
    let ids = BTreeSet::from([first, other_tenant, other_handler, without_key]);
    assert_eq!(ids.len(), 4, "each has a job of its own");
}

pub(super) async fn a_window_ends_at_its_bucket(world: &World) {
    let new = || job().key(Key::within("k", Millis::hours(1)));
    let first = world.add(new()).await;
    world.advance(Millis(3_599_999));
    assert_eq!(world.submit(new()).await.id(), first);
    world.advance(Millis(1));
    let second = world.submit(new()).await;
    assert!(
        matches!(second, Submitted::Created { previous: None, .. }),
        "a new window, a new job: {second:?}"
    );
    let for_ever = world.submit(job().key(Key::new("k"))).await;
    assert!(matches!(for_ever, Submitted::Created { .. }), "a key without a window is another: {for_ever:?}");
}

pub(super) async fn a_batch_sees_its_own_jobs(world: &World) {
    let keyed = |payload| job().key(Key::new("k")).payload(json(payload));
    let answers = world.store.submit(vec![keyed("1"), job(), keyed("1"), keyed("2")]).await.unwrap();
    let id = answers[0].id();
    assert_eq!(answers[0], Submitted::Created { id, previous: None });
    assert!(matches!(answers[1], Submitted::Created { .. }));
    assert_eq!(answers[2], Submitted::Existing { id, state: JobState::Pending });
    assert_eq!(answers[3], Submitted::Conflict { id });
    let ids: Vec<_> = world.jobs().await.iter().map(|job| job.id).collect();
    assert_eq!(ids, [id, answers[1].id()], "in order of submission");
}

pub(super) async fn a_key_is_free_again_after_a_bad_end(world: &World) {
    let new = |payload| job().key(Key::new("k")).payload(json(payload));
    let first = world.add(new("1")).await;
    world.fail(&world.lease_one().await).await;
    let second = match world.submit(new("2")).await {
        Submitted::Created { id, previous } => {
            assert_eq!(previous, Some(first));
            id
        }
        other => panic!("a failed job gives its key free, but the answer was {other:?}"),
    };
    assert_eq!(world.job(second).await.previous, Some(first));
    assert_eq!(world.submit(new("2")).await, Submitted::Existing { id: second, state: JobState::Pending });
    world.control(Command::Cancel(second)).await;
    let third = world.submit(new("3")).await;
    assert_eq!(third, Submitted::Created { id: third.id(), previous: Some(second) });
    assert_eq!(world.state(first).await, TaskState::Failed, "the old jobs stay what they were");
}

pub(super) async fn a_completed_key_stays_taken(world: &World) {
    let id = world.add(job().key(Key::new("done"))).await;
    world.complete(&world.lease_one().await).await;
    let skipped = world.add(job().key(Key::new("skipped"))).await;
    world.settle(world.lease_one().await.held(), Outcome::Skipped(json("null"))).await;
    for (text, id) in [("done", id), ("skipped", skipped)] {
        let again = world.submit(job().key(Key::new(text))).await;
        assert_eq!(again, Submitted::Existing { id, state: JobState::Completed });
    }
}

pub(super) async fn an_empty_batch_is_fine(world: &World) {
    assert_eq!(world.store.submit(vec![]).await.unwrap(), []);
    assert_eq!(world.store.settle(vec![]).await.unwrap(), []);
    assert_eq!(world.store.extend(vec![], TTL).await.unwrap(), []);
    assert_eq!(world.store.control(vec![]).await.unwrap(), []);
    world.store.set_limits(vec![]).await.unwrap();
    assert_eq!(journal(&*world.store).await, []);
}

pub(super) async fn a_submit_rings_the_bell(world: &World) {
    let mut bell = world.store.changes();
    bell.mark_unchanged();
    world.add(job()).await;
    let heard = tokio::time::timeout(std::time::Duration::from_secs(60), bell.changed()).await;
    assert!(matches!(heard, Ok(Ok(()))), "`changes` should rise when a job comes in: {heard:?}");
}
