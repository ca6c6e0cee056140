//! Definitions and inputs that are wrong: told with their place, at the right time, and nothing hangs.

use crate::support::Place;
use serde_json::{Value, json};

#[test]
fn all_findings_of_all_files_are_told_with_their_places() {
    let place = Place::new();
    place.write(
        "bad.yaml",
        "flow: bad\ntasks:\n  a: { handler: noop, needs: [b] }\n  b: { handler: noop, needs: [a, nobody] }\n",
    );
    place.write(
        "worse.yaml",
        "flow: worse\ntasks:\n  a:\n    handler: noop\n    retires: 3\n    timeout: soon\n",
    );
    place.write("broken.json", "{\"flow\": }");
    place.write("good.yaml", "flow: good\ntasks:\n  a: { handler: noop }\n");
    let done = place
        .expect(1, &["flows", "validate", "bad.yaml", "worse.yaml", "broken.json", "good.yaml", "none.yaml"]);
    for part in [
        "bad.yaml:4:",
        "nobody",
        "worse.yaml:5:",
        "tasks.a.retires",
        "did you mean \"retries\"?",
        "worse.yaml:6:14  tasks.a.timeout",
        "broken.json:1:",
        "good.yaml  ok  good, 1 task",
        "none.yaml  there is no such file",
    ] {
        assert!(done.stdout.contains(part), "{part}\n{}", done.stdout);
    }
    let documents = place.run(&["flows", "validate", "worse.yaml", "good.yaml", "--json"]);
    let documents: Value = serde_json::from_str(&documents.stdout).unwrap();
    assert_eq!((&documents[0]["ok"], &documents[1]["ok"]), (&false.into(), &true.into()));
    assert_eq!(documents[0]["errors"][0]["line"], 5);
}

#[test]
fn a_cycle_is_told_as_a_path_and_nothing_is_made() {
    let place = Place::new();
    place.write(
        "cycle.yaml",
        "flow: c\ntasks:\n  a: { handler: noop, needs: [c] }\n  b: { handler: noop, needs: [a] }\n  c: { handler: noop, needs: [b] }\n",
    );
    for args in
        [&["run", "cycle.yaml"][..], &["flows", "apply", "cycle.yaml"], &["jobs", "create", "cycle.yaml"]]
    {
        let done = place.expect(2, args);
        assert!(done.stderr.contains("cycle.yaml:3:"), "{done:?}");
        assert!(done.stderr.contains("a needs c needs b needs a"), "{done:?}");
    }
    assert!(!place.path("orchestrator.db").exists(), "nothing was made");
}

#[test]
fn a_handler_that_is_not_there_is_named() {
    let place = Place::new();
    place.write("h.yaml", "flow: h\ntasks:\n  a: { handler: comand }\n");
    let run = place.expect(2, &["run", "h.yaml"]);
    for part in ["h.yaml:3:17  tasks.a.handler", "\"comand\" is not known here", "did you mean command?"] {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
    let apply = place.expect(0, &["flows", "apply", "h.yaml"]);
    assert!(apply.stderr.contains("warning: h.yaml:3:17"), "another program may have it: {apply:?}");
    place.expect(0, &["flows", "validate", "h.yaml"]);
    place.expect(2, &["run", "h"]);
    let created = place.expect(0, &["jobs", "create", "h"]);
    assert!(created.stdout.starts_with("created, job "), "{created:?}");
    place.expect(2, &["run", "--resume", &place.newest()]);
}

#[test]
fn a_payload_that_its_handler_refuses_is_told_before_anything_runs() {
    let place = Place::new();
    place.write("p.yaml", "flow: p\ntasks:\n  a: { handler: sleep, with: { for: soon } }\n");
    let run = place.expect(2, &["run", "p.yaml"]);
    assert!(run.stderr.contains("p.yaml:3:37  tasks.a.with.for"), "{run:?}");
    place.expect(1, &["flows", "validate", "p.yaml"]);
}

#[test]
fn an_input_that_the_flow_refuses_is_told_field_by_field() {
    let place = Place::new();
    let schema =
        json!({ "type": "object", "required": ["source"], "properties": { "n": { "type": "integer" } } });
    place.flow("i.json", &[("a", &[], "true")], json!({ "input": schema }));
    let done = place.expect(2, &["run", "i.json", "--input-field", "n=many"]);
    assert!(done.stderr.contains("source") && done.stderr.contains("n: "), "{done:?}");
    let none = place.expect(2, &["run", "i.json"]);
    assert!(none.stderr.contains("source"), "{none:?}");
    let broken = place.expect(2, &["run", "i.json", "--input", "{source: 1}"]);
    assert!(broken.stderr.contains("not JSON"), "{broken:?}");
    place.expect(3, &["run", "i.json", "--input", "@missing.json"]);
    place.write("input.json", "{\"source\": \"x\"}");
    place.expect(0, &["run", "i.json", "--input", "@input.json"]);
}

#[test]
fn a_template_that_cannot_resolve_fails_its_task_with_what_it_saw() {
    let place = Place::new();
    let text = "flow: t\ntasks:\n  a: { handler: command, with: { run: [echo, '{\"n\": \"many\"}'] } }\n  \
                b: { handler: command, needs: [a], retries: 3, with: { run: [echo, \"{{ tasks.a.output.n + 1 }}\"] } }\n";
    place.write("t.yaml", text);
    let run = place.expect(6, &["run", "t.yaml"]);
    for part in ["✘ not run   b: with: {{ tasks.a.output.n + 1 }}", "\"many\""] {
        assert!(run.stderr.contains(part), "{part}: {run:?}");
    }
    let id = place.newest();
    assert_eq!(place.task(&id, "a"), "completed");
    let task = place.json(&["tasks", "show", &id, "b"]);
    assert_eq!(
        (&task["dead"], task["history"].as_array().unwrap().len()),
        (&"final".into(), 1),
        "not retried"
    );
}

#[test]
fn garbage_and_too_much_output_fail_a_task_for_good() {
    let place = Place::new();
    let more = json!({ "defaults": { "retries": 3, "backoff": { "initial": "10ms" } } });
    place.flow("g.json", &[("garbage", &[], "echo '<html>oops</html>'")], more.clone());
    let garbage = place.expect(6, &["run", "g.json"]);
    assert!(
        garbage.stderr.contains("not one JSON document") && garbage.stderr.contains("<html>oops"),
        "{garbage:?}"
    );
    assert!(garbage.stderr.contains("(1 attempt)"), "not retried: {garbage:?}");
    place.flow("m.json", &[("much", &[], "head -c 2000000 /dev/zero | tr '\\0' 1")], more);
    let much = place.expect(6, &["run", "m.json"]);
    assert!(much.stderr.contains("1048576") && much.stderr.contains("(1 attempt)"), "{much:?}");
}

#[test]
fn a_list_that_is_none_fails_its_task() {
    let place = Place::new();
    let text = "flow: l\ntasks:\n  a: { handler: command, with: { run: [echo, '{\"n\": 3}'] } }\n  \
                b: { handler: noop, needs: [a], for_each: \"{{ tasks.a.output }}\" }\n";
    place.write("l.yaml", text);
    let run = place.expect(6, &["run", "l.yaml"]);
    assert!(run.stderr.contains("for_each must be a list, but it is {\"n\":3}"), "{run:?}");
}
