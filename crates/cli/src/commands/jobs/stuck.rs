//! `orchestrator jobs stuck`

use super::list::LIVE;
use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::jobs::shown;
use crate::jobs::why::{Why, job_moved, of_job, of_task, task_moved};
use crate::output::{age, columns, cut};
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::{Millis, TaskId, TaskState, human};
use orchestrator_store::{Catalog, JobFilter, JobView, LimitView, Page};
use serde_json::json;

/// Jobs and items are read in pages of this length.
const PAGE: u32 = 500;
/// So many reasons are told of a job.
const REASONS: usize = 10;
/// So much of a reason stands in the table.
const SHOWN_REASON: usize = 110;

/// Arguments of `jobs stuck`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator jobs stuck
  orchestrator jobs stuck --older-than 1m --json")]
pub struct StuckArgs {
    /// How long nothing must have moved
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = human::parse_span)]
    older_than: Millis,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

/// A job that does not move.
struct Stuck {
    job: JobView,
    idle: Millis,
    why: Vec<Why>,
}

/// Lists the jobs.
pub async fn run(args: &StuckArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let stuck = gather(&*store, args).await?;
    store.close().await;
    let out = session.out;
    if !out.is_table() {
        let documents = stuck.iter().map(|stuck| {
            let mut document = shown::summary(&stuck.job);
            document["idle_ms"] = json!(stuck.idle.0);
            document["reasons"] = json!(stuck.why);
            document
        });
        out.json_list(&documents.collect::<Vec<_>>())?;
        return Ok(Exit::Ok);
    }
    if stuck.is_empty() {
        out.note(format!("everything moves: no live job has been still for {}", args.older_than));
        return Ok(Exit::Ok);
    }
    let rows = stuck.iter().flat_map(|stuck| {
        stuck.why.iter().map(|why| {
            let task = why.task.as_ref().map(|task| format!("{task}: ")).unwrap_or_default();
            vec![
                stuck.job.id.to_string(),
                cut(&shown::work(&stuck.job), 24),
                age(stuck.idle),
                cut(&format!("{task}{}", why.reason), SHOWN_REASON),
            ]
        })
    });
    out.data(&columns(&["JOB", "FLOW", "STILL FOR", "WHY"], &[], rows.collect()))?;
    Ok(Exit::Ok)
}

async fn gather(store: &dyn Catalog, args: &StuckArgs) -> CliResult<Vec<Stuck>> {
    let filter = JobFilter { states: LIVE.to_vec(), ..JobFilter::default() };
    let limits = store.limits().await?;
    let mut stuck = vec![];
    let mut page = Page { after: None, limit: PAGE };
    loop {
        let jobs = store.list(filter.clone(), page).await?;
        let Some(last) = jobs.last() else { return Ok(stuck) };
        page.after = Some(last.id);
        for job in jobs {
            stuck.extend(look(store, job, &limits, args.older_than).await?);
            if stuck.len() >= args.limit {
                return Ok(stuck);
            }
        }
    }
}

/// Why a job does not move, if it does not.
async fn look(
    store: &dyn Catalog,
    job: JobView,
    limits: &[LimitView],
    older_than: Millis,
) -> CliResult<Option<Stuck>> {
    let now = store.now();
    let mut moved = job_moved(&job);
    let mut why: Vec<Why> = of_job(&job).into_iter().collect();
    let whole = !why.is_empty();
    for task in &job.tasks {
        if now.since(moved) < older_than {
            return Ok(None);
        }
        // A task that was expanded moves with its items, and waits for what they wait for.
        if task.items.is_none() || task.state != TaskState::Running {
            why.extend(of_task(task, limits, now).filter(|_| !whole && why.len() < REASONS));
            continue;
        }
        let group = TaskId { job: job.id, index: task.index };
        let mut after = None;
        loop {
            let items = store.items(group, after, PAGE).await?;
            let Some(last) = items.last() else { break };
            after = Some(last.index);
            moved = items.iter().filter_map(task_moved).max().map_or(moved, |latest| latest.max(moved));
            let reasons = items.iter().filter_map(|item| of_task(item, limits, now));
            why.extend(reasons.take(if whole { 0 } else { REASONS.saturating_sub(why.len()) }));
        }
    }
    if why.is_empty() {
        why.push(Why { task: None, code: "unknown", reason: "nothing of it is in line".to_owned() });
    }
    let idle = now.since(moved);
    Ok((idle >= older_than).then_some(Stuck { job, idle, why }))
}
