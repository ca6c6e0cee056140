//! The load of `bench queue`: jobs of one task, and a handler that does nothing.

use super::Keys;
use super::load::Bench;
use crate::error::CliResult;
use orchestrator_core::{Json, Key, NewJob, Outcome, TaskSpec};
use orchestrator_worker::{Registry, handler_fn};
use std::path::Path;
use std::sync::Arc;

/// A JSON payload of about `size` bytes.
pub fn payload(size: u64) -> String {
    let head = r#"{"kind":"noop","data":""#;
    let fill = (size as usize).saturating_sub(head.len() + 2);
    format!("{head}{}\"}}", "x".repeat(fill))
}

/// Opens a file for such jobs.
pub fn open(path: &Path, payload_size: u64, keys: Keys) -> CliResult<Bench> {
    let noop = handler_fn(|_| async { Outcome::Completed(Json::null()) });
    let spec = Arc::new(TaskSpec::new("noop"));
    let payload = Json::trusted(payload(payload_size));
    let make = move |n: u64| {
        let job = NewJob::with_spec(spec.clone()).payload(payload.clone());
        match keys {
            Keys::None => job,
            Keys::Sequential => job.key(Key::new(format!("document-{n:012}"))),
            // An odd factor visits every number once, in no order that an index would like.
            Keys::Random => job.key(Key::new(format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))),
        }
    };
    Bench::open(path, Registry::new().with("noop", noop), Box::new(make))
}
