//! Flow files in YAML, JSON and TOML, up to the end of a job.
#![no_main]

use orchestrator_cli::fuzzing;
use orchestrator_fuzz::{flow, stack};

libfuzzer_sys::fuzz_target!(init: stack::guard(), |bytes: &[u8]| {
    if let Some(plan) = str::from_utf8(bytes).ok().and_then(flow::check) {
        fuzzing::drawings(&plan);
    }
});
