//! The configuration: defaults, then the file, then the environment, then flags. Every layer is
//! checked whole and all that is wrong is told at once, each with its place.

mod file;
mod load;
mod problem;
pub mod render;
pub mod settings;
pub mod value;

#[cfg(test)]
mod tests;

pub use load::{Flag, Loaded, Sources, layered, load};
pub use problem::{Problem, lines as problem_lines, near};

use orchestrator_core::{LimitKey, LimitRule, Millis, RetryPolicy};
use std::collections::BTreeMap;
use value::{Caps, Keep, Size, Switch};

/// The file that is read when `--config` names none.
pub const DEFAULT_FILE: &str = "orchestrator.toml";

/// Every setting, checked. [`load()`] makes it; the values of `Default` are not the defaults of the
/// settings, which stand in [`settings::SETTINGS`].
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Where jobs are kept.
    pub store: StoreConfig,
    /// How jobs are taken in and handed out.
    pub queue: QueueConfig,
    /// How failures are retried.
    pub retry: RetryPolicy,
    /// What holds for every attempt.
    pub task: TaskConfig,
    /// How long what is over is kept.
    pub retention: RetentionConfig,
    /// The server.
    pub server: ServerConfig,
    /// Workers that are processes of their own.
    pub worker: WorkerConfig,
    /// The `download` handler.
    pub download: DownloadConfig,
    /// Calls to other services.
    pub http: HttpConfig,
    /// The log.
    pub log: LogConfig,
    /// Traces.
    pub traces: TracesConfig,
    /// Rules for single limit keys.
    pub limits: BTreeMap<LimitKey, LimitRule>,
}

/// `[store]`
#[derive(Clone, Debug, Default)]
pub struct StoreConfig {
    /// The database file, or the URL of a PostgreSQL database.
    pub db: String,
    /// The longest wait for another writer of a file.
    pub busy_timeout: Millis,
    /// The file that holds the password of a PostgreSQL database, if its URL does not.
    pub password_file: String,
    /// After so long a PostgreSQL database gives a statement up.
    pub statement_timeout: Millis,
    /// Connections for writing to a PostgreSQL database.
    pub connections: u32,
}

/// `[queue]`
#[derive(Clone, Debug, Default)]
pub struct QueueConfig {
    /// Jobs at once in one process.
    pub max_workers: u32,
    /// Jobs at once per host.
    pub max_per_host: Caps,
    /// Jobs at once per resolver.
    pub max_per_resolver: Caps,
    /// How long a lease holds without a heartbeat.
    pub lease_ttl: Millis,
    /// The time between two heartbeats.
    pub heartbeat: Millis,
    /// What running jobs get after a stop was asked for.
    pub grace: Millis,
    /// The largest payload.
    pub max_payload: Size,
    /// How often to look for work of other processes.
    pub poll: Millis,
}

/// `[task]`
#[derive(Clone, Debug, Default)]
pub struct TaskConfig {
    /// The longest attempt.
    pub timeout: Millis,
    /// How often a worker may vanish.
    pub max_crashes: u32,
}

/// `[retention]`
#[derive(Clone, Debug, Default)]
pub struct RetentionConfig {
    /// How long jobs stay that completed.
    pub completed: Keep,
    /// How long jobs stay that ended badly.
    pub failed: Keep,
    /// How long jobs stay that have an open dead letter.
    pub dead_letters: Keep,
    /// How long entries of the journal stay.
    pub journal: Keep,
    /// Where jobs are written before they go; nowhere, if empty.
    pub archive: String,
}

/// `[server]`
#[derive(Clone, Debug, Default)]
pub struct ServerConfig {
    /// The address.
    pub listen: String,
    /// The largest body of a request.
    pub max_body: Size,
    /// The largest request with a document.
    pub max_document: Size,
    /// What requests get that are under way when a stop is asked for.
    pub drain: Millis,
    /// Whether there are metrics.
    pub metrics: Switch,
    /// Where they are shown beside the API; nowhere, if empty.
    pub metrics_listen: String,
}

/// `[worker]`
#[derive(Clone, Debug, Default)]
pub struct WorkerConfig {
    /// Where metrics are shown; nowhere, if empty.
    pub metrics_listen: String,
}

/// `[download]`
#[derive(Clone, Debug, Default)]
pub struct DownloadConfig {
    /// Where files go.
    pub dir: String,
    /// The largest file.
    pub max_size: Size,
}

/// `[http]`
#[derive(Clone, Debug, Default)]
pub struct HttpConfig {
    /// How long to wait for the other side.
    pub timeout: Millis,
}

/// `[log]`
#[derive(Clone, Debug, Default)]
pub struct LogConfig {
    /// One of [`settings::LEVELS`].
    pub level: String,
    /// One of [`settings::FORMATS`].
    pub format: String,
}

/// `[traces]`
#[derive(Clone, Debug, Default)]
pub struct TracesConfig {
    /// Where they are sent; empty where nothing says so here.
    pub endpoint: String,
    /// How many of those that begin here are kept, in percent.
    pub sample: u32,
    /// The name of the service.
    pub service: String,
}

impl Config {
    /// The limit rules that the configuration asks for: the defaults of hosts and resolvers, names
    /// with a number of their own, and `[limits]`. An exact rule replaces the default of its kind
    /// whole, so one that gives only a rate takes over the number that would else be lost.
    pub fn limit_rules(&self) -> BTreeMap<LimitKey, LimitRule> {
        let mut rules = BTreeMap::new();
        for (kind, caps) in [("host", &self.queue.max_per_host), ("resolver", &self.queue.max_per_resolver)] {
            let all =
                std::iter::once(("*", &caps.default)).chain(caps.named.iter().map(|(n, c)| (n.as_str(), c)));
            for (name, cap) in all {
                if let Ok(key) = LimitKey::new(kind, name) {
                    rules.insert(key, LimitRule::at_most(*cap));
                }
            }
        }
        for (key, rule) in &self.limits {
            let below = rules.get(key).or_else(|| rules.get(&key.default_key())).copied().unwrap_or_default();
            let concurrency = rule.concurrency.or(below.concurrency);
            rules.insert(key.clone(), LimitRule { concurrency, ..*rule });
        }
        rules
    }
}
