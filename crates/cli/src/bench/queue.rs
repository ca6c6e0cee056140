//! The load of `bench queue`: jobs of one task, and a handler that does nothing.

use super::Keys;
use super::load::{Bench, MakeJob, failed};
use super::place::Place;
use crate::error::CliResult;
use orchestrator_core::{Json, Key, LimitKey, Limits, NewJob, Outcome, TaskSpec};
use orchestrator_worker::{Registry, handler_fn};
use std::sync::Arc;

/// A JSON payload of about `size` bytes.
pub fn payload(size: u64) -> String {
    let head = r#"{"kind":"noop","data":""#;
    let fill = (size as usize).saturating_sub(head.len() + 2);
    format!("{head}{}\"}}", "x".repeat(fill))
}

/// Opens a store for such jobs.
pub async fn open(place: &Place, name: &str, payload_size: u64, keys: Keys) -> CliResult<Bench> {
    let (handlers, make) = load(payload_size, keys);
    Bench::open(place, name, handlers, make).await
}

/// The handler, and what makes the jobs.
pub fn load(payload_size: u64, keys: Keys) -> (Registry, MakeJob) {
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
    (Registry::new().with("noop", noop), Box::new(make))
}

/// Opens a store for jobs of two limit keys each: one of so many hosts, and one of ten resolvers.
pub async fn open_limited(place: &Place, name: &str, payload_size: u64, hosts: u64) -> CliResult<Bench> {
    let noop = handler_fn(|_| async { Outcome::Completed(Json::null()) });
    let spec = Arc::new(TaskSpec::new("noop"));
    let payload = Json::trusted(payload(payload_size));
    let key = |kind: &str, name: String| LimitKey::new(kind, &name).map_err(failed);
    let mut sets = vec![];
    for n in 0..hosts {
        let keys = [key("host", format!("host-{n}.example"))?, key("resolver", format!("r{}", n % 10))?];
        sets.push(Limits::new(keys).map_err(failed)?);
    }
    let make = move |n: u64| {
        let limits = sets[(n % hosts) as usize].clone();
        NewJob::with_spec(spec.clone()).payload(payload.clone()).limits(limits)
    };
    Bench::open(place, name, Registry::new().with("noop", noop), Box::new(make)).await
}
