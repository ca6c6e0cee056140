//! The layers together: precedence, places, and all errors at once.

use super::*;
use std::io::Write;

fn sources(
    file: &str,
    env: &[(&str, &str)],
    flags: &[(&'static str, &'static str, &str)],
) -> (Sources, tempfile::NamedTempFile) {
    let mut toml = tempfile::NamedTempFile::new().unwrap();
    toml.write_all(file.as_bytes()).unwrap();
    let sources = Sources {
        file: Some(toml.path().to_owned()),
        env: env.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        flags: flags.iter().map(|(key, name, value)| Flag { key, name, value: value.to_string() }).collect(),
    };
    (sources, toml)
}

fn problems(file: &str, env: &[(&str, &str)]) -> Vec<String> {
    let (sources, toml) = sources(file, env, &[]);
    let name = toml.path().display().to_string();
    let found = load(&sources).err().unwrap_or_default();
    found.iter().map(|p| format!("{} | {}", p.at().replace(&name, "f.toml"), p.message)).collect()
}

fn loaded(file: &str, env: &[(&str, &str)], flags: &[(&'static str, &'static str, &str)]) -> Loaded {
    let (sources, _file) = sources(file, env, flags);
    load(&sources).unwrap()
}

#[test]
fn later_layers_win_and_are_named() {
    let all = loaded(
        "[queue]\nmax_workers = 2\ngrace = \"5s\"\n[retry]\nmax = 120\n",
        &[("ORCHESTRATOR_MAX_WORKERS", "3"), ("ORCHESTRATOR_GRACE", "6s")],
        &[("queue.max_workers", "--max-workers", "4")],
    );
    assert_eq!((all.config.queue.max_workers, all.config.queue.grace), (4, Millis::secs(6)));
    assert_eq!(all.config.retry.max, Millis::secs(120));
    let origin =
        |key| all.effective.iter().find(|(s, _, _)| s.key == key).map(|(_, _, o)| o.to_string()).unwrap();
    assert_eq!(origin("queue.max_workers"), "flag --max-workers");
    assert_eq!(origin("queue.grace"), "env ORCHESTRATOR_GRACE");
    assert!(origin("retry.max").ends_with(":5"));
    assert_eq!(origin("log.level"), "default");
}

#[test]
fn the_names_of_the_flow_service_work() {
    let all = loaded(
        "",
        &[
            ("ORCHESTRATOR_MAX_RETRY_ATTEMPTS", "7"),
            ("ORCHESTRATOR_RETRY_BACKOFF_BASE", "3"),
            ("ORCHESTRATOR_TASK_TIMEOUT_DEFAULT", "90"),
            ("ORCHESTRATOR_LOG_LEVEL", "INFO"),
        ],
        &[],
    );
    assert_eq!((all.config.retry.max_retries, all.config.retry.base), (7, 3));
    assert_eq!((all.config.task.timeout, all.config.log.level.as_str()), (Millis::secs(90), "info"));
}

#[test]
fn all_errors_come_at_once_with_their_places() {
    let found = problems(
        "[queue]\nmax_workers = 0\nmax_wrkers = 3\nlease_ttl = \"soon\"\n\n[retyr]\nbase = 1\n\n[retry]\nbase = \"2\"\n\n\
         [limits]\nnonsense = 3\n\"host:a\" = { concurency = 2 }\n\"host:b\" = { rate = \"fast\" }\n",
        &[("ORCHESTRATOR_MAX_PER_HOST", "x")],
    );
    let expected = [
        "f.toml:2  queue.max_workers = 0 | must be 1 to 100000",
        "f.toml:3  queue.max_wrkers | unknown; did you mean queue.max_workers?",
        "f.toml:4  queue.lease_ttl = soon | not a span of time; write it as 500ms, 30s, 5m or 24h",
        "f.toml:6  [retyr] | unknown; did you mean [retry]?",
        "f.toml:10  retry.base = \"2\" | must be a number",
        "f.toml:14  limits.\"host:a\".concurency | unknown; did you mean concurrency?",
        "f.toml:15  limits.\"host:b\".rate = \"fast\" | \"fast\" is not a rate; write it as 10/s, 100/1m or 5/1s burst 20",
        "env ORCHESTRATOR_MAX_PER_HOST = \"x\" | not a number",
    ];
    for line in expected {
        assert!(found.contains(&line.to_owned()), "{line}\nis not in\n{}", found.join("\n"));
    }
    assert!(found.iter().any(|line| line.starts_with("f.toml:13  limits.\"nonsense\" = 3 | ")), "{found:?}");
    assert_eq!(found.len(), expected.len() + 1, "{found:#?}");
}

#[test]
fn broken_toml_names_its_line() {
    let found = problems("[queue]\nmax_workers = = 3\n", &[("ORCHESTRATOR_POLL", "never")]);
    assert!(found[0].starts_with("f.toml:2"), "{found:?}");
    assert!(found.iter().any(|line| line.starts_with("env ORCHESTRATOR_POLL")), "{found:?}");
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    assert_eq!(
        problems("[queue]\nheartbeat = \"5m\"\n", &[]),
        [
            "f.toml:2  queue.heartbeat = 5m | queue.heartbeat (5m) must be shorter than half of queue.lease_ttl (10m)"
        ]
    );
    assert_eq!(problems("[queue]\nlease_ttl = 60\n", &[]).len(), 1, "blames what was set");
    let both = [("ORCHESTRATOR_MAX_RETRIES", "1"), ("ORCHESTRATOR_MAX_RETRY_ATTEMPTS", "2")];
    assert!(problems("", &both)[0].contains("set only one of them"));
}

#[test]
fn a_misspelt_variable_is_a_warning() {
    let all = loaded("", &[("ORCHESTRATOR_MAX_WORKER", "3"), ("ORCHESTRATOR_SERVICE_HOST", "10.0.0.1")], &[]);
    let warnings: Vec<_> = all.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(warnings, ["unknown; did you mean ORCHESTRATOR_MAX_WORKERS?"]);
}

#[test]
fn limit_rules_stack_defaults_names_and_keys() {
    let all = loaded(
        "[queue]\nmax_per_resolver = { unpaywall = 2 }\n[limits]\n\"host:slow.example\" = { rate = \"1/s\" }\n\"db:main\" = { concurrency = 1 }\n",
        &[],
        &[],
    );
    let rules: Vec<_> = all
        .config
        .limit_rules()
        .iter()
        .map(|(key, rule)| {
            format!(
                "{key} {} {}",
                rule.concurrency.unwrap_or(0),
                rule.rate.map(|r| r.to_string()).unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        rules,
        ["db:main 1 ", "host:* 4 ", "host:slow.example 4 1/1s", "resolver:* 8 ", "resolver:unpaywall 2 "]
    );
}

#[test]
fn what_is_shown_reads_back_the_same() {
    let first = loaded(
        "[limits]\n\"host:a\" = { concurrency = 1, rate = \"3/s\" }\n",
        &[("ORCHESTRATOR_MAX_PER_RESOLVER", "5, un.pay=2")],
        &[],
    );
    let again = loaded(&render::effective_file(&first, true), &[], &[]);
    assert_eq!(render::effective_json(&again, false), render::effective_json(&first, false));
    let defaults = loaded(&render::default_file(), &[], &[]);
    assert_eq!(
        render::effective_json(&defaults, false),
        render::effective_json(&loaded("", &[], &[]), false)
    );
}

#[test]
fn the_reference_in_the_docs_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let wanted = render::reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, wanted, "docs/configuration.md is stale: run UPDATE_DOCS=1 cargo test -p orchestrator");
}
