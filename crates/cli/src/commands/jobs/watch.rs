//! `orchestrator jobs watch`

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::jobs::find;
use crate::live::{Live, report};
use crate::output::Output;
use crate::session::{Missing, Session};
use crate::signals::Signals;
use clap::Args;
use orchestrator_core::{JobId, Millis, human};
use orchestrator_engine::{Engine, Waited};
use orchestrator_store::JobView;

/// Arguments of `jobs watch`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator jobs watch 019a8f00
  orchestrator jobs watch 019a8f00 --timeout 10m --json",
    after_help = "Exit code: 0 completed, 6 failed, cancelled or timed out, 7 the wait was too long, 130 Ctrl-C.
The job runs elsewhere: `orchestrator run --resume JOB` also works on it."
)]
pub struct WatchArgs {
    /// The job: its id, or the start of it
    job: String,
    /// Wait no longer than this
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span)]
    timeout: Option<Millis>,
}

/// Watches a job to its end.
pub async fn run(args: &WatchArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let id = find::id(&*store, &args.job).await?;
    let engine = session.engine(store.clone());
    let job = wait(session.out, &engine, id, args.timeout).await?;
    store.close().await;
    report(session.out, &job)
}

/// Shows a job until it has ended.
pub async fn wait(out: Output, engine: &Engine, id: JobId, limit: Option<Millis>) -> CliResult<JobView> {
    let mut signals = Signals::listen()?;
    let mut live = Live::start(out, false);
    let waited = tokio::select! {
        waited = live.until_ended(engine, id, limit) => waited,
        _ = signals.next() => Err(CliError::new(
            Exit::Interrupted,
            "interrupted",
            format!("stopped waiting for job {id}, which goes on"),
        )),
    };
    live.finish();
    match waited? {
        Waited::Ended(job) => Ok(job),
        Waited::TimedOut(job) => Err(CliError::new(
            Exit::TimedOut,
            "wait_timed_out",
            format!("the job has not ended: it is {}", job.state),
        )
        .at(format!("job {id}"))
        .hint(format!("`orchestrator run --resume {id}` works on it"))),
    }
}
