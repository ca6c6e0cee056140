//! Whatever a text holds, it is answered.

use orchestrator_flowfile::{FlowFile, Format, parse};
use proptest::prelude::*;
use serde_json::Value;

const FORMATS: [Format; 3] = [Format::Yaml, Format::Json, Format::Toml];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        for format in FORMATS {
            let _ = FlowFile::from_text("f", &text, format);
        }
        let _ = Format::guess(&text);
    }

    /// Texts made of what the grammars are made of get further than random ones.
    #[test]
    fn no_text_of_likely_parts_panics(parts in proptest::collection::vec(part(), 0..40)) {
        let text = parts.concat();
        for format in FORMATS {
            let _ = FlowFile::from_text("f", &text, format);
        }
    }

    #[test]
    fn a_flow_with_a_hole_or_a_wedge_does_not_panic(at in 0usize..2_000, cut in 0usize..9, wedge in part()) {
        for (text, format) in [(super::YAML, Format::Yaml), (super::JSON, Format::Json), (super::TOML, Format::Toml)] {
            let start = text.floor_char_boundary(at.min(text.len()));
            let end = text.ceil_char_boundary((start + cut).min(text.len()));
            let text = format!("{}{wedge}{}", &text[..start], &text[end..]);
            if let Err(report) = FlowFile::from_text("f", &text, format) {
                prop_assert!(report.findings().iter().all(|finding| finding.line > 0 && finding.column > 0));
            }
        }
    }

    #[test]
    fn our_json_is_that_of_serde(text in json_like()) {
        let theirs = serde_json::from_str::<Value>(&text);
        let ours = parse(&text, Format::Json).map(|node| node.to_value());
        prop_assert_eq!(theirs.is_ok(), ours.is_ok(), "{} {:?} {:?}", text, theirs, ours);
        if let (Ok(theirs), Ok(ours)) = (theirs, ours) {
            prop_assert_eq!(theirs, ours);
        }
    }
}

fn part() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(
        [
            "flow",
            "tasks",
            "handler",
            "needs",
            "with",
            "a",
            "b",
            "é",
            "😀",
            ":",
            ": ",
            "=",
            " = ",
            "- ",
            "[",
            "]",
            "[[",
            "]]",
            "{",
            "}",
            "{{ x }}",
            ",",
            "\"",
            "'",
            "\"\"\"",
            "|",
            ">",
            "&a ",
            "*a",
            "!!str ",
            "!x ",
            "#",
            "\n",
            "\n  ",
            "\n    ",
            "\t",
            "\r\n",
            "---\n",
            "...",
            "1",
            "-0",
            "1e9",
            "0x1F",
            ".inf",
            "true",
            "null",
            "~",
            "2026-11-15",
            "\\",
            "\\u00e9",
            "\\ud83d",
            "? ",
            "<<",
            "%YAML 1.2\n",
            "\u{feff}",
            "\u{85}",
            "\0",
        ]
        .as_slice(),
    )
}

fn json_like() -> impl Strategy<Value = String> {
    let token = proptest::sample::select(
        [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"\\n\"",
            "\"\\u00e9\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"",
            "1",
            "-1",
            "01",
            "0.5",
            "1e3",
            "1.",
            "-",
            "true",
            "null",
            "nul",
            " ",
            "\t",
            "\n",
            "[1,2]",
            "{\"a\":1}",
            "é",
        ]
        .as_slice(),
    );
    proptest::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}
