//! The inputs of the fuzz target for templates.

#[path = "../../../../fuzz/src/replay.rs"]
mod replay;
#[path = "../../../../fuzz/src/template.rs"]
mod template;

#[test]
fn what_the_fuzzer_keeps_is_answered() {
    replay::all("template", |input| {
        if let Ok(text) = str::from_utf8(input) {
            template::check(text);
        }
    });
}
