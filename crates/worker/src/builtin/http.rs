//! `http`: asks any JSON service.
//!
//! ```json
//! {"url": "https://labels.example/api", "method": "POST", "headers": {"x-team": "blue"},
//!  "json": {"file": "a.pdf"}, "timeout": "30s", "expect": [200, 202]}
//! ```
//!
//! Only `url` is required; the method is POST where there is `json`, else GET. A success (2xx, or
//! what `expect` lists) completes with `{"status": 200, "body": ...}`, the body as JSON where it is
//! JSON, else as text. Other answers fail with the class of their status, keep `Retry-After`, and
//! show the first bytes of their body. Up to ten redirects are followed, on http and https only.
//!
//! Every request carries `Idempotency-Key`, the task's id, which stays the same over attempts, and
//! `X-Orchestrator-Attempt`; where the job belongs to a trace or to other work, also `traceparent` and `X-Correlation-Id`. A
//! header of the payload replaces one of ours.

use super::BuiltinConfig;
use super::client::{LazyClient, failure_of, retry_after, shown, told, web_url};
use super::fields::{Fields, ROOT, refused};
use super::host::host_of;
use crate::handler::{Handler, Work};
use async_trait::async_trait;
use orchestrator_core::{BadLimit, ErrorClass, Failure, FieldError, Json, LimitKey, Limits, Millis, Outcome};
use orchestrator_store::clock::Clock;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

const MAX_REDIRECTS: usize = 10;
/// How much of an unwelcome answer a message shows.
const SHOWN_BODY: usize = 500;

pub(super) struct Http {
    client: LazyClient,
    timeout: Millis,
    max_output: usize,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct Call {
    url: Url,
    method: Method,
    headers: HeaderMap,
    json: Option<Json>,
    timeout: Option<Millis>,
    expect: Option<Vec<u16>>,
}

#[derive(Serialize)]
struct Answer {
    status: u16,
    body: Json,
}

impl Call {
    fn parse(payload: &Json) -> Result<Call, Vec<FieldError>> {
        let mut fields = Fields::open(ROOT, payload);
        let url = fields.required::<String>("url").and_then(|text| match web_url(&text) {
            Ok(url) => Some(url),
            Err(problem) => {
                fields.problem("url", problem);
                None
            }
        });
        let json = fields.raw("json");
        let method = match fields.optional::<String>("method") {
            Some(name) => Method::from_bytes(name.to_ascii_uppercase().as_bytes()).unwrap_or_else(|_| {
                fields.problem("method", "is not an HTTP method");
                Method::GET
            }),
            None if json.is_some() => Method::POST,
            None => Method::GET,
        };
        let headers = headers(&mut fields);
        let timeout = fields.optional::<Millis>("timeout");
        if timeout == Some(Millis(0)) {
            fields.problem("timeout", "must be longer than zero");
        }
        let expect = fields.optional::<Vec<u16>>("expect");
        if expect.as_ref().is_some_and(|list| list.is_empty() || !list.iter().all(|s| (200..600).contains(s)))
        {
            fields.problem("expect", "must list at least one status, each from 200 to 599");
        }
        fields.finish(url.map(|url| Call { url, method, headers, json, timeout, expect }))
    }

    fn is_welcome(&self, status: StatusCode) -> bool {
        match &self.expect {
            Some(list) => list.contains(&status.as_u16()),
            None => status.is_success(),
        }
    }
}

fn headers(fields: &mut Fields) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.optional::<BTreeMap<String, String>>("headers").unwrap_or_default() {
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value)) {
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            (Err(_), _) => fields.problem("headers", format!("{name:?} is not a header name")),
            // The value may be a secret.
            (_, Err(_)) => fields.problem("headers", format!("the value of {name:?} is not a header value")),
        }
    }
    headers
}

impl Http {
    pub fn new(config: &BuiltinConfig) -> Self {
        Http {
            client: LazyClient::new(config, MAX_REDIRECTS),
            timeout: config.http_timeout,
            max_output: config.max_output,
            clock: config.clock.clone(),
        }
    }

    async fn call(&self, work: &Work) -> Result<Json, Failure> {
        let call = Call::parse(&work.leased.payload).map_err(refused)?;
        let doing = format!("{} {}", call.method, shown(&call.url));
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("idempotency-key", work.leased.task.to_string()),
            ("x-orchestrator-attempt", work.leased.counters.attempt.to_string()),
        ] {
            headers.insert(name, HeaderValue::from_str(&value).expect("ids and numbers are header values"));
        }
        let meta = &work.leased.meta;
        for (name, word) in [("traceparent", &meta.traceparent), ("x-correlation-id", &meta.correlation_id)] {
            // A word may be of letters that no header may have; then it stays here.
            if let Some(value) = word.as_ref().and_then(|word| HeaderValue::from_str(word).ok()) {
                headers.insert(name, value);
            }
        }
        if call.json.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.extend(call.headers.clone());
        let mut request = self
            .client
            .get()?
            .request(call.method.clone(), call.url.clone())
            .headers(headers)
            .timeout(call.timeout.unwrap_or(self.timeout).into());
        if let Some(json) = &call.json {
            request = request.body(json.as_str().to_owned());
        }
        let response = request.send().await.map_err(|error| told(&doing, failure_of(error)))?;
        self.read(&call, response).await.map_err(|failure| told(&doing, failure))
    }

    async fn read(&self, call: &Call, mut response: Response) -> Result<Json, Failure> {
        let status = response.status();
        let after = retry_after(response.headers(), self.clock.now());
        let welcome = call.is_welcome(status);
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                // The status has said enough; its body would only have been shown.
                Err(_) if !welcome => break,
                Err(error) => return Err(failure_of(error)),
            }
            if !welcome && body.len() >= SHOWN_BODY {
                break;
            }
            if body.len() > self.max_output {
                return Err(Failure::permanent(format!(
                    "the answer is longer than {} bytes",
                    self.max_output
                )));
            }
        }
        if !welcome {
            let class = ErrorClass::of_http_status(status.as_u16());
            let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BODY)]);
            let mut failure = Failure::new(class, format!("answered {status}: {}", shown.trim()));
            failure.retry_after = after;
            return Err(failure);
        }
        Json::of(&Answer { status: status.as_u16(), body: json_or_text(&body) })
            .map_err(|error| Failure::new(ErrorClass::Defect, format!("cannot keep the answer: {error}")))
    }
}

fn json_or_text(body: &[u8]) -> Json {
    if body.is_empty() {
        return Json::null();
    }
    let text = String::from_utf8_lossy(body);
    Json::parse(text.trim()).unwrap_or_else(|_| serde_json::Value::from(text).into())
}

#[async_trait]
impl Handler for Http {
    async fn run(&self, work: Work) -> Outcome {
        match work.cancelled.run_until_cancelled(self.call(&work)).await {
            Some(Ok(answer)) => Outcome::Completed(answer),
            Some(Err(failure)) => Outcome::Failed(failure),
            None => Outcome::Released,
        }
    }

    fn check(&self, payload: &Json) -> Vec<FieldError> {
        Call::parse(payload).err().unwrap_or_default()
    }

    /// A call runs under the limit of its host.
    fn limits(&self, payload: &Json, named: Limits) -> Result<Limits, BadLimit> {
        let host = Call::parse(payload).ok().and_then(|call| host_of(&call.url));
        match host {
            Some(host) if named.keys().iter().all(|key| key.kind() != "host") => {
                let key = LimitKey::new("host", &host)?;
                Limits::new(named.keys().iter().cloned().chain([key]))
            }
            _ => Ok(named),
        }
    }
}
