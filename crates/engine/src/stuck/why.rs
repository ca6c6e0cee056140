//! Why a job that is alive does not move.

use orchestrator_core::human::age;
use orchestrator_core::{JobState, LimitRule, Millis, TaskState, Timestamp};
use orchestrator_store::{JobView, LimitView, TaskView};
use serde::Serialize;

/// One thing that a job waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Why {
    /// The task that waits; none where it is the job itself.
    pub task: Option<String>,
    /// A stable word for programs.
    pub code: &'static str,
    /// For people.
    pub reason: String,
}

/// The last moment at which something of a task changed, as far as it shows.
pub(super) fn task_moved(task: &TaskView) -> Option<Timestamp> {
    let attempts = task.history.iter().map(|record| record.at).max();
    [task.since, task.started, task.ended, attempts].into_iter().flatten().max()
}

/// The same of a job. Items of its tasks are for the caller to look at.
pub(super) fn job_moved(job: &JobView) -> Timestamp {
    let tasks = job.tasks.iter().filter_map(task_moved);
    tasks.chain(job.started).chain([job.created]).max().unwrap_or(job.created)
}

/// What keeps a live job as a whole from moving.
pub(super) fn of_job(job: &JobView) -> Option<Why> {
    let (code, reason) = if job.state == JobState::Paused {
        ("paused", "it is paused: `jobs resume` lets it go on".to_owned())
    } else if !job.waits_for.is_empty() {
        let jobs: Vec<_> = job.waits_for.iter().map(ToString::to_string).collect();
        ("waits_for_job", format!("waits for job {}", jobs.join(", ")))
    } else {
        return None;
    };
    Some(Why { task: None, code, reason })
}

/// What a live task waits for.
pub(super) fn of_task(task: &TaskView, limits: &[LimitView], now: Timestamp) -> Option<Why> {
    let (code, reason) = match task.state {
        TaskState::Retrying => {
            let due = task.due.map(|due| due.since(now)).unwrap_or(Millis(0));
            let error = task.history.last().map(|last| last.message.as_str()).unwrap_or_default();
            ("retry_due", format!("its retry is due in {}; it failed with: {error}", age(due)))
        }
        TaskState::Queued if task.held => ("held", "held until the job is resumed".to_owned()),
        TaskState::Queued if task.parked => ("limit", full_limits(task, limits)),
        TaskState::Queued => match task.due.filter(|due| *due > now) {
            Some(due) => ("scheduled", format!("is to start in {}", age(due.since(now)))),
            None => {
                let waits = task.since.map(|since| age(now.since(since))).unwrap_or_default();
                (
                    "no_worker",
                    format!(
                        "no worker took it for {waits}: it needs one of queue {} with handler {}",
                        task.spec.queue, task.spec.handler
                    ),
                )
            }
        },
        TaskState::Running => {
            let worker = task.worker.as_ref().map(ToString::to_string).unwrap_or_default();
            let runs = task.started.map(|started| age(now.since(started))).unwrap_or_default();
            match task.expires {
                Some(expires) if expires <= now => {
                    let silent = age(now.since(expires));
                    ("silent_worker", format!("worker {worker} is silent: its lease ran out {silent} ago"))
                }
                _ => ("running", format!("runs for {runs} on worker {worker}, which is alive")),
            }
        }
        _ => return None,
    };
    Some(Why { task: Some(task.name.to_string()), code, reason })
}

/// Which of its limits leave no room.
fn full_limits(task: &TaskView, limits: &[LimitView]) -> String {
    let shown = task.limits.keys().iter().filter_map(|key| {
        let view = limits.iter().find(|view| view.key == *key)?;
        let LimitRule { concurrency, rate } = view.rule;
        match (concurrency, rate) {
            (Some(cap), _) if view.running >= cap => Some(format!("{key} ({} of {cap} run)", view.running)),
            (_, Some(rate)) => Some(format!("{key} ({rate})")),
            _ => None,
        }
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() {
        let keys: Vec<_> = task.limits.keys().iter().map(ToString::to_string).collect();
        return format!("waits for room under {}", keys.join(", "));
    }
    format!("waits for room under {}", shown.join(", "))
}
