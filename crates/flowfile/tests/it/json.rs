//! Our JSON is that of `serde_json`, with places.

use orchestrator_flowfile::{Format, parse};
use serde_json::{Value, json};

fn value(text: &str) -> Value {
    parse(text, Format::Json).unwrap_or_else(|error| panic!("{text}: {error}")).to_value()
}

#[test]
fn what_json_can_say_is_understood() {
    for (text, expected) in [
        ("\t{\t\"a\"\t:\t1\t}\t", json!({"a": 1})),
        (r#""\u00e9\n\t\"\\\/\ud83d\ude00""#, json!("é\n\t\"\\/😀")),
        (r#"["\\", "\\\"", ""]"#, json!(["\\", "\\\"", ""])),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("123456789012345678901234567890", json!(123_456_789_012_345_678_901_234_567_890.0)),
        ("[0.1, -1.5e-7, 1E3]", json!([0.1, -1.5e-7, 1000.0])),
        ("[]", json!([])),
        ("{}", json!({})),
        ("[null,true,false]", json!([null, true, false])),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn fractions_are_read_to_their_last_digit() {
    for fraction in
        [5e-324, 1.797_693_134_862_315_7e308, 0.3, 123_456.789_012_345_68, 2.225_073_858_507_201e-308]
    {
        assert_eq!(value(&format!("{fraction:e}")), json!(fraction));
        assert_eq!(
            parse(&format!("x = {fraction:e}"), Format::Toml).unwrap().to_value(),
            json!({"x": fraction})
        );
        assert_eq!(parse(&format!("{fraction:e}"), Format::Yaml).unwrap().to_value(), json!(fraction));
    }
}

#[test]
fn what_is_not_json_is_refused_at_its_place() {
    for (text, line, column, message) in [
        ("", 1, 1, "the text ends, expected a value"),
        ("{\"a\": 1,\n}", 2, 1, "found '}', expected a field name in double quotes"),
        ("[1,\n 2,]", 2, 4, "found ']', expected a value"),
        ("[1 2]", 1, 4, "found '2', expected a comma or the end of the list"),
        ("{\"a\" 1}", 1, 6, "found '1', expected a colon after the field name"),
        ("{\"a\": 1", 1, 8, "the text ends, expected a comma or the end of the map"),
        ("{'a': 1}", 1, 2, "found '\\'', expected a field name in double quotes"),
        ("{\"a\": é}", 1, 7, "found 'é', expected a value"),
        ("{} {}", 1, 4, "found '{', expected the end: a file holds one document"),
        ("// x\n{}", 1, 1, "JSON has no comments; remove this one, expected a value"),
        ("[tru]", 1, 2, "\"tru\" is no value of JSON; put a text in double quotes"),
        ("[NaN]", 1, 2, "\"NaN\" is no value of JSON; put a text in double quotes"),
        ("[\"a]", 1, 2, "the text that starts here has no closing quote"),
        ("[\"\\x\"]", 1, 2, "invalid escape in what starts here"),
        ("[\"\\ud83d\"]", 1, 2, "unexpected end of hex escape in what starts here"),
        (
            "[\"a\nb\"]",
            1,
            2,
            "control character (\\u0000-\\u001F) found while parsing a string in what starts here",
        ),
        ("[01]", 1, 2, "invalid number in what starts here"),
        ("[1.]", 1, 2, "EOF while parsing a value in what starts here"),
        ("[1e999]", 1, 2, "number out of range in what starts here"),
    ] {
        let error = parse(text, Format::Json).expect_err(text);
        let at = error.at.expect(text);
        assert_eq!((at.line, at.column, &*error.message), (line, column, message), "{text}");
    }
}
