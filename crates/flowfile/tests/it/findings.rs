//! Bad files, and exactly what is said about them.

use orchestrator_flowfile::{FlowFile, Format};

fn report(name: &str, text: &str) -> String {
    let format = Format::of_path(name.as_ref()).unwrap();
    match FlowFile::from_text(name, text, format) {
        Ok(file) => file.plan().expect_err("a report").to_string(),
        Err(report) => report.to_string(),
    }
}

#[test]
fn every_mistake_in_a_file_is_told_in_order() {
    let text = "\
flow: my flow
timeuot: 5m
tasks:
  download:
    handler: download
    retries: not read
  label:
    retries: many
    backof:
      initial: 1s
    needs: [download, 7]
  download: { handler: other }
defaults: [1]
";
    let expected = "\
f.yaml:1:7  flow  \"my flow\" is not a name: use letters, digits and . _ - /, at most 128 of them
f.yaml:2:10  timeuot  a flow has no field \"timeuot\"; did you mean \"timeout\"?
f.yaml:7:3  tasks.label.handler  is required
f.yaml:8:14  tasks.label.retries  must be a whole number, is a text
f.yaml:9:5  tasks.label.backof  a task has no field \"backof\"; did you mean \"backoff\"?
f.yaml:11:23  tasks.label.needs[1]  must be a text, is a number; put it in quotes
f.yaml:12:13  tasks.download  task \"download\" stands twice, first at line 4
f.yaml:13:11  defaults  defaults must be a map of fields, is a list";
    assert_eq!(report("f.yaml", text), expected);
}

#[test]
fn mistakes_of_sense_have_their_place_too() {
    for (name, text, at) in [
        (
            "f.yaml",
            "flow: f\ntasks:\n  validate: { handler: h }\n  label:\n    handler: h\n    needs:\n      - validat\n",
            "f.yaml:7:9",
        ),
        (
            "f.json",
            "{\"flow\": \"f\", \"tasks\": {\"validate\": {\"handler\": \"h\"},\n \"label\": {\"handler\": \"h\", \"needs\": [\"validat\"]}}}",
            "f.json:2:38",
        ),
        (
            "f.toml",
            "flow = \"f\"\n[tasks.validate]\nhandler = \"h\"\n[tasks.label]\nhandler = \"h\"\nneeds = [\"validat\"]\n",
            "f.toml:6:10",
        ),
    ] {
        let told = "tasks.label.needs[0]  there is no task \"validat\"; did you mean \"validate\"?";
        assert_eq!(report(name, text), format!("{at}  {told}"));
    }
}

#[test]
fn mistakes_of_form_do_not_hide_those_of_sense() {
    let text = "\
flow: bad
tasks:
  a: { handler: noop, needs: [c] }
  b: { handler: noop, needs: [a], with: { x: \"{{ tasks.zz.output.n }}\" } }
  c: { handler: noop, needs: [b], retrys: 3 }
  d: nothing
  e: { handler: noop, needs: [d, bb] }
";
    let found = report("bad.yaml", text);
    for expected in [
        "bad.yaml:3:30  tasks.a.needs  the tasks need each other in a circle",
        "bad.yaml:4:46  tasks.b.with.x  there is no task \"zz\"",
        "bad.yaml:5:43  tasks.c.retrys  a task has no field \"retrys\"",
        "bad.yaml:6:6  tasks.d  ",
        "bad.yaml:7:34  tasks.e.needs[1]  there is no task \"bb\"",
    ] {
        assert!(found.contains(expected), "{expected:?} is not in:\n{found}");
    }
    assert_eq!(found.lines().count(), 5, "each once, and nothing that only follows from another:\n{found}");
}

#[test]
fn broken_syntax_is_told_with_its_place() {
    for (name, text, expected) in [
        ("f.yaml", "", "f.yaml:1:1  the file is empty; a flow starts with its name (flow) and has tasks"),
        (
            "f.toml",
            " \n\n",
            "f.toml:1:1  the file is empty; a flow starts with its name (flow) and has tasks",
        ),
        ("f.yaml", "# later\n", "f.yaml:1:1  a flow must be a map of fields, is empty"),
        ("f.yaml", "just words\n", "f.yaml:1:1  a flow must be a map of fields, is a text"),
        (
            "f.yaml",
            "flow: a\n---\nflow: b\n",
            "f.yaml:2:1  a second document starts here; a file holds one flow, put this one in its own",
        ),
        ("f.yaml", "flow: a: b\n", "f.yaml:1:8  mapping values are not allowed in this context"),
        (
            "f.yaml",
            "flow: a\nwith: {{ input.x }}\n",
            "f.yaml:2:8  a field name must be a text; a template needs quotes: \"{{ input.name }}\"",
        ),
        (
            "f.yaml",
            "x: &x { a: 1 }\ny:\n  <<: *x\n",
            "f.yaml:3:3  merging with << is not part of YAML 1.2; what tasks share goes into `defaults`",
        ),
        (
            "f.yaml",
            "x: !!set { a }\n",
            "f.yaml:1:4  the tag !!set is not supported; write the value without it",
        ),
        ("f.yaml", "x: !mine 1\n", "f.yaml:1:4  the tag !mine is not supported; write the value without it"),
        ("f.yaml", "x: *y\n", "f.yaml:1:4  while parsing node, found unknown anchor"),
        ("f.yaml", "x: .inf\n", "f.yaml:1:4  .inf is not a finite number; put it in quotes to have a text"),
        ("f.json", "{\"flow\": \"f\",}", "f.json:1:14  found '}', expected a field name in double quotes"),
        ("f.toml", "flow = \"f\"\nflow = \"g\"\n", "f.toml:2:1  duplicate key"),
        ("f.toml", "x = 1\ny = [1, \n", "f.toml:2:8  unclosed array, expected `]`"),
        ("f.toml", "x = inf\n", "f.toml:1:5  a number must be finite"),
        ("f.toml", "x = 99999999999999999999\n", "f.toml:1:5  the number is too large"),
    ] {
        assert_eq!(report(name, text), expected, "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let told = |name: &str| {
        let path = dir.path().join(name);
        let report = FlowFile::load(&path).unwrap_err();
        assert_eq!(report.findings().len(), 1);
        report.to_string().replace(&*dir.path().to_string_lossy(), "DIR")
    };
    let missing = "DIR/none.yaml  there is no such file; give the path of a flow in YAML, JSON or TOML";
    assert_eq!(told("none.yaml"), missing);
    std::fs::create_dir(dir.path().join("dir.yaml")).unwrap();
    assert_eq!(told("dir.yaml"), "DIR/dir.yaml  is a directory; give the path of a file in it");
    std::fs::write(dir.path().join("latin.yaml"), b"flow: a\ndescription: \xe9\xe8\n").unwrap();
    let latin = "DIR/latin.yaml:2:14  the text is not UTF-8 from here on; save the file as UTF-8";
    assert_eq!(told("latin.yaml"), latin);
}

#[test]
fn a_finding_is_plain_data() {
    let report = FlowFile::from_text("f.yaml", "flow: f\n", Format::Yaml).unwrap_err();
    let expected = serde_json::json!([{
        "file": "f.yaml", "line": 1, "column": 1, "path": "tasks",
        "message": "is required: the tasks of the flow, name by name",
    }]);
    assert_eq!(serde_json::to_value(&report).unwrap(), expected);
}

#[test]
fn odd_names_in_a_schema_keep_their_place() {
    let text = "\
flow: a
input:
  properties:
    x]].[\"y: { type: intger }
  \"]\": 1
tasks: { t: { handler: noop } }
";
    let report = report("f.yaml", text);
    let places: Vec<_> = report.lines().map(|line| line.split("  ").take(2).collect::<Vec<_>>()).collect();
    assert_eq!(places, [["f.yaml:4:22", "input.properties.x]].[\"y.type"], ["f.yaml:5:8", "input.]"]]);
}
