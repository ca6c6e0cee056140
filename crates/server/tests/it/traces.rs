//! The place of a request in a trace, with and without somebody who keeps traces.

use crate::world::World;
use axum::http::Method;
use orchestrator_core::TraceContext;
use orchestrator_server::Observed;
use serde_json::json;

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

async fn submitted(world: &World, headers: &[(&str, &str)]) -> (Option<String>, Option<String>) {
    let answer = world.send(Method::POST, "/jobs", headers, json!({ "handler": "x" })).await;
    let told = answer.headers.get("traceparent").map(|value| value.to_str().unwrap().to_owned());
    let job = world.get(&format!("/jobs/{}", answer.body["id"].as_str().unwrap())).await;
    (told, job.body["meta"]["traceparent"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn where_nobody_keeps_traces_that_of_the_caller_is_handed_on() {
    let world = World::observed(Observed::default()).await;
    let kept = Some(CALLER.to_owned());
    assert_eq!(submitted(&world, &[("traceparent", CALLER)]).await, (kept.clone(), kept));
    assert_eq!(submitted(&world, &[]).await, (None, None));
    assert_eq!(submitted(&world, &[("traceparent", "nonsense")]).await, (None, None));
}

#[tokio::test]
async fn a_request_is_a_child_of_its_caller_and_its_job_carries_it() {
    let world = World::observed(Observed { sample: Some(0.0), scrape: None }).await;
    let caller: TraceContext = CALLER.parse().unwrap();
    let (told, carried) = submitted(&world, &[("traceparent", CALLER)]).await;
    let own: TraceContext = told.as_ref().unwrap().parse().unwrap();
    assert_eq!((own.trace, own.sampled, told), (caller.trace, true, carried));
    assert_ne!(own.span, caller.span);
    assert_eq!(submitted(&world, &[]).await, (None, None), "none begins here");
}

#[tokio::test]
async fn a_trace_begins_where_none_is_brought_along() {
    let world = World::observed(Observed { sample: Some(1.0), scrape: None }).await;
    let (told, carried) = submitted(&world, &[]).await;
    assert!(told.is_some() && told == carried);
    let unkept = CALLER.replace("-01", "-00");
    let (told, _) = submitted(&world, &[("traceparent", &unkept)]).await;
    assert!(told.unwrap().ends_with("-00"), "the caller has decided");
    assert!(world.get("/health").await.headers.get("traceparent").is_none(), "asked all the time");
}
