//! Every value and every field name has its line and column.

use orchestrator_core::flow::Node;
use orchestrator_core::flow::document::{Kind, Span};
use orchestrator_flowfile::{Format, parse};

/// Each name and value with its place, as `path line:column`; names end in a colon.
fn places(text: &str, format: Format) -> Vec<String> {
    fn walk(node: &Node, path: &str, found: &mut Vec<String>) {
        let told =
            |at: Option<Span>| at.map_or("nowhere".to_owned(), |at| format!("{}:{}", at.line, at.column));
        found.push(format!("{path} {}", told(node.at)));
        match &node.kind {
            Kind::Map(fields) => {
                for field in fields {
                    let inner = format!("{path}.{}", field.name);
                    found.push(format!("{inner}: {}", told(field.at)));
                    walk(&field.value, &inner, found);
                }
            }
            Kind::List(items) => {
                for (n, item) in items.iter().enumerate() {
                    walk(item, &format!("{path}[{n}]"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = vec![];
    walk(&parse(text, format).unwrap(), "", &mut found);
    found
}

#[test]
fn in_yaml() {
    let text = "\
flow: é
tasks:
  a: { handler: \"ü\", retries: 3 }
  b:
    needs: [a, 'a b']
    with:
      - x
      - { k: null }
    title: |
      long
    when:
";
    let expected = [
        " 1:1",
        ".flow: 1:1",
        ".flow 1:7",
        ".tasks: 2:1",
        ".tasks 3:3",
        ".tasks.a: 3:3",
        ".tasks.a 3:6",
        ".tasks.a.handler: 3:8",
        ".tasks.a.handler 3:17",
        ".tasks.a.retries: 3:22",
        ".tasks.a.retries 3:31",
        ".tasks.b: 4:3",
        ".tasks.b 5:5",
        ".tasks.b.needs: 5:5",
        ".tasks.b.needs 5:12",
        ".tasks.b.needs[0] 5:13",
        ".tasks.b.needs[1] 5:16",
        ".tasks.b.with: 6:5",
        ".tasks.b.with 7:7",
        ".tasks.b.with[0] 7:9",
        ".tasks.b.with[1] 8:9",
        ".tasks.b.with[1].k: 8:11",
        ".tasks.b.with[1].k 8:14",
        ".tasks.b.title: 9:5",
        ".tasks.b.title 10:7",
        ".tasks.b.when: 11:5",
        ".tasks.b.when 11:9",
    ];
    assert_eq!(places(text, Format::Yaml), expected);
}

#[test]
fn in_json() {
    let text = "{\"flow\": \"é\",\n\t\"tasks\": { \"ü\": [1, true , {}],\r\n  \"b\":null } }\n";
    let expected = [
        " 1:1",
        ".flow: 1:2",
        ".flow 1:10",
        ".tasks: 2:2",
        ".tasks 2:11",
        ".tasks.ü: 2:13",
        ".tasks.ü 2:18",
        ".tasks.ü[0] 2:19",
        ".tasks.ü[1] 2:22",
        ".tasks.ü[2] 2:29",
        ".tasks.b: 3:3",
        ".tasks.b 3:7",
    ];
    assert_eq!(places(text, Format::Json), expected);
}

#[test]
fn in_toml() {
    let text = "\
flow = \"é\"
[tasks.b]
needs = [ 'ü', \"a\" ]
with.x.y = { k = 1 }
[tasks.a]
handler = \"h\"
[[list]]
n = 1
[[list]]
n = 2
";
    let expected = [
        " 1:1",
        ".flow: 1:1",
        ".flow 1:8",
        ".tasks: 2:2",
        ".tasks 2:2",
        ".tasks.b: 2:8",
        ".tasks.b 2:1",
        ".tasks.b.needs: 3:1",
        ".tasks.b.needs 3:9",
        ".tasks.b.needs[0] 3:11",
        ".tasks.b.needs[1] 3:16",
        ".tasks.b.with: 4:1",
        ".tasks.b.with 4:1",
        ".tasks.b.with.x: 4:6",
        ".tasks.b.with.x 4:6",
        ".tasks.b.with.x.y: 4:8",
        ".tasks.b.with.x.y 4:12",
        ".tasks.b.with.x.y.k: 4:14",
        ".tasks.b.with.x.y.k 4:18",
        ".tasks.a: 5:8",
        ".tasks.a 5:1",
        ".tasks.a.handler: 6:1",
        ".tasks.a.handler 6:11",
        ".list: 7:3",
        ".list 7:1",
        ".list[0] 7:1",
        ".list[0].n: 8:1",
        ".list[0].n 8:5",
        ".list[1] 9:1",
        ".list[1].n: 10:1",
        ".list[1].n 10:5",
    ];
    assert_eq!(places(text, Format::Toml), expected);
}

#[test]
fn a_flow_has_a_place_for_everything_in_every_format() {
    for (text, format) in
        [(super::YAML, Format::Yaml), (super::JSON, Format::Json), (super::TOML, Format::Toml)]
    {
        let found = places(text, format);
        assert!(found.len() > 100, "{}", found.len());
        assert!(found.iter().all(|place| !place.ends_with("nowhere")));
    }
}
