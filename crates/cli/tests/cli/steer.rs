//! Steered from another process: pause, resume, cancel, recover, retry, rerun.

use crate::support::{Place, WAIT_FOR_GO, until};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn a_cancel_of_another_process_stops_what_runs() {
    let place = Place::new();
    let stay = "echo $$ > pid.new; mv pid.new pid; exec sleep 600";
    place.flow("c.json", &[("a", &[], stay), ("b", &["a"], "touch b")], json!({}));
    let mut run = place.start(&["run", "c.json"]);
    until("it to run", || place.path("pid").exists());
    let id = place.newest();
    let cancelled = place.expect(0, &["jobs", "cancel", &id]);
    assert_eq!(cancelled.stdout, format!("{id}  cancelled\n"));
    assert_eq!(run.end().code(), Some(6), "{}", run.log());
    assert!(run.log().contains("the job was cancelled"), "{}", run.log());
    let process = format!("/proc/{}", place.read("pid").trim());
    until("the program to be gone", || !Path::new(&process).exists());
    assert!(!place.path("b").exists());
    assert_eq!((place.task(&id, "a"), place.task(&id, "b")), ("cancelled".into(), "cancelled".into()));
    let again = place.expect(5, &["jobs", "cancel", &id]);
    assert!(again.stderr.contains("is cancelled"), "{again:?}");
}

#[test]
fn a_paused_job_starts_nothing_until_it_is_resumed() {
    let place = Place::new();
    place.flow("p.json", &[("a", &[], WAIT_FOR_GO), ("b", &["a"], "touch b; echo 4")], json!({}));
    let mut run = place.start(&["run", "p.json"]);
    until("it to run", || run.log().contains("running   a"));
    let id = place.newest();
    assert_eq!(place.expect(0, &["jobs", "pause", &id]).stdout, format!("{id}  pausing\n"));
    place.write("go", "");
    until("it to rest", || place.job(&id)["state"] == "paused");
    assert_eq!(place.task(&id, "a"), "completed", "what ran may finish");
    assert!(place.json(&["tasks", "show", &id, "b"])["held"].as_bool().unwrap() && !place.path("b").exists());
    place.expect(5, &["jobs", "pause", &id]);
    let stuck = place.json(&["jobs", "stuck", "--older-than", "0s"]);
    assert_eq!(stuck["reasons"][0]["code"], "paused");
    until("the run to show it", || run.log().contains("the job is paused"));
    assert_eq!(place.expect(0, &["jobs", "resume", &id]).stdout, format!("{id}  running\n"));
    assert_eq!(run.end().code(), Some(0), "{}", run.log());
    assert!(place.path("b").exists());
    place.expect(5, &["jobs", "resume", &id]);
}

#[test]
fn a_job_of_a_queue_can_be_paused_too() {
    let place = Place::new();
    place.enqueue_script("q", "touch ran", &[]);
    let id = place.newest();
    place.expect(0, &["jobs", "pause", &id]);
    place.expect(0, &["queue", "run", "--drain"]);
    assert!(!place.path("ran").exists());
    assert_eq!(place.count("paused"), 1);
    place.expect(0, &["jobs", "resume", &id]);
    place.expect(0, &["queue", "run", "--drain"]);
    assert!(place.path("ran").exists());
}

const RECOVERABLE: &[(&str, &[&str], &str)] = &[
    ("a", &[], "echo a >> ran; echo 1"),
    ("b", &["a"], "echo b >> ran; test -e fixed || exit 1; echo 2"),
    ("side", &["a"], "echo side >> ran"),
    ("c", &["b"], "echo c >> ran; echo 3"),
];

fn ran(place: &Place) -> Vec<String> {
    let mut lines: Vec<String> = place.read("ran").lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_recovery_runs_what_went_wrong_and_all_after_it() {
    let place = Place::new();
    place.flow("r.json", RECOVERABLE, json!({ "output": "{{ tasks.c.output }}", "max_recoveries": 2 }));
    place.expect(6, &["run", "r.json"]);
    let id = place.newest();
    assert_eq!(ran(&place), ["a", "b", "side"]);
    let recoverable = place.json(&["jobs", "list", "--recoverable"]);
    assert_eq!(recoverable["id"], id.as_str());
    place.write("fixed", "");
    let recovered = place.expect(0, &["jobs", "recover", &id]);
    assert_eq!(recovered.stdout, format!("{id}  running\n"));
    assert!(recovered.stderr.contains("2 of 4 tasks run again"), "{recovered:?}");
    assert_eq!(place.expect(0, &["run", "--resume", &id]).stdout, "3\n");
    assert_eq!(ran(&place), ["a", "b", "b", "c", "side"], "the rest stayed as it was");
    let done = place.expect(5, &["jobs", "recover", &id]);
    assert!(done.stderr.contains("is completed"), "{done:?}");
}

#[test]
fn a_recovery_can_start_at_an_earlier_task() {
    let place = Place::new();
    place.flow("r.json", RECOVERABLE, json!({ "max_recoveries": 1 }));
    place.expect(6, &["run", "r.json"]);
    let id = place.newest();
    let typo = place.expect(3, &["jobs", "recover", &id, "--from", "sied"]);
    assert!(typo.stderr.contains("did you mean side?"), "{typo:?}");
    let blocked = place.expect(5, &["jobs", "recover", &id, "--from", "c"]);
    assert!(blocked.stderr.contains("c needs b, which is failed"), "{blocked:?}");
    place.expect(0, &["jobs", "recover", &id, "--from", "a"]);
    place.expect(6, &["run", "--resume", &id]);
    assert_eq!(ran(&place), ["a", "a", "b", "b", "side", "side"]);
    let capped = place.expect(5, &["jobs", "recover", &id]);
    assert!(capped.stderr.contains("as often as its flow allows"), "{capped:?}");
    place.write("fixed", "");
    place.expect(0, &["jobs", "retry", &id]);
    place.expect(0, &["run", "--resume", &id]);
    assert_eq!(place.job(&id)["recoveries"], 1, "a retry is not counted");
}

#[test]
fn a_rerun_is_a_new_job_with_the_old_or_another_input() {
    let place = Place::new();
    let text = "flow: add\ntasks:\n  a:\n    handler: command\n    with: { run: [sh, -c, 'echo $(($1 + $2))', sh, \
                \"{{ input.x | string }}\", \"{{ input.y | string }}\"] }\n";
    place.write("add.yaml", text);
    assert_eq!(place.expect(0, &["run", "add.yaml", "--input", r#"{"x": 2, "y": 3}"#]).stdout, "5\n");
    let first = place.newest();
    let rerun = |args: &[&str]| -> Value {
        let created = place.json(&[&["jobs", "rerun", &first], args].concat());
        assert_eq!(created["previous"], first.as_str(), "{created}");
        let id = created["job"].as_str().unwrap().to_owned();
        place.expect(0, &["run", "--resume", &id]);
        place.job(&id)["output"].clone()
    };
    assert_eq!(rerun(&[]), 5);
    assert_eq!(rerun(&["--input-field", "y=40"]), 42);
    assert_eq!(rerun(&["--input", r#"{"x": 1, "y": 1}"#]), 2);
    place.write("add.yaml", &text.replace("$1 + $2", "$1 * $2"));
    place.expect(0, &["flows", "apply", "add.yaml"]);
    assert_eq!(rerun(&[]), 5, "on the version of the old job");
    assert_eq!(rerun(&["--latest"]), 6);
}

#[test]
fn an_input_can_be_edited_for_a_rerun() {
    let place = Place::new();
    place.flow("e.json", &[("a", &[], "true")], json!({ "output": "{{ input.n }}" }));
    place.expect(0, &["run", "e.json", "--input", r#"{"n": 1}"#]);
    let id = place.newest();
    place.write("edit.sh", "sed -i 's/1/8/' \"$1\"\n");
    let editor = format!("sh {}", place.path("edit.sh").display());
    let done = place.run_with(&[("EDITOR", &editor), ("VISUAL", "")], &["jobs", "rerun", &id, "--edit"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(place.expect(0, &["run", "--resume", &place.newest()]).stdout, "8\n");
    let failing = place.run_with(&[("EDITOR", "false"), ("VISUAL", "")], &["jobs", "rerun", &id, "--edit"]);
    assert!(failing.code == 1 && failing.stderr.contains("nothing was submitted"), "{failing:?}");
}
