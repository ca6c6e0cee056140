//! The inputs of the fuzz targets for what this program reads itself.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use orchestrator_cli::fuzzing;
use orchestrator_flowfile::{FlowFile, Format};

#[test]
fn what_the_fuzzer_keeps_as_lines_is_answered() {
    replay::all("jsonl", fuzzing::jsonl);
}

#[test]
fn what_the_fuzzer_keeps_as_settings_is_answered() {
    replay::all("config", |input| {
        if let Ok(text) = str::from_utf8(input) {
            fuzzing::config(text);
        }
    });
}

#[test]
fn what_the_fuzzer_keeps_as_flows_can_be_drawn() {
    replay::all("flow", |input| {
        let Ok(text) = str::from_utf8(input) else { return };
        for format in [Format::Yaml, Format::Json, Format::Toml] {
            if let Ok(plan) = FlowFile::from_text("flow", text, format).and_then(|file| file.plan()) {
                fuzzing::drawings(&plan);
            }
        }
    });
}
