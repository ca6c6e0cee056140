//! Live jobs that do not move, and why they do not.

mod why;

pub use why::Why;

use crate::Engine;
use orchestrator_core::{JobState, Millis, TaskId, TaskState};
use orchestrator_store::{Catalog, JobFilter, JobView, LimitView, Page, StoreResult};
use serde::Serialize;
use why::{job_moved, of_job, of_task, task_moved};

/// Jobs and items are read in pages of this length.
const PAGE: u32 = 500;
/// So many reasons are told of a job.
const REASONS: usize = 10;

/// A job that does not move.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StuckJob {
    /// The job.
    pub job: JobView,
    /// How long nothing of it has moved, in milliseconds.
    #[serde(rename = "idle_ms", serialize_with = "millis")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub idle: Millis,
    /// What it waits for.
    pub reasons: Vec<Why>,
}

fn millis<S: serde::Serializer>(span: &Millis, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(span.0)
}

impl Engine {
    /// Live jobs of which nothing has moved for a while, the oldest first: at most so many.
    pub async fn stuck(&self, older_than: Millis, limit: usize) -> StoreResult<Vec<StuckJob>> {
        let store = &**self.store();
        let states = JobState::ALL.iter().copied().filter(|state| !state.is_terminal()).collect();
        let filter = JobFilter { states, ..JobFilter::default() };
        let limits = store.limits().await?;
        let mut stuck = vec![];
        let mut page = Page { after: None, limit: PAGE };
        loop {
            let jobs = store.list(filter.clone(), page).await?;
            let Some(last) = jobs.last() else { return Ok(stuck) };
            page.after = Some(last.id);
            for job in jobs {
                stuck.extend(look(store, job, &limits, older_than).await?);
                if stuck.len() >= limit {
                    return Ok(stuck);
                }
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
) -> StoreResult<Option<StuckJob>> {
    let now = store.now();
    let mut moved = job_moved(&job);
    let mut reasons: Vec<Why> = of_job(&job).into_iter().collect();
    let whole = !reasons.is_empty();
    for task in &job.tasks {
        if now.since(moved) < older_than {
            return Ok(None);
        }
        // A task that was expanded moves with its items, and waits for what they wait for.
        if task.items.is_none() || task.state != TaskState::Running {
            reasons.extend(of_task(task, limits, now).filter(|_| !whole && reasons.len() < REASONS));
            continue;
        }
        let group = TaskId { job: job.id, index: task.index };
        let mut after = None;
        loop {
            let items = store.items(group, after, PAGE).await?;
            let Some(last) = items.last() else { break };
            after = Some(last.index);
            moved = items.iter().filter_map(task_moved).max().map_or(moved, |latest| latest.max(moved));
            let found = items.iter().filter_map(|item| of_task(item, limits, now));
            reasons.extend(found.take(if whole { 0 } else { REASONS.saturating_sub(reasons.len()) }));
        }
    }
    if reasons.is_empty() {
        reasons.push(Why { task: None, code: "unknown", reason: "nothing of it is in line".to_owned() });
    }
    let idle = now.since(moved);
    Ok((idle >= older_than).then_some(StuckJob { job, idle, reasons }))
}
