//! One trace from the submit to the last task, over processes; and a collector that is dead disturbs nobody.

use super::server::Server;
use crate::support::Place;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use rustix::process::Signal;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// What was sent to the collector, and what the service that tasks call was told.
#[derive(Default)]
struct Received {
    spans: Mutex<Vec<(String, Span)>>,
    parents: Mutex<Vec<String>>,
}

/// A collector that is also a service.
struct Collector {
    received: Arc<Received>,
    address: String,
    _runtime: Runtime,
}

impl Collector {
    fn start() -> Collector {
        let runtime = Runtime::new().unwrap();
        let received = Arc::new(Received::default());
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/service", post(service))
            .with_state(received.clone());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        runtime.spawn(async move { axum::serve(listener, router).await });
        Collector { received, address, _runtime: runtime }
    }
}

async fn traces(State(received): State<Arc<Received>>, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    for resource in request.resource_spans {
        let service =
            resource.resource.unwrap().attributes.into_iter().find(|each| each.key == "service.name");
        let service = format!("{:?}", service.unwrap().value);
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        received.spans.lock().unwrap().extend(spans.map(|span| (service.clone(), span)));
    }
}

async fn service(State(received): State<Arc<Received>>, headers: HeaderMap) -> &'static str {
    let parent = headers["traceparent"].to_str().unwrap().to_owned();
    received.parents.lock().unwrap().push(parent);
    "{}"
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn one_trace_from_the_submit_to_the_last_task() {
    let collector = Collector::start();
    let place = Place::new();
    let flow = json!({ "flow": "chain", "tasks": {
        "one": { "handler": "sleep", "with": { "for": "1ms" } },
        "two": { "handler": "http", "needs": ["one"], "with": { "url": format!("http://{}/service", collector.address), "json": {} } },
        "three": { "handler": "sleep", "needs": ["two"], "with": { "for": "1ms" } },
    } });
    place.write("chain.json", &flow.to_string());
    place.expect(0, &["flows", "apply", "chain.json"]);
    let config = format!(
        "[server]\nmetrics_listen = \"\"\n[traces]\nendpoint = \"http://{}\"\nservice = \"orders\"\n",
        collector.address
    );
    let mut server = Server::start(&place, &config, &[]);
    let url = format!("http://{}", server.address);
    let mut worker = place.start_as("worker", &["worker", "--server", &url]);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let caller = format!("00-{trace}-b7ad6b7169203331-01");
    let answer = server.post("/jobs?wait=2m", &[("traceparent", &caller)], &json!({ "flow": "chain" }));
    assert_eq!((answer.status, &answer.json()["state"]), (200, &"completed".into()), "{answer:?}");
    let told = answer.header("traceparent").unwrap().to_owned();
    assert!(told.starts_with(&format!("00-{trace}-")) && told != caller, "{told}");

    worker.signal(Signal::TERM);
    assert_eq!(worker.end().code(), Some(0), "{}", worker.log());
    server.stop();
    let spans = collector.received.spans.lock().unwrap();
    assert!(spans.iter().all(|(service, _)| service.contains("orders")), "{spans:?}");
    let ours: Vec<&Span> =
        spans.iter().map(|(_, span)| span).filter(|span| hex(&span.trace_id) == trace).collect();
    let names: Vec<&str> = ours.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(ours.len(), 4, "{names:?}");
    let find = |name: &str| {
        *ours.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {names:?}"))
    };
    let submit = find("POST /jobs");
    assert_eq!(hex(&submit.parent_span_id), "b7ad6b7169203331");
    assert!(told.contains(&hex(&submit.span_id)), "{told}");
    for name in ["one", "two", "three"] {
        let task = find(name);
        assert_eq!(task.parent_span_id, submit.span_id, "{name}");
        assert!(
            task.start_time_unix_nano >= submit.start_time_unix_nano
                && task.end_time_unix_nano >= task.start_time_unix_nano
        );
    }
    let sent_on = format!("00-{trace}-{}-01", hex(&find("two").span_id));
    assert_eq!(
        *collector.received.parents.lock().unwrap(),
        [sent_on],
        "the service is a child of its attempt"
    );
}

#[test]
fn a_dead_collector_disturbs_nobody() {
    let place = Place::new();
    let config = "[server]\nmetrics_listen = \"\"\n[traces]\nendpoint = \"http://127.0.0.1:1\"\n";
    let mut server = Server::start(&place, config, &["--workers"]);
    let job = server.run(&[], &json!({ "handler": "sleep", "payload": { "for": "1ms" } }));
    assert_eq!(job["state"], "completed");
    assert!(job["meta"]["traceparent"].is_string(), "a trace began: {job}");
    server.stop();
}
