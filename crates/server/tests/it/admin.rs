//! Flows, queues, limits, dead letters and counts over REST.

use crate::world::World;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use orchestrator_core::{ErrorClass, Failure, Outcome};
use serde_json::{Value, json};

const FLOW: &str = "flow: greet\ninput: { type: object, required: [name] }\ntasks:\n  hello: { handler: work, with: { text: \"{{ input.name }}\" } }\n";

fn yaml(path: &str, text: &str) -> Request<Body> {
    Request::post(path).header("content-type", "application/yaml").body(Body::from(text.to_owned())).unwrap()
}

#[tokio::test]
async fn a_flow_is_applied_and_run() {
    let world = World::new().await;
    assert_eq!(world.ask(yaml("/flows/validate", FLOW)).await.status, StatusCode::NO_CONTENT);
    let applied = world.ask(yaml("/flows", FLOW)).await;
    assert_eq!(
        (applied.status, &applied.body["result"]),
        (StatusCode::CREATED, &"created".into()),
        "{applied:?}"
    );
    let again = world.ask(yaml("/flows", FLOW)).await;
    assert_eq!(
        (again.status, &again.body["result"], &again.body["version"]),
        (StatusCode::OK, &"unchanged".into(), &1.into())
    );
    assert_eq!(world.get("/flows").await.body["flows"][0]["name"], "greet");
    assert_eq!(world.get("/flows/greet").await.body["definition"]["flow"], "greet");
    assert_eq!(world.get("/flows/greet?version=7").await.status, StatusCode::NOT_FOUND);
    let wrong = world.post("/jobs", json!({ "flow": "greet", "input": {} })).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong:?}");
    let job = world.post("/jobs", json!({ "flow": "greet", "input": { "name": "Ada" } })).await;
    assert_eq!(job.status, StatusCode::CREATED, "{job:?}");
    let leased = world.lease("work").await;
    assert_eq!(leased.payload.value(), json!({ "text": "Ada" }));
    assert_eq!(world.get("/jobs?flow=greet").await.body["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        world.send(Method::DELETE, "/flows/greet", &[], Value::Null).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(world.get("/flows/greet").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn mistakes_in_a_flow_are_told_with_their_places() {
    let world = World::new().await;
    let broken = world
        .ask(yaml("/flows", "flow: x\ntasks:\n  a: { handler: work, needs: [b] }\n  c: { handlr: work }\n"))
        .await;
    assert_eq!(
        (broken.status, &broken.body["code"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &"invalid_flow".into())
    );
    let errors = broken.body["errors"].as_array().unwrap();
    assert!(
        errors.len() >= 2 && errors.iter().any(|error| error["pointer"] == "/tasks/a/needs/0"),
        "{errors:?}"
    );
    assert!(errors.iter().all(|error| error["message"].as_str().unwrap().starts_with("line ")), "{errors:?}");
}

#[tokio::test]
async fn a_paused_queue_hands_nothing_out() {
    let world = World::new().await;
    world.post("/jobs", json!({ "handler": "work" })).await;
    let paused = world.post("/queues/default/pause", Value::Null).await;
    assert!(paused.body["paused"].is_string(), "{paused:?}");
    let ask = json!({ "worker": "w", "handlers": ["work"] });
    assert_eq!(world.post("/work/lease", ask.clone()).await.body["tasks"], json!([]));
    assert_eq!(world.get("/queues").await.body["queues"][0]["handlers"][0]["ready"], 1);
    assert_eq!(world.post("/queues/default/resume", Value::Null).await.body["paused"], Value::Null);
    assert_eq!(world.post("/work/lease", ask).await.body["tasks"].as_array().map(Vec::len), Some(1));
    assert_eq!(world.get("/queues/nothing").await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.post("/queues/a%20b/pause", Value::Null).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn limits_are_changed_while_work_runs() {
    let world = World::new().await;
    let set = world.send(Method::PUT, "/limits/host:example.org", &[], json!({ "concurrency": 2 })).await;
    assert_eq!((set.status, &set.body["rule"]["concurrency"]), (StatusCode::OK, &2.into()), "{set:?}");
    assert_eq!(world.get("/limits").await.body["limits"][0]["key"], "host:example.org");
    let wrong =
        world.send(Method::PUT, "/limits/host:example.org", &[], json!({ "concurrency": "two" })).await;
    assert_eq!(
        (wrong.status, &wrong.body["errors"][0]["pointer"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &"/concurrency".into())
    );
    assert_eq!(
        world.send(Method::DELETE, "/limits/host:example.org", &[], Value::Null).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        world.send(Method::DELETE, "/limits/host:example.org", &[], Value::Null).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(world.get("/limits/nonsense").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn dead_letters_wait_for_a_decision() {
    let world = World::new().await;
    for _ in 0..2 {
        world.post("/jobs", json!({ "handler": "work" })).await;
        let leased = world.lease("work").await;
        world.settle(&leased, Outcome::Failed(Failure::new(ErrorClass::Permanent, "no"))).await;
    }
    let first = world.get("/dead-letters?limit=1").await.body;
    let task = first["dead_letters"][0]["task"].as_str().unwrap().to_owned();
    let second = world.get(&format!("/dead-letters?cursor={task}")).await.body;
    assert_eq!(second["dead_letters"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        world.post(&format!("/dead-letters/{task}/requeue"), Value::Null).await.status,
        StatusCode::NO_CONTENT
    );
    let other = second["dead_letters"][0]["task"].as_str().unwrap();
    let path = format!("/dead-letters/{other}");
    assert_eq!(world.send(Method::DELETE, &path, &[], Value::Null).await.status, StatusCode::NO_CONTENT);
    let gone = world.send(Method::DELETE, &path, &[], Value::Null).await;
    assert_eq!((gone.status, &gone.body["code"]), (StatusCode::NOT_FOUND, &"no_dead_letter".into()));
    assert_eq!(world.get("/dead-letters").await.body["dead_letters"], json!([]));
    let today = world.get("/stats/daily").await.body;
    assert_eq!((&today["days"][0]["created"], &today["days"][0]["failed"]), (&2.into(), &2.into()));
}
