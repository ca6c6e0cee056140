//! Many jobs in one request, and what stands around a job: tasks, items, workers, what is stuck and what is old.

use crate::world::World;
use axum::http::{Method, StatusCode};
use orchestrator_core::{ErrorClass, Failure, Json, Outcome};
use serde_json::{Value, json};

fn failed() -> Outcome {
    Outcome::Failed(Failure { class: ErrorClass::Permanent, message: "no".to_owned(), retry_after: None })
}

#[tokio::test]
async fn a_batch_goes_in_whole() {
    let world = World::new().await;
    let flow = json!({ "flow": "two", "tasks": { "a": { "handler": "work" }, "b": { "handler": "work", "needs": ["a"] } } });
    let answer = world
        .post(
            "/jobs/batch",
            json!({
                "jobs": [
                    { "artifact_id": "k", "handler": "work", "payload": { "n": 1 }, "max_crashes": 7,
                      "retry": { "max_retries": 1, "initial": "2s", "base": 3, "max": "1m", "jitter_percent": 0 } },
                    { "artifact_id": "k", "handler": "work", "payload": { "n": 1 } },
                    { "artifact_id": "k", "handler": "work", "payload": { "n": 2 } },
                    { "flow": "mine", "input": {}, "document": { "name": "a", "media_type": "text/plain", "content": "aGk=" } },
                ],
                "flows": { "mine": flow },
            }),
        )
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let jobs = answer.body["jobs"].as_array().unwrap();
    let results: Vec<_> = jobs.iter().map(|job| job["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["created", "existing", "conflict", "created"]);
    let id = |n: usize| jobs[n]["id"].as_str().unwrap().to_owned();
    assert_eq!((id(0), id(0)), (id(1), id(2)));
    let spec = world.get(&format!("/jobs/{}", id(0))).await.body["tasks"][0]["spec"].clone();
    assert_eq!((&spec["max_crashes"], &spec["retry"]["base"]), (&7.into(), &3.into()));
    let of_flow = world.get(&format!("/jobs/{}", id(3))).await.body;
    assert_eq!((&of_flow["flow"]["name"], &of_flow["document"]["size"]), (&"two".into(), &2.into()));
    assert_eq!(world.get("/flows").await.body["flows"], json!([]), "it was brought along, not applied");
}

#[tokio::test]
async fn a_batch_with_mistakes_is_refused_whole() {
    let world = World::new().await;
    let body = json!({ "jobs": [
        { "handler": "work" },
        { "handler": "work", "priority": "urgent", "colour": 1 },
        { "handler": "work", "queue": "a b", "document": { "name": "a", "media_type": "b", "content": "?" } },
        { "flow": "nothing" },
    ] });
    let answer = world.post("/jobs/batch", body).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{answer:?}");
    let pointers: Vec<_> = answer.body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    for pointer in ["/jobs/1/colour", "/jobs/2/queue", "/jobs/2/document/content", "/jobs/3/flow"] {
        assert!(pointers.contains(&pointer), "{pointer} not in {pointers:?}");
    }
    assert_eq!(world.get("/jobs").await.body["jobs"], json!([]), "none was taken in");
    let many = json!({ "jobs": vec![json!({ "handler": "w" }); 1001] });
    assert_eq!(world.post("/jobs/batch", many).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let broken = json!({ "jobs": [], "flows": { "x": { "flow": "x", "tasks": {} } } });
    assert_eq!(world.post("/jobs/batch", broken).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let after = json!({ "jobs": [{ "handler": "w", "after": ["00000000-0000-7000-8000-000000000000"] }] });
    let answer = world.post("/jobs/batch", after).await;
    assert_eq!(answer.body["errors"][0]["pointer"], "/jobs/0/after", "{answer:?}");
}

#[tokio::test]
async fn many_are_steered_at_once() {
    let world = World::new().await;
    let mut ids = vec![];
    for _ in 0..2 {
        ids.push(
            world.post("/jobs", json!({ "handler": "work" })).await.body["id"].as_str().unwrap().to_owned(),
        );
    }
    let unknown = "00000000-0000-7000-8000-000000000000";
    let wishes = json!({ "wishes": [
        { "action": "cancel", "job": ids[0] },
        { "action": "pause", "job": ids[1], "expect": "running" },
        { "action": "retry", "job": ids[0] },
        { "action": "requeue", "job": ids[1], "task": 0 },
        { "action": "cancel", "job": unknown },
        { "action": "recover", "job": ids[1] },
    ] });
    let answer = world.post("/jobs/control", wishes).await;
    let results: Vec<_> = answer.body["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["done", "changed", "refused", "no_such_task", "not_found", "refused"], "{answer:?}");
    let wrong = json!({ "wishes": [{ "action": "requeue", "job": ids[0] }, { "action": "pause", "job": ids[0], "from": "a" }] });
    let answer = world.post("/jobs/control", wrong).await;
    assert_eq!(
        (answer.status, answer.body["errors"].as_array().map(Vec::len)),
        (StatusCode::UNPROCESSABLE_ENTITY, Some(2))
    );
}

#[tokio::test]
async fn tasks_and_items_are_found_by_name_and_number() {
    let world = World::new().await;
    let flow = json!({ "flow": "list", "tasks": { "each": { "handler": "work", "for_each": "{{ [1, 2, 3] }}", "with": { "n": "{{ item }}" } } } });
    let body = json!({ "jobs": [{ "flow": "list" }], "flows": { "list": flow } });
    let id = world.post("/jobs/batch", body).await.body["jobs"][0]["id"].as_str().unwrap().to_owned();
    let at = |path: &str| format!("/jobs/{id}/tasks{path}");
    assert_eq!(world.get(&at("")).await.body["tasks"][0]["name"], "each");
    assert_eq!(world.get(&at("/each")).await.body["items"]["count"], 3);
    assert_eq!(world.get(&at("/each%5B1%5D")).await.body["input"], json!({ "n": 2 }));
    let page = world.get(&at("/0/items?limit=2")).await.body;
    assert_eq!(
        (page["tasks"].as_array().map(Vec::len), &page["next"]),
        (Some(2), &page["tasks"][1]["index"])
    );
    let rest = world.get(&at(&format!("/each/items?after={}", page["next"]))).await.body;
    assert_eq!((rest["tasks"][0]["name"].as_str(), &rest["next"]), (Some("each[2]"), &Value::Null));
    for path in ["/other", "/each%5B9%5D", "/99/items"] {
        assert_eq!(world.get(&at(path)).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    let by_prefix = world.get(&format!("/jobs?id_prefix={}", &id[..13])).await;
    assert_eq!(by_prefix.body["jobs"][0]["id"], id.as_str(), "{by_prefix:?}");
    assert_eq!(world.get("/jobs?id_prefix=xyz").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.get("/jobs?id_prefix=01&flow=list").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_is_stuck_says_why_and_what_is_old_can_go() {
    let world = World::new().await;
    let id = world.post("/jobs", json!({ "handler": "work" })).await.body["id"].as_str().unwrap().to_owned();
    let stuck = world.get("/jobs/stuck?older_than=0s").await;
    assert_eq!(
        (&stuck.body["jobs"][0]["job"]["id"], &stuck.body["jobs"][0]["reasons"][0]["code"]),
        (&id.as_str().into(), &"no_worker".into())
    );
    assert_eq!(
        world.get("/jobs/stuck").await.body["jobs"],
        json!([]),
        "nothing has been still for ten minutes"
    );
    world.settle(&world.lease("work").await, failed()).await;
    let moment = "2099-01-01T00:00:00Z";
    assert_eq!(
        world.get(&format!("/jobs/removable?completed_before={moment}")).await.body["jobs"],
        json!([])
    );
    let old = world.get(&format!("/jobs/removable?dead_before={moment}")).await.body["jobs"][0].clone();
    assert_eq!((&old["job"], &old["tasks"]), (&id.as_str().into(), &1.into()));
    let wish = json!({ "jobs": [{ "job": id, "ended": "2020-01-01T00:00:00Z" }, { "job": id, "ended": old["ended"] }] });
    assert_eq!(world.post("/jobs/forget", wish).await.body["results"], json!(["kept", "removed"]));
    assert_eq!(world.get(&format!("/jobs/{id}")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn workers_tell_of_themselves() {
    let world = World::new().await;
    let worker = json!({ "name": "w", "host": "here", "version": "python 1", "queues": ["default"], "handlers": ["work"], "slots": 4, "gone": false });
    let told = world.post("/work/register", json!({ "workers": [worker] })).await;
    assert_eq!(told.status, StatusCode::NO_CONTENT, "{told:?}");
    world.post("/jobs", json!({ "handler": "work", "payload": Json::null() })).await;
    world.lease("work").await;
    let listed = world.get("/workers").await.body["workers"][0].clone();
    assert_eq!((&listed["name"], &listed["slots"], &listed["running"]), (&"w".into(), &4.into(), &1.into()));
    let bad = json!({ "workers": [{ "name": "", "host": "a\n", "version": "", "queues": [], "handlers": [], "slots": 1, "gone": false }] });
    let refused = world.post("/work/register", bad).await;
    assert_eq!(
        (refused.status, refused.body["errors"].as_array().map(Vec::len)),
        (StatusCode::UNPROCESSABLE_ENTITY, Some(2))
    );
    assert!(world.get("/time").await.body["now"].as_str().is_some_and(|now| now.ends_with('Z')));
}

#[tokio::test]
async fn flows_and_limits_change_together() {
    let world = World::new().await;
    let flow = |name: &str| json!({ "apply": { "flow": name, "tasks": { "a": { "handler": "work" } } } });
    let broken = json!({ "changes": [flow("x"), { "apply": { "flow": "y", "tasks": {} } }] });
    assert_eq!(world.post("/flows/changes", broken).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(world.get("/flows").await.body["flows"], json!([]), "all or none");
    let both = world
        .post(
            "/flows/changes",
            json!({ "changes": [flow("x"), flow("y"), { "retire": "x" }, { "retire": "z" }] }),
        )
        .await;
    assert_eq!(
        both.body["results"],
        json!([{ "created": 1 }, { "created": 1 }, "retired", "not_found"]),
        "{both:?}"
    );
    let rules = json!({ "changes": [{ "key": "host:a", "rule": { "concurrency": 2 } }, { "key": "host:b", "rule": null }] });
    let changed = world.send(Method::PATCH, "/limits", &[], rules).await;
    assert_eq!(changed.status, StatusCode::NO_CONTENT, "{changed:?}");
    let limits = world.get("/limits").await.body["limits"].clone();
    assert_eq!(
        (&limits[0]["key"], &limits[0]["rule"]["concurrency"], limits.as_array().map(Vec::len)),
        (&"host:a".into(), &2.into(), Some(1))
    );
}
