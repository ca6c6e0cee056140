//! The built-in handlers against real programs, real servers and real files.
#![cfg(feature = "builtin")]

mod command;
mod command_kill;
mod download;
mod download_files;
mod http;
mod plain;
mod server;

use orchestrator_core::{Counters, Failure, JobId, Json, Limits, Outcome, TaskId, TaskSpec, Timestamp};
use orchestrator_store::{Leased, ManualClock};
use orchestrator_worker::builtin::{BuiltinConfig, registry};
use orchestrator_worker::{Handler, Work};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Sun, 06 Nov 1994 08:49:37 GMT: the day of every HTTP date in the books.
const NOW: Timestamp = Timestamp::from_millis(784_111_777_000);

fn config(dir: &Path) -> BuiltinConfig {
    BuiltinConfig {
        download_dir: dir.to_owned(),
        max_download: 100_000,
        max_output: 10_000,
        clock: Arc::new(ManualClock::new(NOW)),
        ..BuiltinConfig::default()
    }
}

fn handler(name: &str, config: BuiltinConfig) -> Arc<dyn Handler> {
    registry(config).get(name).expect("a built-in").clone()
}

/// The handler with defaults, for those that need no directory.
fn plain(name: &str) -> Arc<dyn Handler> {
    handler(name, config(Path::new("nowhere")))
}

fn work(payload: Value) -> Work {
    let task = TaskId::only(JobId::from_parts(NOW, 7));
    Work {
        leased: Leased {
            task,
            name: "main".into(),
            flow: None,
            counters: Counters { attempt: 1, ..Counters::default() },
            spec: Arc::new(TaskSpec::new("test")),
            tenant: "default".into(),
            key: None,
            payload: payload.into(),
            checkpoint: None,
            limits: Limits::none(),
            meta: Default::default(),
            expires: Timestamp::FAR,
            times_out: None,
        },
        cancelled: CancellationToken::new(),
    }
}

fn completed(outcome: Outcome) -> Json {
    match outcome {
        Outcome::Completed(output) => output,
        other => panic!("not completed: {other:?}"),
    }
}

fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("not failed: {other:?}"),
    }
}

/// Each payload is refused at submit with exactly these fields, and for good when it runs.
async fn assert_refused(handler: &dyn Handler, bad: Vec<(Value, &[&str])>) {
    for (payload, fields) in bad {
        let found = handler.check(&payload.clone().into());
        let named: Vec<_> = found.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(named, fields, "{payload}: {found:?}");
        let failure = failed(handler.run(work(payload)).await);
        assert!(!failure.class.is_retryable(), "{failure}");
        assert!(failure.message.contains(fields[0]), "{failure}");
    }
}
