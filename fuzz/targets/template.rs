//! Templates and expressions.
#![no_main]

use orchestrator_fuzz::{stack, template};

libfuzzer_sys::fuzz_target!(init: stack::guard(), |bytes: &[u8]| {
    if let Ok(text) = str::from_utf8(bytes) {
        template::check(text);
    }
});
