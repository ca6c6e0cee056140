//! One flow in three formats is one flow.

use orchestrator_core::flow::FlowDef;
use orchestrator_flowfile::{FlowFile, Format};

fn definition(text: &str, format: Format) -> FlowDef {
    FlowFile::from_text("flow", text, format).unwrap_or_else(|report| panic!("{report}")).into()
}

#[test]
fn the_formats_say_the_same() {
    let yaml = definition(super::YAML, Format::Yaml);
    assert_eq!(definition(super::JSON, Format::Json), yaml);
    let mut toml = definition(super::TOML, Format::Toml);
    let with = toml.tasks[0].with.as_mut().unwrap();
    assert_eq!(with["tries"][2].take(), "null", "TOML has no null to write there");
    assert_eq!(toml, yaml);
    let names: Vec<_> = yaml.tasks.iter().map(|task| &*task.name).collect();
    assert_eq!(names, ["download", "validate", "label", "notify"], "in the order as written");
}

#[test]
fn the_canonical_text_is_a_flow_file_of_the_same_flow() {
    let def = definition(super::YAML, Format::Yaml);
    let text = serde_json::to_string(&def).unwrap();
    assert_eq!(definition(&text, Format::Json), def);
    assert_eq!(definition(&text, Format::Yaml), def, "JSON is YAML as long as nothing exotic stands in it");
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_text() {
    for (text, format) in
        [(super::YAML, Format::Yaml), (super::JSON, Format::Json), (super::TOML, Format::Toml)]
    {
        let marked = format!("\u{feff}{text}");
        assert_eq!(definition(&marked, format), definition(text, format));
    }
}

#[test]
fn a_file_is_read_in_the_format_that_its_name_or_text_tells() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in
        [("a.yaml", super::YAML), ("a.json", super::JSON), ("a.toml", super::TOML), ("a", super::TOML)]
    {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let file = FlowFile::load(&path).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(file.definition().name, "dataset-build");
        assert_eq!(file.name(), path.display().to_string());
    }
}
