//! `command` with real programs: what goes in, what comes out, what exit codes mean.

use super::{assert_refused, completed, failed, plain, work};
use orchestrator_core::{ErrorClass, Json, Millis, Outcome};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

async fn run(payload: Value) -> Outcome {
    plain("command").run(work(payload)).await
}

async fn sh(script: &str) -> Outcome {
    run(json!({"run": ["sh", "-c", script]})).await
}

#[tokio::test]
async fn a_program_reads_its_task_as_json() {
    let mut job = work(json!({"run": ["cat"], "input": {"n": 1}}));
    job.leased.key = Some("doi:10.1/x".into());
    job.leased.counters.attempt = 4;
    job.leased.checkpoint = Some(json!({"at": 2}).into());
    let task = job.leased.task.to_string();
    let output = completed(plain("command").run(job).await);
    assert_eq!(
        output.value(),
        json!({"task": task, "attempt": 4, "key": "doi:10.1/x", "input": {"n": 1}, "checkpoint": {"at": 2}})
    );
    let bare = completed(run(json!({"run": ["cat"]})).await).value();
    assert_eq!((&bare["input"], &bare["key"]), (&json!({}), &json!(null)));
}

#[tokio::test]
async fn other_input_is_passed_on_to_the_letter() {
    let mut job = work(json!(null));
    job.leased.payload = Json::parse(r#"{"run": ["cat"], "stdin": [1.50, {"b":1,"a":2}]}"#).unwrap();
    assert_eq!(completed(plain("command").run(job).await).as_str(), r#"[1.50, {"b":1,"a":2}]"#);
}

#[tokio::test]
async fn a_program_finds_its_task_in_its_environment() {
    let script = r#"printf '["%s","%s","%s","%s"]' "$ORCHESTRATOR_TASK" "$ORCHESTRATOR_ATTEMPT" "$ORCHESTRATOR_KEY" "$COLOUR""#;
    let env = json!({"COLOUR": "blue", "ORCHESTRATOR_ATTEMPT": "forged"});
    let mut job = work(json!({"run": ["sh", "-c", script], "env": env}));
    job.leased.key = Some("k".into());
    let task = job.leased.task.to_string();
    assert_eq!(completed(plain("command").run(job).await).value(), json!([task, "1", "k", "blue"]));
}

#[tokio::test]
async fn a_program_finds_the_trace_of_its_job() {
    let script = r#"printf '["%s","%s"]' "$TRACEPARENT" "$ORCHESTRATOR_CORRELATION_ID""#;
    let mut job = work(json!({"run": ["sh", "-c", script]}));
    let meta = Arc::make_mut(&mut job.leased.meta);
    (meta.traceparent, meta.correlation_id) = (Some("00-1-2-01".into()), Some("order-7".into()));
    assert_eq!(completed(plain("command").run(job).await).value(), json!(["00-1-2-01", "order-7"]));
}

#[tokio::test]
async fn a_program_runs_where_it_should() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    let output =
        completed(run(json!({"run": ["sh", "-c", "printf '\"%s\"' \"$(pwd -P)\""], "cwd": here})).await);
    assert_eq!(output.value(), json!(here));
    let failure = failed(run(json!({"run": ["true"], "cwd": here.join("nowhere")})).await);
    assert_eq!(failure.class, ErrorClass::Permanent);
    assert!(failure.message.contains("nowhere is not a directory"), "{failure}");
}

#[tokio::test]
async fn exit_codes_say_what_came_of_it() {
    assert_eq!(sh("exit 0").await, Outcome::Completed(Json::null()));
    assert_eq!(sh("echo '  '").await, Outcome::Completed(Json::null()));
    assert_eq!(completed(sh("echo '{\"a\": 1}'").await).as_str(), r#"{"a": 1}"#);
    assert_eq!(sh("echo '\"seen\"'; exit 3").await, Outcome::Skipped(json!("seen").into()));

    let retryable = failed(sh("echo busy >&2; echo '{\"retry_after\": \"30s\"}'; exit 75").await);
    assert_eq!((retryable.class, retryable.retry_after), (ErrorClass::Transient, Some(Millis::secs(30))));
    assert!(retryable.message.contains("sh ended with exit code 75: busy"), "{retryable}");
    for stdout in ["", "not json", "{\"retry_after\": \"soon\"}", "[]"] {
        let failure = failed(sh(&format!("echo '{stdout}'; exit 75")).await);
        assert_eq!((failure.class, failure.retry_after), (ErrorClass::Transient, None), "{stdout}");
    }

    let last = failed(sh("echo 'not json'; echo no such paper >&2; exit 1").await);
    assert_eq!((last.class, last.retry_after), (ErrorClass::Permanent, None));
    assert_eq!(last.message, "sh ended with exit code 1: no such paper");
}

#[tokio::test]
async fn a_payload_can_give_exit_codes_other_meanings() {
    let exit = json!({"done": [0, 9], "skipped": [], "retryable": [1]});
    for (code, expected) in
        [(9, "completed"), (0, "completed"), (1, "transient"), (3, "permanent"), (75, "permanent")]
    {
        let outcome = run(json!({"run": ["sh", "-c", format!("exit {code}")], "exit": exit})).await;
        let found = match &outcome {
            Outcome::Completed(_) => "completed",
            Outcome::Failed(failure) => failure.class.as_str(),
            _ => "something else",
        };
        assert_eq!(found, expected, "exit {code}");
    }
}

#[tokio::test]
async fn output_that_is_not_json_is_a_defect() {
    for script in ["echo hello there", "echo '{\"a\": 1} trailing'", "printf '\\377\\376'"] {
        let failure = failed(sh(script).await);
        assert_eq!(failure.class, ErrorClass::Defect, "{script}: {failure}");
    }
    let words = failed(sh("echo hello there").await).message;
    assert!(words.starts_with("sh wrote something that is not one JSON document (expected value"), "{words}");
    assert!(words.contains("\"parse\": \"text\"") && words.ends_with("): hello there"), "{words}");
    let bytes = failed(sh("printf 'a\\033[31m\\377z'").await).message;
    assert!(bytes.contains("byte 7 is not UTF-8") && bytes.ends_with(": a\u{fffd}[31m\u{fffd}z"), "{bytes}");
    let long = failed(sh("head -c 9000 /dev/zero | tr '\\0' x").await);
    assert!(long.message.len() < 400, "{long}");
}

#[tokio::test]
async fn any_output_is_a_result_where_text_was_asked_for() {
    let text = |script: &str| run(json!({"run": ["sh", "-c", script], "parse": "text"}));
    for (script, stdout) in [
        ("echo hello there", "hello there"),
        ("printf '  two\\nlines\\r\\n\\n'", "  two\nlines"),
        ("echo '{\"a\": 1}'", "{\"a\": 1}"),
        ("printf 'a\\377z'", "a\u{fffd}z"),
        ("true", ""),
    ] {
        let output = completed(text(script).await).value();
        assert_eq!(output, json!({"stdout": stdout, "exit": 0}), "{script}");
    }
    let skipped = Outcome::Skipped(json!({"exit": 3, "stdout": "seen"}).into());
    assert_eq!(text("echo seen; exit 3").await, skipped);
    assert_eq!(failed(text("echo no; exit 1").await).class, ErrorClass::Permanent);
    let as_json = run(json!({"run": ["echo", "[1, 2]"], "parse": "json"})).await;
    assert_eq!(completed(as_json).as_str(), "[1, 2]");
}

#[tokio::test]
async fn only_the_end_of_the_errors_is_kept() {
    let failure = failed(sh("head -c 100000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1").await);
    assert!(failure.message.ends_with("xxthe end"), "{failure}");
    assert!(failure.message.len() < 2200, "{}", failure.message.len());
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let input = "x".repeat(1 << 20);
    assert_eq!(run(json!({"run": ["true"], "input": input})).await, Outcome::Completed(Json::null()));
}

#[tokio::test]
async fn large_input_and_output_do_not_block_each_other() {
    let input = "x".repeat(500_000);
    let payload = json!({"run": ["sh", "-c", "tee /dev/stderr | head -c 0; cat >/dev/null"], "stdin": input});
    assert_eq!(run(payload).await, Outcome::Completed(Json::null()));
}

#[tokio::test]
async fn death_by_a_signal_may_pass() {
    let failure = failed(sh("echo out of memory >&2; kill -9 $$").await);
    assert_eq!(failure.class, ErrorClass::Transient);
    assert!(failure.message.contains("SIGKILL") && failure.message.contains("out of memory"), "{failure}");
}

#[tokio::test]
async fn what_cannot_be_run_fails_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("program");
    std::fs::write(&file, b"\x00\x01 no program").unwrap();
    let missing = failed(run(json!({"run": ["no-such-program-here"]})).await);
    assert_eq!(missing.class, ErrorClass::Permanent);
    assert!(missing.message.contains("no program \"no-such-program-here\""), "{missing}");
    let denied = failed(run(json!({"run": [file]})).await);
    assert_eq!(denied.class, ErrorClass::Permanent);
    assert!(denied.message.contains("cannot be run"), "{denied}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let nonsense = failed(run(json!({"run": [file]})).await);
    assert_eq!(nonsense.class, ErrorClass::Permanent, "{nonsense}");
}

#[tokio::test]
async fn bad_payloads_are_refused() {
    assert_refused(
        &*plain("command"),
        vec![
            (json!(null), &["payload"]),
            (json!({}), &["payload.run"]),
            (json!({"run": "ls -l"}), &["payload.run"]),
            (json!({"run": []}), &["payload.run"]),
            (json!({"run": [""]}), &["payload.run"]),
            (json!({"run": ["ls", "a\0b"]}), &["payload.run"]),
            (json!({"run": ["ls"], "input": 1, "stdin": 2}), &["payload.stdin"]),
            (json!({"run": ["ls"], "env": {"A=B": "x"}}), &["payload.env"]),
            (json!({"run": ["ls"], "env": {"A": 1}}), &["payload.env"]),
            (json!({"run": ["ls"], "cwd": ""}), &["payload.cwd"]),
            (json!({"run": ["ls"], "timeout": 0}), &["payload.timeout"]),
            (json!({"run": ["ls"], "parse": "yaml"}), &["payload.parse"]),
            (json!({"run": ["ls"], "exit": [0]}), &["payload.exit"]),
            (json!({"run": ["ls"], "exit": {"done": [256]}}), &["payload.exit.done"]),
            (json!({"run": ["ls"], "exit": {"fine": [1]}}), &["payload.exit.fine"]),
            (json!({"run": ["ls"], "exit": {"done": [0, 3]}}), &["payload.exit"]),
            (
                json!({"run": 1, "timeout": "x", "shell": true}),
                &["payload.run", "payload.timeout", "payload.shell"],
            ),
        ],
    )
    .await;
}
