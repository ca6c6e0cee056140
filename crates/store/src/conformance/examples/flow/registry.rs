//! Examples of the registry of flows.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{FlowChange, FlowChanged};
use crate::views::{FlowRef, FlowView};
use orchestrator_core::flow::{Flow, Plan};
use orchestrator_core::{JobState, Json, Millis, NewJob};
use std::sync::Arc;

/// The n-th content of a flow.
fn version(name: &str, n: u64) -> Arc<Plan> {
    plan(Flow::new(name).description(format!("number {n}")).task(task("a")))
}

async fn change(world: &World, change: FlowChange) -> FlowChanged {
    let answers = world.store.change_flows(vec![change]).await.expect("change_flows");
    assert_eq!(answers.len(), 1, "one answer per change");
    answers[0]
}

async fn apply(world: &World, plan: &Arc<Plan>) -> FlowChanged {
    change(world, FlowChange::Apply(plan.clone())).await
}

fn shown(plan: &Plan, version: u32, current: bool, created: orchestrator_core::Timestamp) -> FlowView {
    let flow = FlowRef { name: plan.name().clone(), version, hash: plan.hash().clone() };
    FlowView { flow, created, current, definition: Json::trusted(plan.text().clone()) }
}

pub(in crate::conformance::examples) async fn versions_are_for_ever(world: &World) {
    let (one, two) = (version("f", 1), version("f", 2));
    assert_eq!(apply(world, &one).await, FlowChanged::Created(1));
    world.advance(Millis(5));
    assert_eq!(apply(world, &one).await, FlowChanged::Unchanged(1));
    assert_eq!(apply(world, &two).await, FlowChanged::Created(2));
    let both = world.store.flows(Some("f".into())).await.unwrap();
    assert_eq!(both, [shown(&one, 1, false, START), shown(&two, 2, true, START + Millis(5))]);
    assert_eq!(apply(world, &one).await, FlowChanged::Restored(1));
    let current = world.store.flow("f".into(), None).await.unwrap();
    assert_eq!(current, Some(shown(&one, 1, true, START)));
    assert_eq!(world.store.flow("f".into(), Some(2)).await.unwrap().map(|flow| flow.current), Some(false));
    assert_eq!(world.store.flow("f".into(), Some(3)).await.unwrap(), None);
    assert_eq!(world.store.flow("g".into(), None).await.unwrap(), None);
    let text = current.expect("it is there").definition;
    assert_eq!(Plan::from_text(text.as_str()).map(|plan| plan.hash().clone()), Ok(one.hash().clone()));
}

pub(in crate::conformance::examples) async fn the_current_ones_are_listed_by_name(world: &World) {
    let changes = ["m", "z", "a"].map(|name| FlowChange::Apply(version(name, 1)));
    let answers = world.store.change_flows(changes.to_vec()).await.unwrap();
    assert_eq!(answers, [FlowChanged::Created(1); 3]);
    apply(world, &version("m", 2)).await;
    let names = async || {
        let flows = world.store.flows(None).await.unwrap();
        flows.iter().map(|flow| (flow.flow.name.to_string(), flow.flow.version)).collect::<Vec<_>>()
    };
    let named = |all: &[(&str, u32)]| all.iter().map(|(name, n)| (name.to_string(), *n)).collect::<Vec<_>>();
    assert_eq!(names().await, named(&[("a", 1), ("m", 2), ("z", 1)]));
    assert_eq!(change(world, FlowChange::Retire("m".into())).await, FlowChanged::Retired);
    assert_eq!(names().await, named(&[("a", 1), ("z", 1)]));
    assert_eq!(change(world, FlowChange::Retire("m".into())).await, FlowChanged::NotFound);
    assert_eq!(change(world, FlowChange::Retire("never".into())).await, FlowChanged::NotFound);
    assert_eq!(world.store.flows(Some("m".into())).await.unwrap().len(), 2, "its versions stay");
    assert_eq!(world.store.flow("m".into(), None).await.unwrap(), None);
    assert_eq!(apply(world, &version("m", 2)).await, FlowChanged::Restored(2));
    assert_eq!(apply(world, &version("m", 3)).await, FlowChanged::Created(3));
}

pub(in crate::conformance::examples) async fn a_submit_brings_its_flow_along(world: &World) {
    let (one, two) = (version("f", 1), version("f", 2));
    apply(world, &one).await;
    let id = world.add(NewJob::of_flow(two.clone())).await;
    assert_eq!(world.job(id).await.flow.map(|flow| flow.version), Some(2));
    assert_eq!(world.store.flow("f".into(), None).await.unwrap().map(|flow| flow.flow.version), Some(1));
    let again = world.add(NewJob::of_flow(two.clone())).await;
    assert_eq!(world.job(again).await.flow.map(|flow| flow.version), Some(2), "known by its content");
    assert_eq!(world.store.flows(Some("f".into())).await.unwrap().len(), 2);
    assert_eq!(apply(world, &two).await, FlowChanged::Restored(2));
    let only = world.add(NewJob::of_flow(version("g", 1))).await;
    assert_eq!(world.job(only).await.flow.map(|flow| flow.version), Some(1));
    assert_eq!(world.store.flow("g".into(), None).await.unwrap(), None, "nobody applied it");
    assert_eq!(change(world, FlowChange::Retire("g".into())).await, FlowChanged::NotFound);
}

pub(in crate::conformance::examples) async fn a_job_stays_on_its_version(world: &World) {
    let long = plan(Flow::new("f").task(task("a")).task(task("b").needs(["a"])));
    apply(world, &long).await;
    let id = world.add(NewJob::of_flow(long)).await;
    world.run_all(&["a"]).await;
    apply(world, &version("f", 1)).await;
    change(world, FlowChange::Retire("f".into())).await;
    world.run_all(&["b"]).await;
    let job = world.job(id).await;
    assert_eq!(
        (job.state, job.tasks.len(), job.flow.map(|flow| flow.version)),
        (JobState::Completed, 2, Some(1))
    );
}

pub(in crate::conformance::examples) async fn a_conflict_brings_no_flow(world: &World) {
    let keyed = |n: u64| NewJob::of_flow(version("f", n)).key(orchestrator_core::Key::new("k"));
    world.add(keyed(1)).await;
    world.submit(keyed(2).payload(json("2"))).await;
    world.submit(keyed(3)).await;
    assert_eq!(
        world.store.flows(Some("f".into())).await.unwrap().len(),
        1,
        "what is not taken in leaves nothing"
    );
}
