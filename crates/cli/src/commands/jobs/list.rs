//! `orchestrator jobs list`

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::jobs::{find, shown};
use crate::output::{Output, age, columns, cut, took};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{JobState, Timestamp};
use orchestrator_store::{Catalog, JobFilter, JobView, Page};

/// The states of jobs that have not ended.
pub const LIVE: [JobState; 5] =
    [JobState::Pending, JobState::Running, JobState::Pausing, JobState::Paused, JobState::Recovering];
/// The states of jobs that ended badly, but not on request.
const FAILED: [JobState; 2] = [JobState::Failed, JobState::TimedOut];
/// Jobs are read in pages of this length.
const PAGE: u32 = 500;

/// Arguments of `jobs list`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator jobs list --active
  orchestrator jobs list --flow dataset-build --status failed --status timed_out --json")]
pub struct ListArgs {
    /// Only in this state; may be repeated: pending, running, pausing, paused, recovering, completed,
    /// failed, timed_out, cancelled
    #[arg(long, value_name = "STATE", value_parser = state)]
    status: Vec<JobState>,
    /// Only of this flow
    #[arg(long, value_name = "FLOW")]
    flow: Option<String>,
    /// Only those that have not ended
    #[arg(long, conflicts_with_all = ["status", "failed", "recoverable"])]
    active: bool,
    /// Only those that failed or timed out
    #[arg(long, conflicts_with_all = ["status", "recoverable"])]
    failed: bool,
    /// Only those that ended badly and may be recovered
    #[arg(long)]
    recoverable: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// The oldest first
    #[arg(long)]
    oldest_first: bool,
    /// As JSON lines, each job whole as `jobs status` shows it, with its tasks and their items
    #[arg(long)]
    full: bool,
}

fn state(word: &str) -> Result<JobState, String> {
    JobState::from_word(word).ok_or_else(|| {
        let words: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
        format!("it is one of {}", words.join(", "))
    })
}

impl ListArgs {
    fn filter(&self) -> JobFilter {
        let states = match (self.active, self.failed) {
            (true, _) => LIVE.to_vec(),
            (_, true) => FAILED.to_vec(),
            _ => self.status.clone(),
        };
        JobFilter {
            states,
            flow: self.flow.as_deref().map(Into::into),
            recoverable: self.recoverable,
            newest_first: !self.oldest_first,
            ..JobFilter::default()
        }
    }
}

/// Lists the jobs.
pub async fn run(args: &ListArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    if args.full {
        let result = export(session.out, &*store, &args.filter(), args.limit as usize).await;
        store.close().await;
        return result;
    }
    let jobs = take(&*store, &args.filter(), args.limit as usize).await?;
    let now = store.now();
    store.close().await;
    let out = session.out;
    if out.is_table() {
        out.data(&table(out, &jobs, now))?;
        if jobs.len() == args.limit as usize {
            out.note(format!("the first {}; --limit N shows more", args.limit));
        }
    } else {
        out.json_list(&jobs.iter().map(shown::summary).collect::<Vec<_>>())?;
    }
    Ok(Exit::Ok)
}

/// Writes jobs whole, page by page, so that any number of them takes little memory.
async fn export(out: Output, store: &dyn Catalog, filter: &JobFilter, most: usize) -> CliResult {
    let (mut after, mut left) = (None, most);
    while left > 0 {
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(PAGE);
        let page = store.list(filter.clone(), Page { after, limit }).await?;
        let ended = page.len() < limit as usize;
        left -= page.len();
        after = page.last().map(|job| job.id);
        let mut text = String::new();
        for mut job in page {
            for group in job.tasks.clone().iter().filter(|task| task.items.is_some()) {
                job.tasks.extend(find::items(store, job.id, group).await?);
            }
            text += &serde_json::to_string(&job).map_err(|error| CliError::stdout(&error.into()))?;
            text.push('\n');
        }
        out.data(&text)?;
        if ended {
            break;
        }
    }
    Ok(Exit::Ok)
}

/// The first jobs that a filter takes.
async fn take(store: &dyn Catalog, filter: &JobFilter, most: usize) -> CliResult<Vec<JobView>> {
    let mut jobs: Vec<JobView> = vec![];
    while jobs.len() < most {
        let limit = u32::try_from(most - jobs.len()).unwrap_or(u32::MAX).min(PAGE);
        let page = Page { after: jobs.last().map(|job| job.id), limit };
        let found = store.list(filter.clone(), page).await?;
        let ended = found.len() < limit as usize;
        jobs.extend(found);
        if ended {
            break;
        }
    }
    Ok(jobs)
}

fn table(out: Output, jobs: &[JobView], now: Timestamp) -> String {
    let rows = jobs.iter().map(|job| {
        let over = job.tasks.iter().filter(|task| task.state.is_terminal()).count();
        let remark = match job.state {
            JobState::Failed | JobState::TimedOut | JobState::Cancelled => shown::last_error(job),
            _ => None,
        };
        vec![
            job.id.to_string(),
            job.state.to_string(),
            cut(&shown::work(job), 30),
            format!("{over}/{}", job.tasks.len()),
            age(now.since(job.created)),
            shown::job_took(job, now).map_or_else(|| "-".to_owned(), took),
            cut(&remark.or_else(|| job.key.as_deref().map(str::to_owned)).unwrap_or_default(), 60),
        ]
    });
    let table =
        columns(&["JOB", "STATE", "FLOW", "TASKS", "AGE", "TOOK", "KEY OR ERROR"], &[3], rows.collect());
    // Colour comes last: it would upset the widths.
    let mut lines = table.lines();
    let heading =
        lines.next().map(|line| out.paint(crate::output::Paint::Bold, line) + "\n").unwrap_or_default();
    let painted = lines.zip(jobs).map(|(line, job)| {
        let word = job.state.as_str();
        line.replacen(word, &out.paint(shown::job_paint(job.state), word), 1) + "\n"
    });
    heading + &painted.collect::<String>()
}
