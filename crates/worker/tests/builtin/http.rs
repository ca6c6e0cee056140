//! `http` against a real server.

use super::server::{Reply, Server};
use super::{assert_refused, completed, config, failed, handler, plain, work};
use orchestrator_core::{ErrorClass, Failure, Millis, Outcome};
use orchestrator_worker::builtin::BuiltinConfig;
use serde_json::{Value, json};
use std::path::Path;

async fn call(payload: Value) -> Outcome {
    plain("http").run(work(payload)).await
}

async fn answer(reply: Reply) -> Outcome {
    let server = Server::start(move |_| reply.clone()).await;
    call(json!({"url": server.url("/x")})).await
}

async fn refusal(reply: Reply) -> Failure {
    failed(answer(reply).await)
}

#[tokio::test]
async fn a_get_tells_who_asks() {
    let server = Server::start(|_| Reply::ok(r#"{"n": 1.50, "list": [1]}"#)).await;
    let output = completed(call(json!({"url": server.url("/a?b=c")})).await);
    assert_eq!(output.as_str(), r#"{"status":200,"body":{"n": 1.50, "list": [1]}}"#);
    let request = &server.seen()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/a?b=c"));
    assert_eq!(request.headers["idempotency-key"], work(json!(null)).leased.task.to_string());
    assert_eq!(request.headers["x-orchestrator-attempt"], "1");
    assert!(request.headers["user-agent"].starts_with("orchestrator/"));
}

#[tokio::test]
async fn json_is_posted_as_it_is() {
    let server = Server::start(|_| Reply::new(201, &[], "")).await;
    let mut job = work(json!(null));
    job.leased.payload = orchestrator_core::Json::parse(format!(
        r#"{{"url": "{}", "json": {{"big": 123456789012345678901234567890}}, "headers": {{"X-Team": "blue", "idempotency-key": "mine"}}}}"#,
        server.url("/")
    ))
    .unwrap();
    let output = completed(plain("http").run(job).await);
    assert_eq!(output.as_str(), r#"{"status":201,"body":null}"#);
    let request = &server.seen()[0];
    assert_eq!(request.method, "POST");
    assert_eq!(request.body, r#"{"big": 123456789012345678901234567890}"#);
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["x-team"], "blue");
    assert_eq!(request.headers["idempotency-key"], "mine", "the payload's word counts");
}

#[tokio::test]
async fn the_method_can_be_chosen() {
    let server = Server::start(|_| Reply::ok("1")).await;
    completed(call(json!({"url": server.url("/"), "method": "delete"})).await);
    completed(call(json!({"url": server.url("/"), "method": "PUT", "json": null})).await);
    let seen = server.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].body.as_str()), ("DELETE", ""));
    assert_eq!((seen[1].method.as_str(), seen[1].body.as_str()), ("PUT", "null"));
}

#[tokio::test]
async fn text_stays_text() {
    let output = completed(answer(Reply::ok("hello \"you\"")).await);
    assert_eq!(output.value(), json!({"status": 200, "body": "hello \"you\""}));
}

#[tokio::test]
async fn each_status_has_its_class() {
    for (status, class) in [
        (400, ErrorClass::Validation),
        (404, ErrorClass::NotFound),
        (408, ErrorClass::Timeout),
        (429, ErrorClass::RateLimited),
        (500, ErrorClass::Permanent),
        (502, ErrorClass::Unavailable),
        (503, ErrorClass::Unavailable),
        (304, ErrorClass::Permanent),
    ] {
        let failure = refusal(Reply::new(status, &[], "the reason")).await;
        assert_eq!(failure.class, class, "{failure}");
        assert_eq!(failure.retry_after, None);
        assert!(failure.message.contains(&status.to_string()), "{failure}");
    }
    let failure = refusal(Reply::new(422, &[], format!("too short {}", "x".repeat(5000)))).await;
    assert!(failure.message.contains("too short") && failure.message.len() < 1000, "{failure}");
}

#[tokio::test]
async fn retry_after_is_kept() {
    for (value, span) in [("120", Millis::secs(120)), ("Sun, 06 Nov 1994 08:50:37 GMT", Millis::mins(1))] {
        for status in [429, 503] {
            let failure = refusal(Reply::new(status, &[("retry-after", value)], "")).await;
            assert_eq!(failure.retry_after, Some(span), "{value}");
        }
    }
}

#[tokio::test]
async fn expected_statuses_replace_the_usual_ones() {
    let server = Server::start(|r| Reply::status(if r.path == "/gone" { 404 } else { 200 })).await;
    let output = completed(call(json!({"url": server.url("/gone"), "expect": [200, 404]})).await);
    assert_eq!(output.value()["status"], 404);
    let failure = failed(call(json!({"url": server.url("/"), "expect": [202]})).await);
    assert_eq!(failure.class, ErrorClass::Permanent, "{failure}");
    assert!(failure.message.contains("200"), "{failure}");
}

#[tokio::test]
async fn an_answer_beyond_the_cap_is_refused() {
    assert!(matches!(answer(Reply::ok("x".repeat(10_000))).await, Outcome::Completed(_)));
    let failure = refusal(Reply::ok("x".repeat(10_001))).await;
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("longer than 10000 bytes"), "{failure}");
}

#[tokio::test]
async fn no_answer_is_a_network_failure() {
    let refused = failed(call(json!({"url": Server::nobody().await})).await);
    assert_eq!(refused.class, ErrorClass::Network, "{refused}");
    assert!(refused.message.contains("refused"), "the cause is told: {refused}");
    let cut = refusal(Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")).await;
    assert_eq!(cut.class, ErrorClass::Network, "{cut}");
    let nonsense = refusal(Reply::raw("220 mail.example ESMTP\r\n")).await;
    assert_eq!(nonsense.class, ErrorClass::Network, "{nonsense}");
}

#[tokio::test]
async fn https_to_a_plain_server_is_a_network_failure() {
    let server = Server::start(|_| Reply::raw("no handshake here\r\n")).await;
    let failure = failed(call(json!({"url": server.url("/").replace("http:", "https:")})).await);
    assert_eq!(failure.class, ErrorClass::Network, "{failure}");
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_timeout() {
    for bytes in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"] {
        let failure = refusal(Reply::hang(bytes)).await;
        assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
    }
    let server = Server::start(|_| Reply::hang("")).await;
    let before = tokio::time::Instant::now();
    let never = BuiltinConfig { connect_timeout: Millis::hours(2), ..config(Path::new("nowhere")) };
    let payload = json!({"url": server.url("/"), "timeout": "20m"});
    failed(handler("http", never).run(work(payload)).await);
    assert_eq!(before.elapsed().as_secs() / 60, 20, "by the paused clock");
}

#[tokio::test]
async fn a_cancelled_call_is_given_back() {
    let server = Server::start(|_| Reply::hang("")).await;
    let job = work(json!({"url": server.url("/")}));
    let cancelled = job.cancelled.clone();
    let running = tokio::spawn(async move { plain("http").run(job).await });
    server.answered().await;
    cancelled.cancel();
    assert_eq!(running.await.unwrap(), Outcome::Released);
}

#[tokio::test]
async fn redirects_are_followed_but_not_for_ever() {
    let server = Server::start(|r| match r.path.as_str() {
        "/old" => Reply::redirect("/new"),
        "/new" => Reply::ok("7"),
        "/ftp" => Reply::redirect("ftp://127.0.0.1/x"),
        _ => Reply::redirect("/round"),
    })
    .await;
    let output = completed(call(json!({"url": server.url("/old")})).await);
    assert_eq!(output.value()["body"], 7);
    let round = failed(call(json!({"url": server.url("/round")})).await);
    assert_eq!(round.class, ErrorClass::Permanent, "{round}");
    assert_eq!(server.paths().iter().filter(|path| *path == "/round").count(), 11);
    let ftp = failed(call(json!({"url": server.url("/ftp")})).await);
    assert!(!ftp.class.is_retryable(), "{ftp}");
}

#[tokio::test]
async fn a_message_keeps_no_secret_of_the_url() {
    let url = Server::nobody().await.replace("http://", "http://me:hunter2@") + "path?token=swordfish";
    let failure = failed(call(json!({"url": url})).await);
    assert!(failure.message.contains("/path"), "{failure}");
    assert!(!failure.message.contains("hunter2") && !failure.message.contains("swordfish"), "{failure}");
}

#[tokio::test]
async fn bad_payloads_are_refused() {
    let url = "http://example.org/";
    assert_refused(
        &*plain("http"),
        vec![
            (json!(null), &["payload"]),
            (json!({}), &["payload.url"]),
            (json!({"url": 7}), &["payload.url"]),
            (json!({"url": "example.org"}), &["payload.url"]),
            (json!({"url": "ftp://example.org/"}), &["payload.url"]),
            (json!({"url": url, "method": "NOT OK"}), &["payload.method"]),
            (json!({"url": url, "headers": {"a b": "x"}}), &["payload.headers"]),
            (json!({"url": url, "headers": {"a": "x\ny"}}), &["payload.headers"]),
            (json!({"url": url, "headers": {"a": 1}}), &["payload.headers"]),
            (json!({"url": url, "timeout": "0s"}), &["payload.timeout"]),
            (json!({"url": url, "expect": []}), &["payload.expect"]),
            (json!({"url": url, "expect": [20]}), &["payload.expect"]),
            (
                json!({"url": "", "timeout": "x", "body": 1}),
                &["payload.url", "payload.timeout", "payload.body"],
            ),
        ],
    )
    .await;
}

/// Runs the next test in a process that finds no certificates.
#[test]
fn plain_http_needs_no_certificates() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "http::without_certificates"])
        .env("SSL_CERT_FILE", "/dev/null")
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "started by plain_http_needs_no_certificates"]
async fn without_certificates() {
    completed(answer(Reply::ok("1")).await);
}
