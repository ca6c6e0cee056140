//! Traces: spans of ours that have a place in one are sent to a collector, by OTLP over HTTP.
//!
//! Requests and attempts know their place in a trace themselves (`trace_id`, `span_id`, `parent_id`), because a trace runs
//! through the store and over processes. So nothing is left to do here but to hand them on when they close. That goes
//! through a bounded queue and a thread of its own: a collector that is slow or dead costs spans, never time.

use super::spans::Gathered;
use crate::config::TracesConfig;
use crate::output::Output;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId, TraceId};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing::span::Id;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The variable in which OpenTelemetry's own programs look for the collector.
const STANDARD: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// How long the collector may take for a batch.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of the program waits for the last batch.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// What places a span in its trace, and is no attribute of it.
const PLACE: [&str; 3] = ["trace_id", "span_id", "parent_id"];

static SENDING: OnceLock<Arc<BatchSpanProcessor>> = OnceLock::new();

/// Whether traces are kept.
pub fn are_kept() -> bool {
    SENDING.get().is_some()
}

/// Starts to send traces, if there is somewhere to send them; to be called inside a Tokio runtime.
pub fn start(config: &TracesConfig, out: Output) -> Option<Traces> {
    let standard = || std::env::var(STANDARD).ok().filter(|text| !text.trim().is_empty());
    let endpoint = Some(config.endpoint.clone()).filter(|text| !text.is_empty()).or_else(standard)?;
    let endpoint = format!("{}/v1/traces", endpoint.trim().trim_end_matches('/'));
    let exporter = Sender::new().and_then(|sender| {
        let exporter = SpanExporter::builder().with_http().with_http_client(sender);
        let exporter = exporter.with_endpoint(endpoint).with_protocol(Protocol::HttpBinary);
        Ok(exporter.with_timeout(PATIENCE).build()?)
    });
    let exporter = match exporter {
        Ok(exporter) => exporter,
        Err(error) => {
            out.note(format!("no traces are sent: {error}"));
            return None;
        }
    };
    let resource = Resource::builder()
        .with_service_name(config.service.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let mut processor = BatchSpanProcessor::builder(exporter).build();
    processor.set_resource(&resource.build());
    let processor = Arc::new(processor);
    SENDING.set(processor.clone()).ok()?;
    Some(Traces { processor, scope: InstrumentationScope::builder("orchestrator").build() })
}

/// Sends what is still to be sent, or gives up soon.
pub async fn finish() {
    let Some(processor) = SENDING.get().cloned() else { return };
    let last = tokio::task::spawn_blocking(move || processor.shutdown_with_timeout(LAST_WORDS));
    if let Ok(Err(error)) = last.await {
        tracing::warn!(%error, "the last spans of traces may be lost");
    }
}

/// Hands spans on when they close.
pub struct Traces {
    processor: Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Traces {
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let gathered = span.extensions_mut().remove::<Gathered>();
        if let Some(data) = gathered.and_then(|gathered| self.data(span.name(), gathered)) {
            self.processor.on_end(data);
        }
    }
}

impl Traces {
    /// The span as it is sent; none where it has no place in a trace that is kept.
    fn data(&self, name: &'static str, Gathered { fields, since }: Gathered) -> Option<SpanData> {
        let id = |field: &str| fields.get(field).and_then(Value::as_str);
        let trace = TraceId::from_hex(id("trace_id")?).ok()?;
        let own = SpanId::from_hex(id("span_id")?).ok()?;
        let parent = id("parent_id").and_then(|text| SpanId::from_hex(text).ok());
        let (kind, name, status) = match name {
            "request" => (SpanKind::Server, request_name(&fields), request_status(&fields)),
            _ => (SpanKind::Consumer, attempt_name(&fields), attempt_status(&fields)),
        };
        Some(SpanData {
            span_context: SpanContext::new(trace, own, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: parent.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: parent.is_some(),
            span_kind: kind,
            name: name.into(),
            start_time: since,
            end_time: SystemTime::now(),
            attributes: attributes(&fields),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: self.scope.clone(),
        })
    }
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn request_name(fields: &Map<String, Value>) -> String {
    format!("{} {}", text(fields, "method"), text(fields, "route")).trim_end().to_owned()
}

fn request_status(fields: &Map<String, Value>) -> Status {
    match fields.get("status").and_then(Value::as_u64) {
        Some(500..) => Status::error("the server could not answer"),
        _ => Status::Unset,
    }
}

/// Without the number of an item: names of spans are few.
fn attempt_name(fields: &Map<String, Value>) -> String {
    text(fields, "task").split('[').next().unwrap_or_default().to_owned()
}

fn attempt_status(fields: &Map<String, Value>) -> Status {
    match text(fields, "outcome") {
        "completed" | "skipped" | "continued" | "released" => Status::Ok,
        other => Status::error(other.to_owned()),
    }
}

fn attributes(fields: &Map<String, Value>) -> Vec<KeyValue> {
    let named = fields.iter().filter(|(name, _)| !PLACE.contains(&name.as_str()));
    let attribute = |(name, value): (&String, &Value)| {
        let key = match name.as_str() {
            "method" => "http.request.method".to_owned(),
            "route" => "http.route".to_owned(),
            "path" => "url.path".to_owned(),
            "status" => "http.response.status_code".to_owned(),
            other => format!("orchestrator.{other}"),
        };
        match value {
            Value::String(text) => KeyValue::new(key, text.clone()),
            other => KeyValue::new(key, other.as_i64().unwrap_or_default()),
        }
    };
    named.map(attribute).collect()
}

/// Sends batches with the client that the rest of the program uses. Batches are made on a thread outside of the runtime,
/// which the client needs.
#[derive(Debug)]
struct Sender {
    runtime: Handle,
    http: reqwest::Client,
}

impl Sender {
    fn new() -> Result<Self, HttpError> {
        // Somebody may have chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Sender { runtime: Handle::try_current()?, http: reqwest::Client::builder().build()? })
    }
}

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let call = self.http.request(parts.method, parts.uri.to_string());
        let call = call.headers(parts.headers).body(body).timeout(PATIENCE);
        let sent = self.runtime.spawn(async move {
            let answer = call.send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        });
        let (status, body) = sent.await??;
        Ok(Response::builder().status(status).body(body)?)
    }
}
