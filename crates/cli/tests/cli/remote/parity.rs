//! One script of commands, once on a file and once on a server: they say the same and end the same.

use super::Server;
use super::normal::Ids;
use crate::support::{Done, Place};

const FLOW: &str = r#"
flow: greet
description: Greets
input: { type: object, required: [name] }
idempotency: { key: "{{ input.name }}" }
max_recoveries: 1
defaults: { retries: 0 }
tasks:
  hello: { handler: noop, with: { text: "{{ input.name }}" } }
  each: { handler: noop, needs: [hello], for_each: "{{ [1, 2, 3] }}", with: { n: "{{ item }}" } }
  last: { handler: command, needs: [each], with: { run: ["sh", "-c", "test -e {{ input.name }}"] } }
"#;

const LINES: &str = r#"{"artifact_id": "b1", "handler": "noop", "payload": {"a": 1.50}, "priority": "high", "tenant": "lab"}
{"artifact_id": "b2", "flow": "greet", "input": {"name": "import"}, "context": {"lab": "x"}}
{"artifact_id": "b1", "handler": "noop", "payload": {"a": 1.50}, "tenant": "lab"}
{"artifact_id": "b1", "handler": "noop", "payload": {"a": 2}, "tenant": "lab"}
{"artifact_id": "b3", "handler": "nooop"}
{"artifact_id": "b4", "handler": "noop", "run_at": "2099-01-01T00:00:00Z", "limits": {"host": "h"}, "max_retries": 9}
not json
"#;

/// The commands. `%3` is the fourth id that was said so far. What begins with `~` tells by the way how the work goes on, and
/// only its data are compared.
const SCRIPT: &[&[&str]] = &[
    &["jobs", "list"],
    &["queue", "stats"],
    &["dead-letter", "list"],
    &["flows", "list"],
    &["jobs", "stats"],
    // %0
    &["queue", "enqueue", "--artifact-id", "a1", "--handler", "noop", "--payload", r#"{"x": 1.50}"#],
    &[
        "queue",
        "enqueue",
        "--artifact-id",
        "a1",
        "--handler",
        "noop",
        "--payload",
        r#"{"x": 1.50}"#,
        "--json",
    ],
    &["queue", "enqueue", "--artifact-id", "a1", "--handler", "noop", "--payload", r#"{"x": 2}"#],
    &["queue", "enqueue", "--artifact-id", "a2", "--handler", "nop"],
    &["queue", "enqueue", "--artifact-id", "a2", "--handler", "noop", "--payload", "{"],
    &["queue", "enqueue", "--artifact-id", "a2", "--handler", "sleep", "--payload", r#"{"for": "soon"}"#],
    &["queue", "enqueue", "--artifact-id", "", "--handler", "noop", "--queue", "a b"],
    &["flows", "validate", "flow.yaml"],
    &["flows", "apply", "flow.yaml"],
    &["flows", "apply", "flow.yaml", "--json"],
    &["flows", "apply", "broken.yaml"],
    &["flows", "list", "--json"],
    &["flows", "show", "greet"],
    &["flows", "show", "greet", "--versions"],
    &["flows", "show", "greet@7"],
    &["flows", "show", "great"],
    &["flows", "graph", "greet"],
    // %1 %2 %3
    &["queue", "import", "lines.jsonl", "-o", "jsonl"],
    &["queue", "import", "lines.jsonl"],
    &["queue", "import", "lines.jsonl", "--dry-run"],
    // %4
    &["jobs", "create", "greet", "--input-field", "name=lost"],
    &["jobs", "create", "greet", "--input-field", "name=lost", "--json"],
    &["jobs", "create", "greet", "--input", "{}"],
    &["jobs", "create", "nothing"],
    // %5
    &["jobs", "create", "--handler", "noop", "--key", "behind", "--after", "%4"],
    &["jobs", "create", "--handler", "noop", "--after", "00000000-0000-7000-8000-000000000000"],
    &["jobs", "list"],
    &["jobs", "list", "--json"],
    &["jobs", "list", "--flow", "greet", "--oldest-first", "--limit", "1"],
    &["jobs", "list", "--status", "pending", "--status", "running", "-o", "jsonl"],
    &["jobs", "list", "--full", "-o", "jsonl"],
    &["jobs", "status", "%0"],
    &["jobs", "status", "%4", "--json"],
    &["jobs", "status", "00000000-0000-7000-8000-000000000000"],
    &["jobs", "status", "00000000"],
    &["jobs", "status", "no-id"],
    &["jobs", "status", "0"],
    &["jobs", "progress", "%4"],
    &["jobs", "pause", "%4"],
    &["jobs", "pause", "%4"],
    &["jobs", "stuck", "--older-than", "0s"],
    &["jobs", "stuck", "--older-than", "0s", "--json"],
    &["jobs", "resume", "%4", "--json"],
    &["jobs", "resume", "%4"],
    &["tasks", "list", "%4"],
    &["tasks", "show", "%4", "hello"],
    &["tasks", "show", "%4", "helo"],
    &["queue", "stats", "--json"],
    &["~", "queue", "run", "--drain", "--max-workers", "1"],
    &["queue", "stats"],
    &["jobs", "list", "--failed"],
    &["jobs", "list", "--recoverable", "--json"],
    &["jobs", "status", "%4", "--failed"],
    &["tasks", "list", "%4", "--items"],
    &["tasks", "list", "%4", "--items", "--json"],
    &["tasks", "show", "%4", "each[1]"],
    &["tasks", "show", "%4", "each[7]"],
    &["dead-letter", "list"],
    &["dead-letter", "list", "--json"],
    &["dead-letter", "list", "--handler", "http"],
    &["dead-letter", "show", "%4/last"],
    &["dead-letter", "requeue", "%0"],
    &["dead-letter", "requeue", "%2"],
    &["dead-letter", "discard", "%4"],
    &["dead-letter", "discard", "%4"],
    &["jobs", "recover", "%4", "--from", "lst"],
    &["jobs", "recover", "%4", "--from", "last"],
    &["jobs", "cancel", "%4", "%2"],
    &["jobs", "cancel", "%4"],
    &["jobs", "retry", "%0"],
    // %6 %7
    &["jobs", "rerun", "%4"],
    &["jobs", "rerun", "%0", "--input", r#"{"x": 3}"#, "--json"],
    &["~", "queue", "run", "--drain", "--max-workers", "1"],
    &["jobs", "retry", "%6"],
    &["~", "queue", "run", "--drain", "--max-workers", "1"],
    &["queue", "retry-failed", "--dry-run"],
    &["queue", "retry-failed"],
    &["~", "queue", "run", "--drain", "--max-workers", "1", "--json"],
    &["~", "run", "--concurrency", "1", "flow.yaml", "--input-field", "name=flow.yaml"],
    &["~", "run", "--concurrency", "1", "greet", "--input-field", "name=flow.yaml", "--json"],
    &["~", "run", "--concurrency", "1", "greet", "--input-field", "name=absent", "--priority", "high"],
    &["~", "run", "--concurrency", "1", "--resume", "%4"],
    &["~", "jobs", "watch", "%4"],
    &["limits", "set", "host:x", "--concurrency", "3", "--rate", "10/s"],
    &["limits", "set", "host:x", "--rate", "none", "--json"],
    &["limits", "set", "host:x"],
    &["limits", "list"],
    &["limits", "list", "--json"],
    &["limits", "clear", "host:x"],
    &["limits", "clear", "host:x"],
    &["jobs", "stats", "--json"],
    &["jobs", "prune", "--older-than", "0s", "--dry-run"],
    &["jobs", "prune", "--older-than", "0s", "--archive", "old"],
    &["jobs", "prune", "--older-than", "0s", "--failed", "--dead-letters", "--json"],
    &["jobs", "list"],
    &["flows", "delete", "greet"],
    &["flows", "delete", "greet"],
];

/// A place in which the script runs.
struct Stage {
    place: Place,
    ids: Ids,
    on: [String; 2],
}

impl Stage {
    fn new(place: Place, on: [String; 2]) -> Stage {
        place.write("flow.yaml", FLOW);
        place.write("lines.jsonl", LINES);
        place.write("broken.yaml", "flow: x\ntasks:\n  a: { handler: noop, needs: [b] }\n");
        Stage { place, ids: Ids::default(), on }
    }

    /// Runs a command, and says what came of it.
    fn run(&mut self, step: &[&str]) -> String {
        let said = step.iter().filter(|word| **word != "~");
        let args: Vec<String> = said
            .map(|word| match word.strip_prefix('%').map(|rest| rest.split_once('/').unwrap_or((rest, ""))) {
                Some((n, "")) => self.ids.seen[n.parse::<usize>().unwrap()].clone(),
                Some((n, task)) => format!("{}/{task}", self.ids.seen[n.parse::<usize>().unwrap()]),
                None => (*word).to_owned(),
            })
            .chain(self.on.iter().cloned())
            .collect();
        let Done { code, stdout, stderr } =
            self.place.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let stdout = self.ids.normal(&stdout);
        let stderr = if step[0] == "~" { String::new() } else { self.ids.normal(&stderr) };
        format!("{step:?}\nexit {code}\n{stdout}\n--\n{stderr}")
    }
}

#[test]
fn a_server_is_as_good_as_a_file() {
    let place = Place::new();
    // A file that is there already: of a server, there is nothing that could be missing.
    place.expect(0, &["limits", "set", "a:b", "--concurrency", "1", "--db", "local.db"]);
    let mut local = Stage::new(place, ["--db".to_owned(), "local.db".to_owned()]);
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let mut remote = Stage::new(place, ["--server".to_owned(), server.url.clone()]);
    remote.place.expect(0, &["limits", "set", "a:b", "--concurrency", "1", "--server", &server.url]);
    // The server has written the limits of its configuration when it started; here it is done by whoever runs work first.
    local.place.expect(0, &["queue", "run", "--drain", "--db", "local.db"]);
    for step in SCRIPT {
        assert_eq!(remote.run(step), local.run(step));
    }
    assert!(local.ids.seen.len() > 8, "the script did something");
    let rejects = |stage: &mut Stage| stage.ids.normal(&stage.place.read("lines.jsonl.rejects"));
    assert_eq!(rejects(&mut remote), rejects(&mut local));
}

#[test]
fn what_has_no_server_says_so() {
    let place = Place::new();
    let on = ["--server", "http://127.0.0.1:9"];
    for command in [
        &["migrate", "status"][..],
        &["bench", "queue"],
        &["demo"],
        &["dev"],
        &["serve"],
        &["config", "show"],
        &["completions", "bash"],
    ] {
        let done = place.expect(2, &[command, &on].concat());
        assert!(done.stderr.contains("--server makes no sense here"), "{done:?}");
    }
    let done = place.expect(2, &["queue", "run", "--max-per-host", "2", on[0], on[1]]);
    assert!(done.stderr.contains("limits are the server's"), "{done:?}");
    place.expect(2, &["jobs", "list", "--db", "x.db", on[0], on[1]]);
    place.expect(2, &["jobs", "list", "--server", "ftp://x"]);
    let done = place.expect(8, &["jobs", "list", on[0], on[1]]);
    assert!(done.stderr.contains("cannot reach the server"), "{done:?}");
    // From the environment it is meant for those who can use it.
    let env = [("ORCHESTRATOR_SERVER", on[1])];
    assert_eq!(place.run_with(&env, &["config", "check"]).code, 0);
    assert_eq!(place.run_with(&env, &["jobs", "list"]).code, 8);
    assert_eq!(place.run_with(&env, &["jobs", "list", "--db", "x.db"]).code, 3, "a flag counts more");
}
