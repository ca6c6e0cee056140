//! A server on a file of its own.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use orchestrator_core::{Millis, Outcome, RetryPolicy, WorkerId};
use orchestrator_engine::{Engine, EngineConfig, Intake, Rules};
use orchestrator_server::{App, Observed, observed, router};
use orchestrator_store::{LeaseAsk, Leased, Settlement};
use orchestrator_store_sqlite::{Options, SqliteStore};
use orchestrator_worker::Registry;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// The largest body that the server takes.
pub const MAX_BODY: usize = 64 << 10;

/// The largest document.
pub const MAX_DOCUMENT: usize = 256 << 10;

/// A server.
pub struct World {
    pub engine: Engine,
    pub stopping: CancellationToken,
    pub router: Router,
    _dir: TempDir,
}

/// The routes of a server on an engine.
pub fn routes(engine: &Engine, stopping: &CancellationToken) -> Router {
    routes_taking(engine, stopping, MAX_BODY)
}

/// The same, for bodies of another size.
fn routes_taking(engine: &Engine, stopping: &CancellationToken, max_body: usize) -> Router {
    let rules = Rules {
        retry: RetryPolicy::default(),
        timeout: Millis::mins(5),
        max_crashes: 3,
        max_payload: max_body / 2,
    };
    let intake = Intake::new(rules, Registry::new(), true);
    router(App::new(engine.clone(), intake, max_body, stopping.clone()), MAX_DOCUMENT)
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl World {
    /// A server that has nothing.
    pub async fn new() -> World {
        World::taking(MAX_BODY).await
    }

    /// The same, for bodies of another size.
    pub async fn taking(max_body: usize) -> World {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("jobs.db"), Options::default()).unwrap();
        let engine = Engine::new(store, EngineConfig::default());
        let stopping = CancellationToken::new();
        World { router: routes_taking(&engine, &stopping, max_body), engine, stopping, _dir: dir }
    }

    /// The same, with something to see it with.
    pub async fn observed(with: Observed) -> World {
        let world = World::new().await;
        World { router: observed(world.router.clone(), with), ..world }
    }

    /// Sends a request.
    pub async fn ask(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// What is not JSON, with its headers.
    pub async fn download(&self, path: &str) -> (HeaderMap, axum::body::Bytes) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        (parts.headers, to_bytes(body, usize::MAX).await.unwrap())
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], body).await
    }

    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let mut request =
            Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        self.ask(request.body(body).unwrap()).await
    }

    /// Leases a task of a handler, as a worker would.
    pub async fn lease(&self, handler: &str) -> Leased {
        let ask = LeaseAsk {
            worker: WorkerId::new("w"),
            queues: vec!["default".into()],
            handlers: vec![handler.into()],
            slots: 1,
            ttl: Millis::mins(1),
            hold: Millis(0),
        };
        self.engine.store().lease(ask).await.unwrap().tasks.remove(0)
    }

    /// Ends an attempt, through the engine as a pool of this process would.
    pub async fn settle(&self, leased: &Leased, outcome: Outcome) {
        let settlement = Settlement { held: leased.held(), outcome, jitter: 0.0 };
        self.engine.source().settle(vec![settlement]).await.unwrap();
    }
}
