//! Configuration files.
#![no_main]

use orchestrator_cli::fuzzing;
use orchestrator_fuzz::stack;

libfuzzer_sys::fuzz_target!(init: stack::guard(), |bytes: &[u8]| {
    if let Ok(text) = str::from_utf8(bytes) {
        fuzzing::config(text);
    }
});
