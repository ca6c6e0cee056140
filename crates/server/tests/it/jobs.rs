//! Jobs over REST.

use crate::world::{MAX_BODY, World};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use orchestrator_core::{ErrorClass, Failure, Json, Outcome};
use serde_json::{Value, json};

/// Takes a job in and answers with its id.
async fn create(world: &World, body: Value) -> String {
    let answer = world.post("/jobs", body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    answer.body["id"].as_str().unwrap().to_owned()
}

fn pointers(body: &Value) -> Vec<&str> {
    body["errors"].as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_job_is_taken_in_and_found_again() {
    let world = World::new().await;
    let answer = world.post("/jobs", json!({ "handler": "work", "payload": { "b": 1, "a": [2.50] } })).await;
    let id = answer.body["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.headers["location"], format!("/jobs/{id}").as_str());
    let job = world.get(&format!("/jobs/{id}")).await;
    assert_eq!((job.status, &job.body["state"]), (StatusCode::OK, &"pending".into()));
    assert_eq!(job.body["payload"], json!({ "b": 1, "a": [2.50] }));
    let created = job.body["created"].as_str().unwrap();
    assert!(created.starts_with("20") && created.ends_with('Z'), "moments are texts: {created}");
    let progress = world.get(&format!("/jobs/{id}/progress")).await;
    assert_eq!((progress.status, &progress.body["total_steps"]), (StatusCode::OK, &1.into()));
}

#[tokio::test]
async fn everything_wrong_with_a_job_is_told_at_once() {
    let world = World::new().await;
    let answer = world
        .post(
            "/jobs",
            json!({ "handler": "no spaces", "queue": "a b", "priority": "urgent", "run_at": "soon" }),
        )
        .await;
    assert_eq!((answer.status, &answer.body["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &"invalid".into()));
    assert_eq!(pointers(&answer.body), ["/priority", "/run_at", "/queue", "/handler"], "{answer:?}");
    let typed =
        world.post("/jobs", json!({ "handler": 7, "max_retries": "many", "colour": 1, "quue": "x" })).await;
    assert_eq!(pointers(&typed.body), ["/handler", "/max_retries", "/colour", "/quue"], "{typed:?}");
    assert_eq!(typed.body["errors"][3]["message"], "there is no such field; did you mean queue?");
    let both = json!({ "handler": "work", "timeot": "1s", "max_retries": "many", "priority": "urgent", "queue": "a b" });
    let both = world.post("/jobs", both).await;
    assert_eq!(pointers(&both.body), ["/max_retries", "/timeot", "/priority", "/queue"], "{both:?}");
    assert_eq!(typed.headers["content-type"], "application/problem+json");
    assert_eq!(typed.headers["x-request-id"].to_str().unwrap(), typed.body["request_id"].as_str().unwrap());
}

#[tokio::test]
async fn bodies_that_are_no_job_are_refused() {
    let world = World::new().await;
    let send = |kind: &'static str, body: Vec<u8>| {
        let request = Request::post("/jobs").header("content-type", kind).body(Body::from(body)).unwrap();
        world.ask(request)
    };
    let status = |answer: crate::world::Answer| {
        (answer.status.as_u16(), answer.body["code"].as_str().map(str::to_owned))
    };
    let told = |status: u16, code: &str| (status, Some(code.to_owned()));
    assert_eq!(status(send("application/json", b"{\"handler\": ".to_vec()).await), told(400, "broken_json"));
    assert_eq!(status(send("application/json", b"[1]".to_vec()).await), told(400, "broken_json"));
    assert_eq!(status(send("application/json", vec![0xff, 0xfe]).await), told(400, "broken_json"));
    assert_eq!(status(send("text/plain", b"{}".to_vec()).await), told(415, "unsupported_media_type"));
    assert_eq!(
        send("application/json", vec![b' '; MAX_BODY + 1]).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    let deep = format!("{{\"handler\":\"x\",\"payload\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert_eq!(send("application/json", deep.into_bytes()).await.status.as_u16() / 100, 4);
}

#[tokio::test]
async fn a_key_makes_a_submit_safe_to_repeat() {
    let world = World::new().await;
    let world = &world;
    let send = async |key: &str, payload: u32| {
        let body = json!({ "handler": "work", "payload": payload });
        world.send(Method::POST, "/jobs", &[("idempotency-key", key)], body).await
    };
    let first = send("a", 1).await;
    let again = send("\"a\"", 1).await;
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::OK));
    assert_eq!((&again.body["id"], &again.body["result"]), (&first.body["id"], &"existing".into()));
    let other = send("a", 2).await;
    assert_eq!((other.status, &other.body["code"]), (StatusCode::CONFLICT, &"key_conflict".into()));
}

#[tokio::test]
async fn lists_go_page_by_page() {
    let world = World::new().await;
    let mut ids = vec![];
    for n in 0..5 {
        ids.push(create(&world, json!({ "handler": if n == 2 { "other" } else { "work" } })).await);
    }
    ids.reverse();
    let listed = |body: &Value| -> Vec<String> {
        body["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = world.get("/jobs?limit=3").await;
    assert_eq!(listed(&first.body), ids[..3]);
    let link = first.headers["link"].to_str().unwrap().to_owned();
    let next = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).unwrap();
    let second = world.get(next).await;
    assert_eq!((listed(&second.body), &second.body["next"]), (ids[3..].to_vec(), &Value::Null));
    assert_eq!(listed(&world.get("/jobs?handler=other").await.body), [ids[2].clone()]);
    assert_eq!(listed(&world.get("/jobs?state=completed,failed").await.body), [""; 0]);
    let wrong = world.get("/jobs?limit=0&state=lost&orde=newest").await;
    assert_eq!(
        (wrong.status, pointers(&wrong.body)),
        (StatusCode::BAD_REQUEST, vec!["state", "limit", "orde"])
    );
}

#[tokio::test]
async fn a_job_is_steered() {
    let world = World::new().await;
    let id = create(&world, json!({ "handler": "work" })).await;
    let path = |verb: &str| format!("/jobs/{id}/{verb}");
    assert_eq!(world.post(&path("pause"), Value::Null).await.body["state"], "paused");
    let twice = world.post(&path("pause"), Value::Null).await;
    assert_eq!((twice.status, &twice.body["code"]), (StatusCode::CONFLICT, &"wrong_state".into()));
    assert_eq!(world.post(&path("resume"), Value::Null).await.status, StatusCode::OK);
    let leased = world.lease("work").await;
    let failure = Failure::new(ErrorClass::Permanent, "it broke");
    world.settle(&leased, Outcome::Failed(failure)).await;
    assert_eq!(world.get(&format!("/jobs/{id}")).await.body["state"], "failed");
    assert_eq!(world.post(&path("retry"), Value::Null).await.status, StatusCode::OK);
    let cancelled = world.send(Method::DELETE, &format!("/jobs/{id}"), &[], Value::Null).await;
    assert_eq!((cancelled.status, &cancelled.body["state"]), (StatusCode::OK, &"cancelled".into()));
    let again = world.post(&path("rerun"), json!({ "input": { "n": 2 } })).await;
    assert_eq!((again.status, &again.body["previous"]), (StatusCode::CREATED, &id.as_str().into()));
    assert_eq!(again.body["payload"], json!({ "n": 2 }));
}

#[tokio::test]
async fn a_change_can_depend_on_what_was_seen() {
    let world = World::new().await;
    let id = create(&world, json!({ "handler": "work" })).await;
    let seen = world.get(&format!("/jobs/{id}")).await.headers["etag"].to_str().unwrap().to_owned();
    let ask = |tag: &str, verb: &str| {
        let path = format!("/jobs/{id}/{verb}");
        let tag = tag.to_owned();
        let world = &world;
        async move { world.send(Method::POST, &path, &[("if-match", &tag)], Value::Null).await }
    };
    assert_eq!(ask("\"other\"", "cancel").await.status, StatusCode::PRECONDITION_FAILED);
    let paused = ask(&seen, "pause").await;
    assert_eq!(paused.status, StatusCode::OK);
    let stale = ask(&seen, "cancel").await;
    assert_eq!((stale.status, &stale.body["code"]), (StatusCode::PRECONDITION_FAILED, &"changed".into()));
    let now = paused.headers["etag"].to_str().unwrap();
    assert_eq!(ask(now, "cancel").await.body["state"], "cancelled");
}

#[tokio::test]
async fn who_waits_is_told_of_the_end() {
    let world = World::new().await;
    let body = json!({ "handler": "work" });
    let waiting = world.post("/jobs?wait=30s", body.clone());
    let working = async {
        loop {
            if world.get("/jobs?handler=work").await.body["jobs"]
                .as_array()
                .is_some_and(|jobs| !jobs.is_empty())
            {
                break;
            }
            tokio::task::yield_now().await;
        }
        let leased = world.lease("work").await;
        world.settle(&leased, Outcome::Completed(Json::parse("7").unwrap())).await;
    };
    let (answer, ()) = tokio::join!(waiting, working);
    assert_eq!(
        (answer.status, &answer.body["state"], &answer.body["output"]),
        (StatusCode::OK, &"completed".into(), &7.into())
    );
    let early = world.post("/jobs?wait=1ms", body).await;
    assert_eq!((early.status, &early.body["state"]), (StatusCode::ACCEPTED, &"pending".into()));
    assert_eq!(
        world.post("/jobs?wait=2h", json!({ "handler": "work" })).await.status,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = World::new().await;
    let unknown = "019a8f00-0000-7000-8000-000000000009";
    for (path, code) in [(format!("/jobs/{unknown}"), "not_found"), ("/nothing".to_owned(), "no_such_path")] {
        let answer = world.get(&path).await;
        assert_eq!((answer.status, &answer.body["code"]), (StatusCode::NOT_FOUND, &code.into()), "{path}");
    }
    assert_eq!(world.get("/jobs/7").await.status, StatusCode::BAD_REQUEST);
    let method = world.send(Method::PUT, "/jobs", &[], Value::Null).await;
    assert_eq!(
        (method.status, &method.body["code"]),
        (StatusCode::METHOD_NOT_ALLOWED, &"no_such_method".into())
    );
}

/// A form of parts: name, further headers of the part, content.
fn form(parts: &[(&str, &str, &[u8])]) -> Request<Body> {
    let mut body = vec![];
    for (name, more, content) in parts {
        body.extend_from_slice(
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n").as_bytes(),
        );
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--x--\r\n");
    Request::post("/jobs")
        .header("content-type", "multipart/form-data; boundary=x")
        .body(Body::from(body))
        .unwrap()
}

#[tokio::test]
async fn a_document_is_kept_with_its_job() {
    let world = World::new().await;
    let content = [0_u8, 159, 146, 150];
    let file = "; filename=\"a b.pdf\"\r\nContent-Type: application/pdf";
    let answer = world
        .ask(form(&[
            ("handler", "", b"work"),
            ("context", "", br#"{"lab": "x"}"#),
            ("document", file, &content),
        ]))
        .await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    let id = answer.body["id"].as_str().unwrap();
    let job = world.get(&format!("/jobs/{id}")).await.body;
    assert_eq!((&job["document"]["name"], &job["document"]["size"]), (&"a b.pdf".into(), &4.into()));
    let (headers, bytes) = world.download(&format!("/jobs/{id}/document")).await;
    assert_eq!(
        (bytes.as_ref(), &headers["content-type"]),
        (content.as_slice(), &"application/pdf".parse().unwrap())
    );
    assert_eq!(headers["content-disposition"], "attachment; filename*=UTF-8''a%20b%2Epdf");
    let found = world.get("/jobs?context.lab=x").await;
    assert_eq!(found.body["jobs"][0]["id"], id);
    assert_eq!(world.get("/jobs?context.lab=y").await.body["jobs"], json!([]));
    let without = create(&world, json!({ "handler": "work" })).await;
    assert_eq!(world.get(&format!("/jobs/{without}/document")).await.body["code"], "no_document");
}

#[tokio::test]
async fn forms_that_are_no_job_are_refused() {
    let world = World::new().await;
    let large = vec![b'x'; crate::world::MAX_DOCUMENT + 1];
    let answer = world.ask(form(&[("handler", "", b"work"), ("document", "; filename=\"x\"", &large)])).await;
    assert_eq!((answer.status, &answer.body["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &"too_large".into()));
    let broken = world.ask(form(&[("job", "", b"{")])).await;
    assert_eq!((broken.status, pointers(&broken.body)), (StatusCode::UNPROCESSABLE_ENTITY, vec!["/job"]));
    let packed =
        Request::post("/jobs").header("content-encoding", "gzip").header("content-type", "application/json");
    let packed = world.ask(packed.body(Body::from("x")).unwrap()).await;
    assert_eq!(
        (packed.status, &packed.body["code"]),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, &"packed_body".into())
    );
}
