//! Lines of `queue import`.
#![no_main]

use orchestrator_cli::fuzzing;
use orchestrator_fuzz::stack;

libfuzzer_sys::fuzz_target!(init: stack::guard(), |bytes: &[u8]| fuzzing::jsonl(bytes));
