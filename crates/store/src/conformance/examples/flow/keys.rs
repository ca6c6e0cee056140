//! Examples of keys of flows, and of jobs that repeat others.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Command, Submitted};
use orchestrator_core::flow::{Flow, Plan};
use orchestrator_core::{JobId, JobState, Key, Millis, NewJob, TaskSpec};
use std::sync::Arc;

fn named(name: &str) -> Flow {
    Flow::new(name).task(task("a"))
}

pub(in crate::conformance::examples) async fn keys_of_flows_are_apart_from_those_of_handlers(world: &World) {
    let keyed = |new: NewJob| new.key(Key::new("k"));
    let one = world.add(keyed(new(named("one")))).await;
    let two = world.add(keyed(new(named("two")))).await;
    let handler = world.add(keyed(NewJob::with_spec(Arc::new(TaskSpec::new("one"))))).await;
    assert!(one != two && two != handler && one != handler);
    let again = world.submit(keyed(new(named("one")))).await;
    assert_eq!(again, Submitted::Existing { id: one, state: JobState::Pending });
    let changed = named("one").task(task("b"));
    let again = world.submit(keyed(new(changed))).await;
    assert_eq!(again.id(), one, "the version is no part of the key");
    assert_eq!(
        world.submit(keyed(new(named("one"))).payload(json("2"))).await,
        Submitted::Conflict { id: one }
    );
}

/// A job with the key that the flow makes of its input.
fn derived(plan: &Arc<Plan>, input: &str) -> NewJob {
    let mut new = NewJob::of_flow(plan.clone()).payload(json(input));
    new.derive_key().expect("the input has what the key needs");
    new
}

pub(in crate::conformance::examples) async fn a_key_made_by_the_flow_takes_any_input(world: &World) {
    let plan = plan(named("f").idempotency("{{ input.id }}", Some(Millis::hours(1))));
    let id = world.add(derived(&plan, r#"{"id":"x","n":1}"#)).await;
    assert_eq!(world.job(id).await.key.as_deref(), Some("x"));
    let other = || derived(&plan, r#"{"id":"x","n":2}"#);
    assert_eq!(world.submit(other()).await, Submitted::Existing { id, state: JobState::Pending });
    assert_eq!(world.job(id).await.payload, json(r#"{"id":"x","n":1}"#));
    let leased = world.take("a").await;
    world.control(Command::Pause(id)).await;
    assert_eq!(world.submit(other()).await, Submitted::Existing { id, state: JobState::Pausing });
    world.control(Command::Resume(id)).await;
    world.complete(&leased).await;
    assert_eq!(world.submit(other()).await, Submitted::Existing { id, state: JobState::Completed });
    let own = NewJob::of_flow(plan.clone()).payload(json("7"));
    let own = world.submit(own.key(Key::within("x", Millis::hours(1)))).await;
    assert_eq!(own, Submitted::Conflict { id }, "a caller's own key with another input is a mistake");
    world.advance(Millis::hours(1));
    let next = world.submit(other()).await;
    assert!(matches!(next, Submitted::Created { previous: None, .. }), "a new window: {next:?}");
}

pub(in crate::conformance::examples) async fn a_bad_end_frees_the_key(world: &World) {
    let plan = plan(named("f").idempotency("{{ input.id }}", None));
    let first = world.add(derived(&plan, r#"{"id":"x"}"#)).await;
    world.control(Command::Cancel(first)).await;
    let second = world.submit(derived(&plan, r#"{"id":"x"}"#)).await;
    assert_eq!(second, Submitted::Created { id: second.id(), previous: Some(first) });
}

pub(in crate::conformance::examples) async fn a_rerun_names_what_it_repeats(world: &World) {
    let first = world.start(named("f")).await;
    world.run_all(&["a"]).await;
    let again = world.submit(new(named("f")).rerun_of(first)).await;
    assert_eq!(again, Submitted::Created { id: again.id(), previous: Some(first) });
    assert_eq!(world.job(again.id()).await.previous, Some(first));
    let unknown = JobId::from_parts(START, 0xbad);
    let none = world.submit(new(named("f")).rerun_of(unknown)).await;
    assert_eq!(none, Submitted::Created { id: none.id(), previous: None });
    let queue = world.submit(job().rerun_of(first)).await;
    assert_eq!(queue, Submitted::Created { id: queue.id(), previous: Some(first) });

    let keyed = world.add(new(named("g")).key(Key::new("k"))).await;
    world.control(Command::Cancel(keyed)).await;
    let both = world.submit(new(named("g")).key(Key::new("k")).rerun_of(first)).await;
    assert_eq!(both, Submitted::Created { id: both.id(), previous: Some(keyed) }, "the key comes first");
}
