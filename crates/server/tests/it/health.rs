//! Health tells the truth.

use crate::world::World;
use axum::http::StatusCode;

#[tokio::test]
async fn a_server_that_takes_work_says_so() {
    let world = World::new().await;
    assert_eq!(world.get("/live").await.status, StatusCode::NO_CONTENT);
    let ready = world.get("/ready").await;
    assert_eq!((ready.status, &ready.body["status"]), (StatusCode::OK, &"ok".into()), "{ready:?}");
    assert_eq!(world.get("/health").await.body["store"]["writable"], true);
}

#[tokio::test]
async fn one_that_is_about_to_end_takes_no_more() {
    let world = World::new().await;
    world.stopping.cancel();
    let ready = world.get("/ready").await;
    assert_eq!((ready.status, &ready.body["status"]), (StatusCode::SERVICE_UNAVAILABLE, &"draining".into()));
    assert_eq!(world.get("/live").await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_store_that_takes_no_writes_shows() {
    let world = World::new().await;
    world.engine.store().close().await;
    for path in ["/ready", "/health"] {
        let answer = world.get(path).await;
        assert_eq!(
            (answer.status, &answer.body["status"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"unavailable".into())
        );
        assert_eq!(answer.body["store"]["code"], "store_closed");
    }
    let refused = world.post("/jobs", serde_json::json!({ "handler": "work" })).await;
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"store_closed".into())
    );
    assert_eq!(
        (&refused.body["retryable"], &refused.headers["retry-after"]),
        (&true.into(), &"1".parse().unwrap())
    );
}
