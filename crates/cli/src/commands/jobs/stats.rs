//! `orchestrator jobs stats`

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::jobs::shown;
use crate::output::{columns, count, took};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{JobState, Millis, Timestamp, human};
use orchestrator_store::{Catalog, JobFilter, JobView, Page};
use serde::Serialize;
use std::collections::BTreeMap;

/// Jobs are read in pages of this length.
const PAGE: u32 = 500;

/// Arguments of `jobs stats`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator jobs stats
  orchestrator jobs stats --since 24h --json")]
pub struct StatsArgs {
    /// Only jobs that were put in within this span, such as 24h
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span)]
    since: Option<Millis>,
    /// Count at most so many jobs, the newest
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    limit: u64,
}

/// The jobs of one flow, or of one handler.
#[derive(Default, Serialize)]
struct Counts {
    total: u64,
    #[serde(flatten)]
    states: BTreeMap<&'static str, u64>,
    /// How long completed jobs took on average.
    #[serde(rename = "mean_ms")]
    mean: Option<u64>,
    #[serde(skip)]
    spent: u128,
}

impl Counts {
    fn add(&mut self, job: &JobView) {
        self.total += 1;
        *self.states.entry(job.state.as_str()).or_default() += 1;
        if job.state == JobState::Completed {
            self.spent += u128::from(shown::job_took(job, job.created).unwrap_or_default().0);
            let completed = self.of(JobState::Completed).max(1);
            self.mean = u64::try_from(self.spent / u128::from(completed)).ok();
        }
    }

    fn of(&self, state: JobState) -> u64 {
        self.states.get(state.as_str()).copied().unwrap_or(0)
    }
}

#[derive(Serialize)]
struct Stats {
    jobs: Counts,
    flows: BTreeMap<String, Counts>,
    complete: bool,
}

/// Counts the jobs.
pub async fn run(args: &StatsArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let oldest = args.since.map(|span| store.now() - span);
    let stats = gather(&*store, oldest, args.limit).await?;
    store.close().await;
    let out = session.out;
    if !out.is_table() {
        out.json(&stats)?;
        return Ok(Exit::Ok);
    }
    let shown: Vec<JobState> =
        JobState::ALL.iter().copied().filter(|state| stats.jobs.of(*state) > 0).collect();
    let mut headings = vec!["FLOW".to_owned(), "JOBS".to_owned()];
    headings.extend(shown.iter().map(|state| state.as_str().to_uppercase()));
    headings.push("MEAN".to_owned());
    let row = |name: &str, counts: &Counts| {
        let mut row = vec![name.to_owned(), count(counts.total)];
        row.extend(shown.iter().map(|state| count(counts.of(*state))));
        row.push(counts.mean.map_or_else(|| "-".to_owned(), |ms| took(Millis(ms))));
        row
    };
    let mut rows: Vec<_> = stats.flows.iter().map(|(name, counts)| row(name, counts)).collect();
    rows.push(row("all", &stats.jobs));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let right: Vec<usize> = (1..headings.len()).collect();
    out.data(&columns(&headings, &right, rows))?;
    if !stats.complete {
        out.note(format!("only the newest {} jobs were counted; --limit N counts more", count(args.limit)));
    }
    Ok(Exit::Ok)
}

async fn gather(store: &dyn Catalog, oldest: Option<Timestamp>, most: u64) -> CliResult<Stats> {
    let mut stats = Stats { jobs: Counts::default(), flows: BTreeMap::new(), complete: true };
    let filter = JobFilter { newest_first: true, ..JobFilter::default() };
    let mut after = None;
    loop {
        let page = store.list(filter.clone(), Page { after, limit: PAGE }).await?;
        let ended = page.len() < PAGE as usize;
        after = page.last().map(|job| job.id);
        for job in &page {
            if oldest.is_some_and(|oldest| job.created < oldest) {
                return Ok(stats);
            }
            if stats.jobs.total >= most {
                stats.complete = false;
                return Ok(stats);
            }
            stats.jobs.add(job);
            let name = match &job.flow {
                Some(flow) => flow.name.to_string(),
                None => format!("({})", shown::work(job)),
            };
            stats.flows.entry(name).or_default().add(job);
        }
        if ended {
            return Ok(stats);
        }
    }
}
