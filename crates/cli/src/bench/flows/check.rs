//! Whether the work was really done. A figure of a load that went wrong would mean nothing.

use super::super::load::{Bench, failed};
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use orchestrator_core::JobState;
use orchestrator_store::{JobFilter, JobView, Page};

/// How many jobs are read at once.
const PAGE: u32 = 1000;

/// Looks at every job of a file: there must be so many, all completed, and each of them right.
pub async fn all_completed(bench: &Bench, jobs: u64, is_right: impl Fn(&JobView) -> bool) -> CliResult<()> {
    let mut seen = 0;
    let mut after = None;
    loop {
        let page = Page { after, limit: PAGE };
        let found = bench.engine.store().list(JobFilter::default(), page).await.map_err(failed)?;
        for job in &found {
            if job.state != JobState::Completed {
                return Err(wrong(format!("job {} is {}{}", job.id, job.state, why(job))));
            }
            if !is_right(job) {
                let output = job.output.as_ref().map_or("nothing", |output| output.as_str());
                let output: String = output.chars().take(100).collect();
                return Err(wrong(format!("job {} completed with {output}, which is not right", job.id)));
            }
        }
        seen += found.len() as u64;
        match found.last() {
            Some(last) => after = Some(last.id),
            None => break,
        }
    }
    if seen == jobs { Ok(()) } else { Err(wrong(format!("there are {seen} jobs, not {jobs}"))) }
}

/// The last thing that went wrong in a job, where anything did.
fn why(job: &JobView) -> String {
    let last = job.tasks.iter().rev().find_map(|task| Some((&task.name, task.history.last()?)));
    last.map_or_else(String::new, |(name, record)| format!(", {name}: {}", record.message))
}

fn wrong(message: String) -> CliError {
    CliError::new(Exit::Error, "bench", format!("the work was not done: {message}"))
}
