//! Help and completions.

use crate::support::Place;

#[test]
fn every_help_opens_with_examples() {
    let place = Place::new();
    for command in [
        "",
        "run",
        "flows",
        "flows validate",
        "flows apply",
        "flows list",
        "flows show",
        "flows graph",
        "flows delete",
        "flows schema",
        "jobs",
        "jobs list",
        "jobs status",
        "jobs progress",
        "jobs watch",
        "jobs create",
        "jobs pause",
        "jobs resume",
        "jobs cancel",
        "jobs recover",
        "jobs retry",
        "jobs rerun",
        "jobs stats",
        "jobs stuck",
        "jobs prune",
        "tasks",
        "tasks list",
        "tasks show",
        "dead-letter",
        "dead-letter list",
        "dead-letter show",
        "dead-letter requeue",
        "dead-letter discard",
        "queue",
        "queue enqueue",
        "queue import",
        "queue run",
        "queue stats",
        "queue retry-failed",
        "dev",
        "serve",
        "worker",
        "workers",
        "workers list",
        "limits",
        "limits list",
        "limits set",
        "limits clear",
        "migrate",
        "migrate status",
        "migrate up",
        "migrate copy",
        "migrate reopen",
        "config",
        "config check",
        "config show",
        "config schema",
        "demo",
        "bench",
        "bench events",
        "completions",
    ] {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = place.expect(0, &args);
        assert!(help.stdout.starts_with("Examples:\n"), "{command}: {help:?}");
        let examples = help.stdout.lines().skip(1).take_while(|line| !line.is_empty()).count();
        assert_eq!(examples, 2, "{command}: {help:?}");
    }
}

#[test]
fn every_shell_has_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.expect(0, &["completions", shell]);
        assert!(script.stdout.contains("retry-failed"), "{shell}");
    }
    place.expect(2, &["completions", "cobol"]);
}

#[test]
fn colour_is_only_used_where_it_is_wanted() {
    let place = Place::new();
    place.enqueue_script("a", "true", &[]);
    assert!(!place.expect(0, &["queue", "stats"]).stdout.contains('\x1b'), "not in a pipe");
    assert!(place.expect(0, &["queue", "stats", "--color", "always"]).stdout.contains("\x1b[1mSTATE"));
}
