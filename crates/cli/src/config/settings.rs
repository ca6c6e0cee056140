//! The one table of settings: name, environment names, default, reader and a line of help. Loading,
//! `config show`, the default file and the reference are all made from it.

use super::Config;
use super::value::{address, caps, keep, number, size, span, switch, text, web, word};
use std::fmt::Display;

/// How a setting is written in a file and in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Number,
    /// A span of time: text such as `"5m"`, or a number of seconds.
    Span,
    /// A size: text such as `"10MB"`, or a number of bytes.
    Size,
    /// A text.
    Text,
    /// A number, or a table of names and numbers.
    Caps,
}

/// One setting.
pub struct Setting {
    /// Section and name, as in the file: `queue.max_workers`.
    pub key: &'static str,
    /// The environment variables that set it.
    pub env: &'static [&'static str],
    /// Its default, as text.
    pub default: &'static str,
    /// How it is written.
    pub kind: Kind,
    /// What it does, in a line.
    pub doc: &'static str,
    /// Reads a text into the configuration and answers with the value as it is shown.
    pub set: fn(&mut Config, &str) -> Result<String, String>,
}

impl Setting {
    /// The section that it stands in.
    pub fn section(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(section, _)| section)
    }

    /// Its name inside the section.
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }
}

/// The setting of a key.
pub fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The setting that an environment variable sets.
pub fn find_env(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.env.contains(&name))
}

/// Levels of logging.
pub const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

/// Forms of logging.
pub const FORMATS: &[&str] = &["text", "json"];

const MANY: u64 = u32::MAX as u64;

fn put<T: Display>(slot: &mut T, value: Result<T, String>) -> Result<String, String> {
    *slot = value?;
    Ok(slot.to_string())
}

/// Every setting, in the order of the default file.
pub static SETTINGS: &[Setting] = &[
    Setting {
        key: "store.db",
        env: &["ORCHESTRATOR_DB", "ORCHESTRATOR_DATABASE_URL"],
        default: "orchestrator.db",
        kind: Kind::Text,
        doc: "The database: a file, made when the first job comes in, or postgres://USER@HOST/DATABASE.",
        set: |c, t| {
            c.store.db = text(t)?;
            Ok(crate::database::shown(&c.store.db))
        },
    },
    Setting {
        key: "store.busy_timeout",
        env: &["ORCHESTRATOR_BUSY_TIMEOUT"],
        default: "10s",
        kind: Kind::Span,
        doc: "How long to wait while another process writes to the database file.",
        set: |c, t| put(&mut c.store.busy_timeout, span(t)),
    },
    Setting {
        key: "store.password_file",
        env: &["ORCHESTRATOR_PASSWORD_FILE"],
        default: "",
        kind: Kind::Text,
        doc: "PostgreSQL: a file with the password, where neither the URL nor PGPASSWORD has it.",
        set: |c, t| put(&mut c.store.password_file, Ok(t.to_owned())),
    },
    Setting {
        key: "store.statement_timeout",
        env: &["ORCHESTRATOR_STATEMENT_TIMEOUT"],
        default: "30s",
        kind: Kind::Span,
        doc: "PostgreSQL: after so long a statement is given up.",
        set: |c, t| put(&mut c.store.statement_timeout, span(t)),
    },
    Setting {
        key: "store.connections",
        env: &["ORCHESTRATOR_CONNECTIONS"],
        default: "8",
        kind: Kind::Number,
        doc: "PostgreSQL: how many connections of a process write at once; about half as many read.",
        set: |c, t| put(&mut c.store.connections, number(t, 2..=500)),
    },
    Setting {
        key: "queue.max_workers",
        env: &["ORCHESTRATOR_MAX_WORKERS"],
        default: "8",
        kind: Kind::Number,
        doc: "How many jobs run at once in one process.",
        set: |c, t| put(&mut c.queue.max_workers, number(t, 1..=100_000)),
    },
    Setting {
        key: "queue.max_per_host",
        env: &["ORCHESTRATOR_MAX_PER_HOST"],
        default: "4",
        kind: Kind::Caps,
        doc: "How many jobs run at once per host, over all processes; a table gives hosts a number of their own.",
        set: |c, t| put(&mut c.queue.max_per_host, caps(t, 4)),
    },
    Setting {
        key: "queue.max_per_resolver",
        env: &["ORCHESTRATOR_MAX_PER_RESOLVER"],
        default: "8",
        kind: Kind::Caps,
        doc: "The same per resolver, such as { \"*\" = 8, unpaywall = 2 }.",
        set: |c, t| put(&mut c.queue.max_per_resolver, caps(t, 8)),
    },
    Setting {
        key: "queue.lease_ttl",
        env: &["ORCHESTRATOR_LEASE_TTL"],
        default: "10m",
        kind: Kind::Span,
        doc: "After this long without a heartbeat a job is taken from its worker and run again.",
        set: |c, t| put(&mut c.queue.lease_ttl, span(t)),
    },
    Setting {
        key: "queue.heartbeat",
        env: &["ORCHESTRATOR_HEARTBEAT"],
        default: "30s",
        kind: Kind::Span,
        doc: "How often a worker says that it is alive; shorter than half of lease_ttl.",
        set: |c, t| put(&mut c.queue.heartbeat, span(t)),
    },
    Setting {
        key: "queue.grace",
        env: &["ORCHESTRATOR_GRACE"],
        default: "30s",
        kind: Kind::Span,
        doc: "How long running jobs may go on after a stop was asked for; the rest is given back.",
        set: |c, t| put(&mut c.queue.grace, span(t)),
    },
    Setting {
        key: "queue.max_payload",
        env: &["ORCHESTRATOR_MAX_PAYLOAD"],
        default: "1MiB",
        kind: Kind::Size,
        doc: "The largest payload that is taken in.",
        set: |c, t| put(&mut c.queue.max_payload, size(t)),
    },
    Setting {
        key: "queue.poll",
        env: &["ORCHESTRATOR_POLL"],
        default: "200ms",
        kind: Kind::Span,
        doc: "How often to look for jobs that another process put in.",
        set: |c, t| put(&mut c.queue.poll, span(t)),
    },
    Setting {
        key: "retry.max_retries",
        env: &["ORCHESTRATOR_MAX_RETRIES", "ORCHESTRATOR_MAX_RETRY_ATTEMPTS"],
        default: "3",
        kind: Kind::Number,
        doc: "How often a failed attempt is repeated; 3 means four attempts.",
        set: |c, t| put(&mut c.retry.max_retries, number(t, 0..=MANY)),
    },
    Setting {
        key: "retry.initial",
        env: &["ORCHESTRATOR_RETRY_INITIAL"],
        default: "1s",
        kind: Kind::Span,
        doc: "The wait after the first failure.",
        set: |c, t| put(&mut c.retry.initial, span(t)),
    },
    Setting {
        key: "retry.base",
        env: &["ORCHESTRATOR_RETRY_BASE", "ORCHESTRATOR_RETRY_BACKOFF_BASE"],
        default: "2",
        kind: Kind::Number,
        doc: "What each further wait is multiplied by.",
        set: |c, t| put(&mut c.retry.base, number(t, 1..=MANY)),
    },
    Setting {
        key: "retry.max",
        env: &["ORCHESTRATOR_RETRY_MAX"],
        default: "1m",
        kind: Kind::Span,
        doc: "No wait is longer, save one that the other side asked for.",
        set: |c, t| put(&mut c.retry.max, span(t)),
    },
    Setting {
        key: "retry.jitter",
        env: &["ORCHESTRATOR_RETRY_JITTER"],
        default: "50",
        kind: Kind::Number,
        doc: "How much of a wait is random, in percent.",
        set: |c, t| put(&mut c.retry.jitter_percent, number(t, 0..=100)),
    },
    Setting {
        key: "task.timeout",
        env: &["ORCHESTRATOR_TASK_TIMEOUT", "ORCHESTRATOR_TASK_TIMEOUT_DEFAULT"],
        default: "5m",
        kind: Kind::Span,
        doc: "The longest that one attempt may take, unless the job says otherwise.",
        set: |c, t| put(&mut c.task.timeout, span(t)),
    },
    Setting {
        key: "task.max_crashes",
        env: &["ORCHESTRATOR_MAX_CRASHES"],
        default: "3",
        kind: Kind::Number,
        doc: "How often a job's worker may vanish before the job is put aside as a poison.",
        set: |c, t| put(&mut c.task.max_crashes, number(t, 1..=MANY)),
    },
    Setting {
        key: "retention.completed",
        env: &["ORCHESTRATOR_RETENTION_COMPLETED"],
        default: "off",
        kind: Kind::Span,
        doc: "After so long jobs that completed are removed, such as \"30d\"; off keeps them for ever.",
        set: |c, t| put(&mut c.retention.completed, keep(t)),
    },
    Setting {
        key: "retention.failed",
        env: &["ORCHESTRATOR_RETENTION_FAILED"],
        default: "off",
        kind: Kind::Span,
        doc: "The same for jobs that failed, timed out or were cancelled and have no open dead letter.",
        set: |c, t| put(&mut c.retention.failed, keep(t)),
    },
    Setting {
        key: "retention.dead_letters",
        env: &["ORCHESTRATOR_RETENTION_DEAD_LETTERS"],
        default: "off",
        kind: Kind::Span,
        doc: "The same for jobs with a dead letter on which nobody has decided.",
        set: |c, t| put(&mut c.retention.dead_letters, keep(t)),
    },
    Setting {
        key: "retention.journal",
        env: &["ORCHESTRATOR_RETENTION_JOURNAL"],
        default: "off",
        kind: Kind::Span,
        doc: "After so long entries of the journal of changes are removed.",
        set: |c, t| put(&mut c.retention.journal, keep(t)),
    },
    Setting {
        key: "retention.archive",
        env: &["ORCHESTRATOR_RETENTION_ARCHIVE"],
        default: "",
        kind: Kind::Text,
        doc: "A directory: jobs are written there as JSON lines before they are removed. Empty archives nothing.",
        set: |c, t| put(&mut c.retention.archive, Ok(t.to_owned())),
    },
    Setting {
        key: "server.listen",
        env: &["ORCHESTRATOR_LISTEN"],
        default: "127.0.0.1:8000",
        kind: Kind::Text,
        doc: "Where `serve` listens.",
        set: |c, t| put(&mut c.server.listen, text(t)),
    },
    Setting {
        key: "server.max_body",
        env: &["ORCHESTRATOR_MAX_BODY"],
        default: "2MB",
        kind: Kind::Size,
        doc: "The largest body of a request.",
        set: |c, t| put(&mut c.server.max_body, size(t)),
    },
    Setting {
        key: "server.max_document",
        env: &["ORCHESTRATOR_MAX_DOCUMENT"],
        default: "16MB",
        kind: Kind::Size,
        doc: "The largest request that brings a job with a document.",
        set: |c, t| put(&mut c.server.max_document, size(t)),
    },
    Setting {
        key: "server.drain",
        env: &["ORCHESTRATOR_DRAIN"],
        default: "10s",
        kind: Kind::Span,
        doc: "What requests get that are under way when the server is stopped.",
        set: |c, t| put(&mut c.server.drain, span(t)),
    },
    Setting {
        key: "server.metrics",
        env: &["ORCHESTRATOR_METRICS_ENABLED"],
        default: "on",
        kind: Kind::Text,
        doc: "Whether there are metrics, at /metrics of the API and at metrics_listen: on or off.",
        set: |c, t| put(&mut c.server.metrics, switch(t)),
    },
    Setting {
        key: "server.metrics_listen",
        env: &["ORCHESTRATOR_METRICS_LISTEN", "ORCHESTRATOR_METRICS_PORT"],
        default: "127.0.0.1:9090",
        kind: Kind::Text,
        doc: "Where `serve` shows metrics and health beside the API: an address, a port of this machine, or empty for nowhere.",
        set: |c, t| put(&mut c.server.metrics_listen, address(t)),
    },
    Setting {
        key: "worker.metrics_listen",
        env: &["ORCHESTRATOR_WORKER_METRICS_LISTEN"],
        default: "",
        kind: Kind::Text,
        doc: "The same for `worker`.",
        set: |c, t| put(&mut c.worker.metrics_listen, address(t)),
    },
    Setting {
        key: "download.dir",
        env: &["ORCHESTRATOR_DOWNLOAD_DIR"],
        default: "downloads",
        kind: Kind::Text,
        doc: "Where the download handler puts files.",
        set: |c, t| put(&mut c.download.dir, text(t)),
    },
    Setting {
        key: "download.max_size",
        env: &["ORCHESTRATOR_DOWNLOAD_MAX_SIZE"],
        default: "1GiB",
        kind: Kind::Size,
        doc: "The largest file that is downloaded.",
        set: |c, t| put(&mut c.download.max_size, size(t)),
    },
    Setting {
        key: "http.timeout",
        env: &["ORCHESTRATOR_HTTP_TIMEOUT"],
        default: "30s",
        kind: Kind::Span,
        doc: "How long the http handler waits for a whole answer, and the download handler for the next piece of one.",
        set: |c, t| put(&mut c.http.timeout, span(t)),
    },
    Setting {
        key: "log.level",
        env: &["ORCHESTRATOR_LOG_LEVEL"],
        default: "warn",
        kind: Kind::Text,
        doc: "How much is logged to stderr: error, warn, info, debug or trace. RUST_LOG wins over it.",
        set: |c, t| put(&mut c.log.level, word(t, LEVELS)),
    },
    Setting {
        key: "log.format",
        env: &["ORCHESTRATOR_LOG_FORMAT"],
        default: "text",
        kind: Kind::Text,
        doc: "The form of the log: text, or json with one object per line.",
        set: |c, t| put(&mut c.log.format, word(t, FORMATS)),
    },
    Setting {
        key: "traces.endpoint",
        env: &["ORCHESTRATOR_TRACES_ENDPOINT"],
        default: "",
        kind: Kind::Text,
        doc: "Where traces are sent by OTLP over HTTP, such as http://127.0.0.1:4318. Empty: as OTEL_EXPORTER_OTLP_ENDPOINT says, else nowhere.",
        set: |c, t| put(&mut c.traces.endpoint, web(t)),
    },
    Setting {
        key: "traces.sample",
        env: &["ORCHESTRATOR_TRACES_SAMPLE"],
        default: "100",
        kind: Kind::Number,
        doc: "How many of the traces that begin here are kept, in percent. A caller that brings a trace along decides for itself.",
        set: |c, t| put(&mut c.traces.sample, number(t, 0..=100)),
    },
    Setting {
        key: "traces.service",
        env: &["ORCHESTRATOR_TRACES_SERVICE"],
        default: "orchestrator",
        kind: Kind::Text,
        doc: "The name of the service in traces.",
        set: |c, t| put(&mut c.traces.service, text(t)),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_key_and_no_variable_stands_twice() {
        let keys: BTreeSet<_> = SETTINGS.iter().map(|s| s.key).collect();
        assert_eq!(keys.len(), SETTINGS.len());
        let names: Vec<_> = SETTINGS.iter().flat_map(|s| s.env).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| name.starts_with("ORCHESTRATOR_")));
    }

    #[test]
    fn every_default_reads_and_is_shown_as_it_is_written() {
        let mut config = Config::default();
        for setting in SETTINGS {
            assert_eq!(
                (setting.set)(&mut config, setting.default).as_deref(),
                Ok(setting.default),
                "{}",
                setting.key
            );
        }
        assert_eq!(config.retry, orchestrator_core::RetryPolicy::default());
        assert_eq!(config.queue.max_payload.0, orchestrator_core::job::DEFAULT_MAX_PAYLOAD as u64);
    }
}
