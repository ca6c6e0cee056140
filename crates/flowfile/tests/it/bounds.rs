//! A file cannot make us work or store more than it is worth.

use orchestrator_flowfile::{FlowFile, Format, MAX_DEPTH, MAX_FINDINGS, parse};
use serde_json::json;

fn error(text: &str, format: Format) -> String {
    parse(text, format).expect_err("an error").message
}

#[test]
fn depth_is_bounded_in_every_format() {
    let too_deep = "lists and maps stand more than 64 deep in each other";
    for format in [Format::Yaml, Format::Json] {
        let nest = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nest(MAX_DEPTH), format).is_ok());
        assert_eq!(error(&nest(MAX_DEPTH + 1), format), too_deep);
        assert!(parse(&nest(200_000), format).is_err());
    }
    let nest = |depth: usize| format!("x = {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nest(MAX_DEPTH - 1), Format::Toml).is_ok());
    assert_eq!(error(&nest(MAX_DEPTH), Format::Toml), too_deep);
    assert!(parse(&nest(200_000), Format::Toml).is_err());
    assert!(parse(&format!("{}x = 1", "a.".repeat(200_000)), Format::Toml).is_err());
    assert!(parse(&format!("[{}a]", "a.".repeat(200_000)), Format::Toml).is_err());
    assert_eq!(error(&"- ".repeat(200_000), Format::Yaml), too_deep);
    let stairs: String = (0..1_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert_eq!(error(&stairs, Format::Yaml), too_deep);
}

#[test]
fn aliases_are_copied_out_within_bounds() {
    let text = "a: &x { k: [1, 2] }\nb: *x\nc: &t text\nd: *t\n";
    let shared = json!({"k": [1, 2]});
    let expected = json!({"a": shared, "b": shared, "c": "text", "d": "text"});
    assert_eq!(parse(text, Format::Yaml).unwrap().to_value(), expected);
}

#[test]
fn aliases_cannot_explode() {
    let mut laughs = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n".to_owned();
    for n in 1..20 {
        let ten = vec![format!("*a{}", n - 1); 10].join(", ");
        laughs.push_str(&format!("a{n}: &a{n} [{ten}]\n"));
    }
    let too_much = "the anchors and aliases up to here copy too much; write the values out";
    assert_eq!(error(&laughs, Format::Yaml), too_much);
    let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(100_000), "*a, ".repeat(10_000));
    assert_eq!(error(&long, Format::Yaml), too_much);
    let mut deep = "a0: &a0 [x]\n".to_owned();
    for n in 1..=MAX_DEPTH {
        deep.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
    }
    assert_eq!(error(&deep, Format::Yaml), "lists and maps stand more than 64 deep in each other");
    assert_eq!(error("a: &x [*x]\n", Format::Yaml), "the alias stands within the value that it names");
}

#[test]
fn a_long_line_costs_no_more_than_short_ones() {
    // With a count of the columns from the start of the line for each value, this would take minutes.
    let items = vec!["\"é\""; 100_000].join(",");
    assert!(parse(&format!("[{items}]"), Format::Json).is_ok());
    assert!(parse(&format!("x = [{items}]"), Format::Toml).is_ok());
}

#[test]
fn a_file_full_of_mistakes_is_answered_with_the_first_ones() {
    let text: String = (0..10_000).map(|n| format!("key{n} = 1\n")).collect();
    let report = FlowFile::from_text("f.toml", &text, Format::Toml).unwrap_err();
    assert_eq!(report.findings().len(), MAX_FINDINGS + 1);
    let last = report.findings().last().unwrap().to_string();
    assert_eq!(last, "f.toml  and 9802 more, told once these are mended");
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.yaml");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let report = FlowFile::load(&path).unwrap_err().to_string();
    assert!(
        report.ends_with("large.yaml  the file has more than 1048576 bytes; a flow may not be larger"),
        "{report}"
    );
}
