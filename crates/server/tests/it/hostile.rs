//! Requests that no good client sends. Each is refused as a problem, on every route that the description knows.

use crate::world::{Answer, World};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};

/// No route takes more: those of workers take the most.
const LARGEST_BODY: usize = 16 << 20;
const UNKNOWN: &str = "019a8f00-0000-7000-8000-000000000009";
const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];

/// Every operation: its method, its path with names that nothing has, and its description.
fn operations() -> Vec<(Method, String, Value)> {
    let document = orchestrator_server::openapi();
    let mut found = vec![];
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS.into_iter().filter(|method| item.get(method).is_some()) {
            found.push((method.to_uppercase().parse().unwrap(), filled(path), item[method].clone()));
        }
    }
    found
}

fn filled(path: &str) -> String {
    let names =
        [("{id}", UNKNOWN), ("{job}", UNKNOWN), ("{index}", "7"), ("{key}", "host:none"), ("{name}", "none")];
    names.iter().fold(path.replace("{queue}", "none"), |path, (part, name)| path.replace(part, name))
}

/// The JSON that the description shows as a body.
fn example(operation: &Value) -> Option<Value> {
    let json = operation.get("requestBody")?.pointer("/content/application~1json")?;
    let first = || json["examples"].as_object()?.values().next()?.get("value");
    json.get("example").or_else(first).cloned()
}

fn refused(what: &str, answer: &Answer, status: StatusCode, code: &str) {
    assert_eq!((answer.status, &answer.body["code"]), (status, &code.into()), "{what}: {answer:?}");
    assert_eq!(answer.headers["content-type"], "application/problem+json", "{what}");
    assert!(answer.body["request_id"].is_string(), "{what}");
}

async fn send(
    world: &World,
    method: &Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.ask(request.body(body.into()).unwrap()).await
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn bodies_that_cannot_be_taken_are_refused_everywhere() {
    let world = World::new().await;
    for (method, path, operation) in operations() {
        let Some(example) = example(&operation) else { continue };
        let what = format!("{method} {path}");
        let (example, large) = (example.to_string(), " ".repeat(LARGEST_BODY + 1));
        let packed =
            send(&world, &method, &path, &[JSON, ("content-encoding", "gzip")], example.clone()).await;
        refused(&what, &packed, StatusCode::UNSUPPORTED_MEDIA_TYPE, "packed_body");
        let untyped = send(&world, &method, &path, &[("content-type", "text/plain")], example.clone()).await;
        refused(&what, &untyped, StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type");
        let answer = send(&world, &method, &path, &[JSON], large).await;
        refused(&what, &answer, StatusCode::PAYLOAD_TOO_LARGE, "too_large");
        for broken in [&example[..example.len() - 1], "\u{0}", "{\"a\"", "nul"] {
            let answer = send(&world, &method, &path, &[JSON], broken.to_owned()).await;
            assert!([400, 422].contains(&answer.status.as_u16()), "{what} {broken}: {answer:?}");
            assert_eq!(answer.headers["content-type"], "application/problem+json", "{what} {broken}");
        }
        let list = send(&world, &method, &path, &[JSON], "[]").await;
        assert!(list.status.is_client_error(), "{what}: {list:?}");
        let raw = send(&world, &method, &path, &[JSON], vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']).await;
        assert!(raw.status.is_client_error(), "{what}: {raw:?}");
    }
}

#[tokio::test]
async fn what_nests_deep_breaks_nothing() {
    let world = World::new().await;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (method, path, operation) in
        operations().into_iter().filter(|(_, _, operation)| example(operation).is_some())
    {
        for depth in [101, 200, 20_000] {
            for field in
                ["payload", "input", "output", "held", "outcomes", "from", "tasks", "concurrency", "handlers"]
            {
                let body = format!("{{\"{field}\":{}}}", deep(depth));
                let answer = send(&world, &method, &path, &[JSON], body).await;
                let known = operation["operationId"] == "rerun_job" && answer.status == StatusCode::NOT_FOUND;
                assert!(known || answer.status.is_client_error(), "{method} {path} {field}: {answer:?}");
            }
        }
    }
    world.post("/jobs", json!({ "handler": "work" })).await;
    let leased = world.lease("work").await;
    let body = format!(r#"{{"task":"{}","attempt":1,"output":{}}}"#, leased.task, deep(20_000));
    let ended = send(&world, &Method::POST, "/work/complete", &[JSON], body).await;
    assert_eq!(ended.body["applied"]["state"], "failed", "what nobody could read is no result: {ended:?}");
}

#[tokio::test]
async fn what_does_not_exist_is_not_found_on_every_route() {
    let world = World::new().await;
    let mut seen = 0;
    for (method, path, operation) in operations() {
        let told = operation["responses"].get("404").is_some();
        // Events are of all jobs unless one is named, and then they have no end.
        if !told || path == "/events" {
            continue;
        }
        let answer = world.send(method.clone(), &path, &[], example(&operation).unwrap_or_default()).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}: {answer:?}");
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{method} {path}");
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
}

#[tokio::test]
async fn methods_that_a_path_does_not_take_are_refused() {
    let world = World::new().await;
    let document = orchestrator_server::openapi();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS.into_iter().filter(|method| item.get(method).is_none()) {
            // A path of fixed words may also be read as one with a name in it, which takes more.
            if path == "/flows/validate" || (path.starts_with("/jobs/") && !path.contains('{')) {
                continue;
            }
            let answer =
                world.send(method.to_uppercase().parse().unwrap(), &filled(path), &[], Value::Null).await;
            refused(&format!("{method} {path}"), &answer, StatusCode::METHOD_NOT_ALLOWED, "no_such_method");
            let allow = answer.headers["allow"].to_str().unwrap().to_owned();
            let takes = METHODS.into_iter().filter(|method| item.get(method).is_some());
            takes.for_each(|method| assert!(allow.contains(&method.to_uppercase()), "{path}: {allow}"));
        }
    }
}

#[tokio::test]
async fn addresses_that_cannot_be_read_are_refused() {
    let world = World::new().await;
    for path in [
        "/jobs/%ff",
        "/jobs/%00",
        "/flows/%ff",
        "/flows/a%00b",
        "/flows/%ff/versions",
        "/queues/%c3%28",
        "/limits/host:%00",
        "/limits/host:%ff",
        "/dead-letters/%ff/0",
        "/jobs?queue=%ff",
        "/jobs?queue=a%00",
        "/jobs?context.a=%00",
        "/jobs?%00=1",
        "/jobs?cursor=%ff",
        "/stats/daily?days=%f0%28",
        "/dead-letters?handler=%00",
        "/jobs?queue=a%20b",
        "/jobs?flow=",
    ] {
        let method = if path.starts_with("/dead-letters/") { Method::DELETE } else { Method::GET };
        let answer = world.send(method, path, &[], Value::Null).await;
        refused(path, &answer, StatusCode::BAD_REQUEST, "bad_parameter");
    }
    for path in [
        "/jobs?limit=99999999999999999999999",
        "/jobs?limit=-1",
        "/jobs?limit=1e3",
        "/jobs?limit=1&limit=2",
        "/stats/daily?days=18446744073709551616",
        "/flows/x?version=4294967296",
        "/jobs?created_from=999999-01-01T00:00:00Z",
        "/dead-letters?limit=0x10",
        "/jobs?state=running,lost",
        "/jobs?recoverable=yes",
        "/jobs?order=up",
    ] {
        refused(path, &world.get(path).await, StatusCode::BAD_REQUEST, "bad_parameter");
    }
    let task = format!("/dead-letters/{UNKNOWN}/4294967296");
    refused(
        &task,
        &world.send(Method::DELETE, &task, &[], Value::Null).await,
        StatusCode::BAD_REQUEST,
        "bad_parameter",
    );
}

#[tokio::test]
async fn numbers_that_fit_nowhere_are_refused() {
    let world = World::new().await;
    let task = format!("{UNKNOWN}/0");
    for (path, body) in [
        ("/work/complete", format!(r#"{{"task":"{task}","attempt":1e400}}"#)),
        ("/work/complete", format!(r#"{{"task":"{task}","attempt":4294967296}}"#)),
        ("/work/complete", format!(r#"{{"task":"{task}","attempt":-1}}"#)),
        ("/work/complete", format!(r#"{{"task":"{UNKNOWN}/99999999999","attempt":1}}"#)),
        ("/work/lease", r#"{"worker":"w","handlers":["x"],"slots":1e99}"#.to_owned()),
        ("/work/lease", r#"{"worker":"w","handlers":["x"],"wait":18446744073709551615}"#.to_owned()),
        ("/work/lease", r#"{"worker":"w","handlers":["x"],"wait":"99999999999999999999d"}"#.to_owned()),
        ("/jobs", r#"{"handler":"x","max_retries":4294967296}"#.to_owned()),
        ("/jobs", r#"{"handler":"x","timeout":1e300}"#.to_owned()),
        ("/jobs", r#"{"handler":"x","timeout":-1}"#.to_owned()),
        ("/jobs", r#"{"handler":"x","run_at":"-99999-01-01T00:00:00Z"}"#.to_owned()),
    ] {
        let answer = send(&world, &Method::POST, path, &[JSON], body.clone()).await;
        assert!([400, 422].contains(&answer.status.as_u16()), "{path} {body}: {answer:?}");
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{path} {body}");
    }
    let huge = send(&world, &Method::PUT, "/limits/host:x", &[JSON], r#"{"concurrency":99999999999}"#).await;
    refused("a limit", &huge, StatusCode::UNPROCESSABLE_ENTITY, "invalid");
}

/// PostgreSQL cannot hold the character zero in a text, so it must not come so far, except inside JSON, which escapes it.
#[tokio::test]
async fn the_character_zero_is_refused_where_it_cannot_be_kept() {
    let world = World::new().await;
    for (path, body) in [
        ("/jobs", json!({ "handler": "a\0" })),
        ("/jobs", json!({ "handler": "a", "queue": "\0" })),
        ("/jobs", json!({ "handler": "a", "tenant": "\0" })),
        ("/jobs", json!({ "handler": "a", "artifact_id": "a\0b" })),
        ("/jobs", json!({ "handler": "a", "correlation_id": "a\0b" })),
        ("/jobs", json!({ "handler": "a", "limits": { "host": "a\0b" } })),
        ("/jobs", json!({ "flow": "a\0" })),
        ("/work/lease", json!({ "worker": "a\0", "handlers": ["x"] })),
        ("/work/lease", json!({ "worker": "a", "handlers": ["\0"] })),
        ("/work/lease", json!({ "worker": "a", "handlers": ["x"], "queues": ["\0"] })),
        ("/flows", json!({ "flow": "a\0", "tasks": { "t": { "handler": "x" } } })),
    ] {
        let answer = world.post(path, body.clone()).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {body}: {answer:?}");
    }
    let payload = json!({ "text": "a\0b" });
    let made = world
        .post("/jobs", json!({ "handler": "work", "payload": payload, "context": { "\0": "\0" } }))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let leased = world.lease("work").await;
    assert_eq!(leased.payload.value(), payload);
    let failed = json!({ "task": leased.task, "attempt": 1, "message": "broke at \0", "retryable": false });
    assert_eq!(world.post("/work/fail", failed).await.status, StatusCode::OK);
    let job = world.get(&format!("/jobs/{}", made.body["id"].as_str().unwrap())).await.body;
    assert_eq!(
        job["tasks"][0]["history"][0]["message"], "broke at \u{fffd}",
        "the error is not lost over it"
    );
}
