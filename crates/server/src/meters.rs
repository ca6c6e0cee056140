//! What the server measures of its own requests.

use axum::http::Method;
use metrics::{Gauge, Histogram};
use orchestrator_store::meter::{Kind, Meter, Scale, Whose};
use std::array;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

const SECONDS: Meter = Meter {
    name: "orchestrator_http_request_seconds",
    kind: Kind::Histogram(Scale::Calls),
    labels: &["method", "path", "status"],
    whose: Whose::Process,
    help: "How long requests took to be answered, by method, route and class of status. What matches no route is called \
           other. Requests that ask to wait are as long as they waited.",
};

const WRITABLE: Meter = Meter {
    name: "orchestrator_store_writable",
    kind: Kind::Gauge,
    labels: &[],
    whose: Whose::Process,
    help: "1 where the store took a write of this server when it was last tried, else 0: what /ready tells.",
};

const LISTENERS: Meter = Meter {
    name: "orchestrator_sse_listeners",
    kind: Kind::Gauge,
    labels: &[],
    whose: Whose::Process,
    help: "Clients that listen to live events of this server.",
};

/// What servers record.
pub const METERS: &[Meter] = &[SECONDS, WRITABLE, LISTENERS];

/// Whether the store takes writes.
pub fn writable(yes: bool) {
    metrics::gauge!(WRITABLE.name).set(f64::from(u8::from(yes)));
}

/// A client that listens to events, from now until this is dropped.
pub struct Listening(Gauge);

impl Listening {
    /// One more listens.
    pub fn begin() -> Self {
        let listeners = metrics::gauge!(LISTENERS.name);
        listeners.increment(1.0);
        Listening(listeners)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "other"];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const SERIES: usize = METHODS.len() * CLASSES.len();

/// The timings of all routes. A route is looked up by its text; its handles are made when they are first needed, so that
/// there are series only of what happens.
#[derive(Default)]
pub struct Endpoints(RwLock<HashMap<Arc<str>, Arc<Route>>>);

struct Route([OnceLock<Histogram>; SERIES]);

impl Endpoints {
    /// A request to a route was answered.
    pub fn answered(&self, method: &Method, path: &str, status: u16, took: Duration) {
        let method = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        let made = || {
            metrics::histogram!(
                SECONDS.name,
                "method" => METHODS[method], "path" => path.to_owned(), "status" => CLASSES[class]
            )
        };
        self.timings(path).0[method * CLASSES.len() + class].get_or_init(made).record(took.as_secs_f64());
    }

    fn timings(&self, path: &str) -> Arc<Route> {
        if let Some(route) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(path) {
            return route.clone();
        }
        let mut routes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(Route(array::from_fn(|_| OnceLock::new())));
        routes.entry(path.into()).or_insert_with(fresh).clone()
    }
}
