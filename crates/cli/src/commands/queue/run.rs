//! `orchestrator queue run`

use super::serve::{Ended, Plan, serve};
use crate::cli::Globals;
use crate::config::Flag;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::count;
use crate::session::{Missing, Session};
use crate::signals::Signal;
use clap::Args;
use orchestrator_core::spec::{DEFAULT_QUEUE, is_name};

/// Arguments of `queue run`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator queue run --drain
  orchestrator queue run --queue papers --queue default --max-workers 32",
    after_help = "Ctrl-C once: running jobs may finish (--grace), the rest is given back at no cost. Twice: stop at once.
SIGTERM does the same as the first Ctrl-C and ends with 0.
With --drain the exit code is 6 if a job failed for good. With --json, stdout has one event per line."
)]
pub struct RunArgs {
    /// End when nothing is ready, parked, running or retrying; what is scheduled for later stays
    #[arg(long)]
    drain: bool,
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

impl RunArgs {
    fn flags(&self) -> Vec<Flag> {
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

fn failed_text(failed: u64) -> String {
    if failed == 1 {
        "1 job failed for good".to_owned()
    } else {
        format!("{} jobs failed for good", count(failed))
    }
}

/// Runs jobs.
pub async fn run(args: RunArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, args.flags())?;
    let store = session.open(Missing::Create).await?;
    let mut queues = args.queue.clone();
    queues.sort();
    queues.dedup();
    let plan = Plan { queues: queues.iter().map(|name| name.as_str().into()).collect(), drain: args.drain };
    let served = serve(&session, store.clone(), plan).await;
    store.close().await;
    let (report, ended) = served?;
    report.tell(session.out)?;
    match ended {
        Ended::Asked(Signal::Interrupt) => Ok(Exit::Interrupted),
        Ended::Asked(Signal::Terminate) => Ok(Exit::Ok),
        Ended::Drained if report.failed > 0 => {
            Err(CliError::new(Exit::WorkFailed, "work_failed", failed_text(report.failed))
                .hint("`orchestrator queue retry-failed` runs them again"))
        }
        Ended::Drained => Ok(Exit::Ok),
    }
}
