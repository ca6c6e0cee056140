//! The options of every command that serves queues.

use crate::config::Flag;
use crate::error::{CliError, CliResult};
use crate::session::Session;
use clap::Args;
use orchestrator_core::spec::{DEFAULT_QUEUE, is_name};
use std::sync::Arc;

/// What to serve, and how.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// A queue to serve; may be repeated
    #[arg(long, value_name = "QUEUE", default_value = DEFAULT_QUEUE, value_parser = queue_name)]
    queue: Vec<String>,
    /// How many jobs run at once [default: 8]
    #[arg(long, value_name = "N")]
    max_workers: Option<String>,
    /// How many jobs run at once per host [default: 4]
    #[arg(long, value_name = "N")]
    max_per_host: Option<String>,
    /// The same per resolver, such as 8 or '8, unpaywall=2' [default: 8]
    #[arg(long, value_name = "CAPS")]
    max_per_resolver: Option<String>,
    /// How long a job is held without a heartbeat [default: 10m]
    #[arg(long, value_name = "SPAN")]
    lease_ttl: Option<String>,
    /// How often a worker says that it is alive [default: 30s]
    #[arg(long, value_name = "SPAN")]
    heartbeat: Option<String>,
    /// How long running jobs may go on after a stop was asked for [default: 30s]
    #[arg(long, value_name = "SPAN")]
    grace: Option<String>,
    /// How often to look for jobs that another process put in [default: 200ms]
    #[arg(long, value_name = "SPAN")]
    poll: Option<String>,
}

fn queue_name(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err("not a name (A-Z a-z 0-9 . _ - /)".to_owned()) }
}

impl ServeArgs {
    /// The queues, each once.
    pub fn queues(&self) -> Vec<Arc<str>> {
        let mut queues: Vec<Arc<str>> = self.queue.iter().map(|name| name.as_str().into()).collect();
        queues.sort();
        queues.dedup();
        queues
    }

    /// Refuses what only makes sense on a database.
    pub fn check(&self, session: &Session) -> CliResult<()> {
        let host = self.max_per_host.as_ref().map(|_| "--max-per-host");
        let limit = host.or(self.max_per_resolver.as_ref().map(|_| "--max-per-resolver"));
        let Some(flag) = limit.filter(|_| session.is_remote()) else { return Ok(()) };
        Err(CliError::usage(format!("{flag} makes no sense with --server: limits are the server's"))
            .hint("`orchestrator limits set` changes them there"))
    }

    /// The settings that they give.
    pub fn flags(&self) -> Vec<Flag> {
        let all = [
            ("queue.max_workers", "--max-workers", &self.max_workers),
            ("queue.max_per_host", "--max-per-host", &self.max_per_host),
            ("queue.max_per_resolver", "--max-per-resolver", &self.max_per_resolver),
            ("queue.lease_ttl", "--lease-ttl", &self.lease_ttl),
            ("queue.heartbeat", "--heartbeat", &self.heartbeat),
            ("queue.grace", "--grace", &self.grace),
            ("queue.poll", "--poll", &self.poll),
        ];
        let given =
            all.into_iter().filter_map(|(key, name, value)| Some(Flag { key, name, value: value.clone()? }));
        given.collect()
    }
}
