//! What can be seen of a server from outside: its metrics, the timings of its routes, and the place of each request in
//! a trace. It is put around the router by who has something to see it with.

use crate::meters::Endpoints;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderName, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Extension, Router};
use orchestrator_core::{Meta, TraceContext};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Makes the text of the metrics.
pub type Scrape = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

/// What a server is observed with.
#[derive(Clone, Default)]
pub struct Observed {
    /// The metrics, where there are any.
    pub scrape: Option<Scrape>,
    /// Where traces are kept: how many of those that begin here, from 0 to 1.
    pub sample: Option<f64>,
}

/// Where a request stands in a trace.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The request itself; where nobody keeps traces, that of the caller, which is handed on.
    pub own: TraceContext,
    /// What brought it about.
    pub parent: Option<TraceContext>,
    /// Whether it is a span that is kept.
    pub kept: bool,
}

impl Place {
    /// The place of the request that has these extensions.
    pub fn of(extensions: &Extensions) -> Option<Place> {
        extensions.get::<Place>().copied()
    }

    /// Lets a job carry on the trace of the request that brought it, unless it says which it belongs to.
    pub fn join(place: Option<Place>, meta: &mut Meta) {
        if meta.traceparent.is_none() {
            meta.traceparent = place.map(|place| place.own.to_string().into());
        }
    }

    fn find(request: &Request, sample: Option<f64>) -> Option<Place> {
        let given = request.headers().get(&TRACEPARENT).and_then(|value| value.to_str().ok());
        let given: Option<TraceContext> = given.and_then(|text| text.trim().parse().ok());
        match (given, sample) {
            (Some(caller), None) => Some(Place { own: caller, parent: None, kept: false }),
            (Some(caller), Some(_)) => {
                let own = caller.child(fastrand::u64(..));
                Some(Place { own, parent: Some(caller), kept: caller.sampled })
            }
            (None, Some(sample)) if !is_polled(path(request)) && fastrand::f64() < sample => {
                let own = TraceContext::root(fastrand::u128(..), fastrand::u64(..), true);
                Some(Place { own, parent: None, kept: true })
            }
            (None, _) => None,
        }
    }
}

/// The route of a request, as it was written down.
fn path(request: &Request) -> &str {
    request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str)
}

/// Routes that are asked all the time, by programs: of them neither the log nor traces tell unless they are asked to.
pub fn is_polled(path: &str) -> bool {
    path.starts_with("/work/") || matches!(path, "/metrics" | "/live" | "/ready" | "/health" | "/events")
}

struct Layer {
    sample: Option<f64>,
    endpoints: Option<Endpoints>,
}

/// Puts the measuring around a router, and hands its metrics to the page that shows them.
pub fn observed(router: Router, observed: Observed) -> Router {
    let Observed { scrape, sample } = observed;
    let layer = Arc::new(Layer { sample, endpoints: scrape.is_some().then(Endpoints::default) });
    let router = router.layer(middleware::from_fn_with_state(layer, around));
    match scrape {
        Some(scrape) => router.layer(Extension(scrape)),
        None => router,
    }
}

async fn around(State(layer): State<Arc<Layer>>, mut request: Request, next: Next) -> Response {
    let place = Place::find(&request, layer.sample);
    if let Some(place) = place {
        request.extensions_mut().insert(place);
    }
    let started = Instant::now();
    let about = layer.endpoints.as_ref().map(|endpoints| {
        (endpoints, request.method().clone(), request.extensions().get::<MatchedPath>().cloned())
    });
    let mut response = next.run(request).await;
    if let Some((endpoints, method, matched)) = about {
        let path = matched.as_ref().map_or("other", MatchedPath::as_str);
        endpoints.answered(&method, path, response.status().as_u16(), started.elapsed());
    }
    if let Some(value) = place.and_then(|place| HeaderValue::from_str(&place.own.to_string()).ok()) {
        response.headers_mut().insert(TRACEPARENT, value);
    }
    response
}
