//! The inputs of the fuzz target for flow files.

#[path = "../../../../fuzz/src/flow.rs"]
mod flow;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn what_the_fuzzer_keeps_is_answered() {
    replay::all("flow", |input| {
        if let Ok(text) = str::from_utf8(input) {
            flow::check(text);
        }
    });
}
