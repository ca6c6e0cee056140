//! The protocol of workers.

use crate::world::World;
use axum::http::StatusCode;
use serde_json::{Value, json};

async fn lease(world: &World, more: Value) -> Vec<Value> {
    let mut ask = json!({ "worker": "w", "handlers": ["work"], "slots": 10 });
    ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = world.post("/work/lease", ask).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.body["tasks"].as_array().unwrap().clone()
}

async fn submit(world: &World) -> String {
    let answer = world.post("/jobs", json!({ "handler": "work", "payload": { "n": 1 } })).await;
    answer.body["id"].as_str().unwrap().to_owned()
}

fn held(task: &Value) -> Value {
    json!({ "task": task["task"], "attempt": task["counters"]["attempt"] })
}

/// An attempt with further fields.
fn with(task: &Value, more: Value) -> Value {
    let mut body = held(task);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn a_task_is_leased_and_completed() {
    let world = World::new().await;
    let id = submit(&world).await;
    let tasks = lease(&world, json!({})).await;
    assert_eq!((tasks.len(), &tasks[0]["payload"]), (1, &json!({ "n": 1 })));
    assert_eq!(tasks[0]["task"], format!("{id}/0"));
    let beat = world.post("/work/heartbeat", json!({ "held": [held(&tasks[0])], "ttl": "1m" })).await;
    assert!(beat.body["beats"][0]["until"].is_string(), "{beat:?}");
    let done = world.post("/work/complete", with(&tasks[0], json!({ "output": { "ok": true } }))).await;
    assert_eq!(
        (done.status, &done.body["applied"]["state"]),
        (StatusCode::OK, &"completed".into()),
        "{done:?}"
    );
    let job = world.get(&format!("/jobs/{id}")).await.body;
    assert_eq!((&job["state"], &job["output"]), (&"completed".into(), &json!({ "ok": true })));
}

#[tokio::test]
async fn a_lease_that_is_lost_takes_no_result() {
    let world = World::new().await;
    let id = submit(&world).await;
    let task = lease(&world, json!({})).await.remove(0);
    world.post(&format!("/jobs/{id}/cancel"), Value::Null).await;
    let beat = world.post("/work/heartbeat", json!({ "held": [held(&task)] })).await;
    assert_eq!(beat.body["beats"], json!(["lost"]));
    let lost = world.post("/work/lost", json!({ "held": [held(&task)] })).await;
    assert_eq!(lost.body["lost"], json!([held(&task)]));
    let late = world.post("/work/complete", with(&task, json!({ "output": 1 }))).await;
    assert_eq!((late.status, &late.body["code"]), (StatusCode::CONFLICT, &"lease_lost".into()));
    let batch = world
        .post("/work/settle", json!({ "outcomes": [with(&task, json!({ "outcome": "released" }))] }))
        .await;
    assert_eq!(batch.body["settled"], json!(["stale"]));
    assert_eq!(world.get(&format!("/jobs/{id}")).await.body["state"], "cancelled");
}

#[tokio::test]
async fn a_failure_says_whether_to_try_again() {
    let world = World::new().await;
    let id = submit(&world).await;
    let task = lease(&world, json!({})).await.remove(0);
    let odd = json!({ "message": "x", "class": "validation", "retryable": true });
    assert_eq!(world.post("/work/fail", with(&task, odd)).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let later =
        world.post("/work/fail", with(&task, json!({ "message": "busy", "retry_after": "1h" }))).await;
    assert_eq!(later.body["applied"]["state"], "retrying", "{later:?}");
    assert_eq!(lease(&world, json!({})).await, [Value::Null; 0], "not before an hour has passed");
    let other = submit(&world).await;
    let task = lease(&world, json!({})).await.remove(0);
    let final_one =
        world.post("/work/fail", with(&task, json!({ "message": "no such file", "retryable": false }))).await;
    assert_eq!(final_one.body["applied"]["state"], "failed");
    assert_eq!(world.get(&format!("/jobs/{other}")).await.body["state"], "failed");
    assert_eq!(world.get(&format!("/jobs/{id}")).await.body["tasks"][0]["history"][0]["message"], "busy");
}

#[tokio::test]
async fn what_is_given_back_is_handed_out_again() {
    let world = World::new().await;
    submit(&world).await;
    let first = lease(&world, json!({})).await.remove(0);
    assert_eq!(world.post("/work/release", held(&first)).await.status, StatusCode::OK);
    let again = lease(&world, json!({})).await.remove(0);
    assert_eq!((&again["task"], &again["counters"]["failures"]), (&first["task"], &0.into()));
}

#[tokio::test]
async fn an_ask_waits_for_work() {
    let world = World::new().await;
    let ask = lease(&world, json!({ "wait": "30s" }));
    let (tasks, _) = tokio::join!(ask, submit(&world));
    assert_eq!(tasks.len(), 1);
}

#[tokio::test]
async fn odd_asks_are_refused() {
    let world = World::new().await;
    for (ask, pointer) in [
        (json!({ "worker": "w", "handlers": ["work"], "slots": 0 }), "/slots"),
        (json!({ "worker": "w", "handlers": [] }), "/handlers"),
        (json!({ "worker": "", "handlers": ["work"] }), "/worker"),
        (json!({ "worker": "w", "handlers": ["work"], "wait": "1h" }), "/wait"),
        (json!({ "worker": "w", "handlers": ["work"], "ttl": "1ms" }), "/ttl"),
        (json!({ "worker": "w", "handlers": "work" }), "/handlers"),
    ] {
        let answer = world.post("/work/lease", ask.clone()).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{ask}: {answer:?}");
        assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{ask}");
    }
    let lost = json!({ "outcomes": [{ "task": "019a8f00-0000-7000-8000-000000000009/0", "attempt": 1, "outcome": "lost" }] });
    assert_eq!(world.post("/work/settle", lost).await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn an_output_that_is_too_large_is_a_final_failure_and_a_body_of_many_is_taken() {
    let world = World::new().await;
    let (large, small) = (submit(&world).await, submit(&world).await);
    let tasks = lease(&world, json!({})).await;
    let output = |size: usize| json!({ "outcome": { "completed": "x".repeat(size) } });
    let ends = json!({ "outcomes": [with(&tasks[0], output(2 << 20)), with(&tasks[1], output(1_000_000))] });
    let done = world.post("/work/settle", ends).await;
    assert_eq!(done.status, StatusCode::OK, "{:?}", done.body);
    let state = async |id: &str| world.get(&format!("/jobs/{id}")).await.body["state"].clone();
    assert_eq!((state(&large).await, state(&small).await), ("failed".into(), "completed".into()));
    let over = world.post("/work/complete", with(&tasks[0], json!({ "output": "x".repeat(17 << 20) }))).await;
    assert_eq!((over.status, &over.body["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &"too_large".into()));
}
