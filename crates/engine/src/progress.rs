//! How far a job is, as one document: for the live view, the API and programs.

use orchestrator_core::flow::plan::TaskPlan;
use orchestrator_core::flow::progress::{ItemsLook, Look, TaskLook, reached};
use orchestrator_core::flow::{JoinRule, Plan};
use orchestrator_core::{JobId, JobState, Millis, TaskState, Timestamp};
use orchestrator_store::{AttemptEnd, ItemsView, JobView, TaskView};
use serde::Serialize;
use std::sync::Arc;

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Progress {
    /// The job.
    pub workflow_id: JobId,
    /// The same, under the other name by which it is known.
    pub job_id: JobId,
    /// The flow that it runs; a job of a queue has none.
    pub flow: Option<Arc<str>>,
    /// The version of the flow.
    pub version: Option<u32>,
    /// The job's state.
    #[serde(skip)]
    pub state: JobState,
    /// The word for it; `retrying` where nothing runs and a retry is due.
    pub status: &'static str,
    /// In percent: 100 only when it has completed. It falls only where work is lost, as by a retry.
    pub progress: u8,
    /// How many tasks have ended: in a chain, the place of the one that runs, from 0.
    pub current_step: usize,
    /// How many tasks there are.
    pub total_steps: usize,
    /// Tasks that ended well.
    pub completed_tasks: usize,
    /// Tasks that failed, or ended by the job's deadline.
    pub failed_tasks: usize,
    /// Tasks that run.
    pub running_tasks: usize,
    /// Tasks that ended without a result, and those that never ran because something before them failed.
    pub skipped_tasks: usize,
    /// How often the job was recovered.
    pub recovery_attempts: u32,
    /// How long it has been running, or ran.
    pub elapsed: Option<Millis>,
    /// How long the rest will take, roughly; none where nothing is known, and while it does not go on.
    pub eta: Option<Millis>,
    /// The tasks of its flow, in order.
    pub tasks: Vec<TaskProgress>,
}

/// How far a task is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskProgress {
    /// Its place in the job.
    pub id: u32,
    /// Its name.
    pub name: Arc<str>,
    /// Its name for people, where it has another one.
    pub title: Option<String>,
    /// The handler that runs it.
    #[serde(rename = "type")]
    pub handler: Arc<str>,
    /// Its state.
    pub status: TaskState,
    /// How often it was tried again after an error.
    pub retry_count: u32,
    /// Its last error, unless it ended well after all.
    pub error_message: Option<String>,
    /// In percent.
    pub percent: u8,
    /// How long its attempt has been running.
    pub elapsed: Option<Millis>,
    /// How long it usually takes: by past runs of this version, else as its flow says.
    pub expected: Option<Millis>,
    /// When its next attempt is due, from now.
    pub due_in: Option<Millis>,
    /// What it was expanded into.
    pub items: Option<ItemsView>,
}

impl Progress {
    /// The progress of a job that runs a plan, or of a job of a queue, which has none.
    pub fn of(job: &JobView, plan: Option<&Plan>, now: Timestamp) -> Progress {
        let planned = |task: &TaskView| plan.and_then(|plan| plan.tasks().get(task.index as usize));
        let tasks = job.tasks.iter().map(|task| look(task, planned(task), now)).collect();
        let found = reached(&Look { state: job.state, waits: !job.waits_for.is_empty(), tasks });
        let count =
            |states: &[TaskState]| job.tasks.iter().filter(|task| states.contains(&task.state)).count();
        let title =
            |task: &TaskView| plan.and_then(|plan| plan.def().tasks.get(task.index as usize)?.title.clone());
        let task = |(task, percent): (&TaskView, &f64)| TaskProgress {
            id: task.index,
            name: task.name.clone(),
            title: title(task),
            handler: task.spec.handler.clone(),
            status: task.state,
            retry_count: retries(task),
            error_message: error(task),
            percent: *percent as u8,
            elapsed: elapsed(task, now),
            expected: task.usual.or(planned(task).and_then(|planned| planned.estimate)),
            due_in: due_in(task, now),
            items: task.items,
        };
        Progress {
            workflow_id: job.id,
            job_id: job.id,
            flow: job.flow.as_ref().map(|flow| flow.name.clone()),
            version: job.flow.as_ref().map(|flow| flow.version),
            state: job.state,
            status: status(job),
            progress: found.percent as u8,
            current_step: job.tasks.iter().filter(|task| task.state.is_terminal()).count(),
            total_steps: job.tasks.len(),
            completed_tasks: count(&[TaskState::Completed]),
            failed_tasks: count(&[TaskState::Failed, TaskState::TimedOut]),
            running_tasks: count(&[TaskState::Running]),
            skipped_tasks: count(&[TaskState::Skipped]),
            recovery_attempts: job.recoveries,
            elapsed: job.started.map(|started| job.ended.unwrap_or(now).since(started)),
            eta: found.eta,
            tasks: job.tasks.iter().zip(&found.tasks).map(task).collect(),
        }
    }
}

fn look<'a>(task: &TaskView, planned: Option<&'a TaskPlan>, now: Timestamp) -> TaskLook<'a> {
    let at_once = planned.and_then(|planned| planned.each.as_ref()?.concurrency);
    TaskLook {
        state: task.state,
        needs: planned.map_or(&[], |planned| &planned.needs),
        join: planned.map_or(JoinRule::default(), |planned| planned.join),
        usual: task.usual,
        estimate: planned.and_then(|planned| planned.estimate),
        running_for: elapsed(task, now),
        due_in: due_in(task, now),
        items: task.items.map(|items| ItemsLook {
            count: items.count,
            ended: items.ended,
            failed: items.failed,
            running: items.running,
            at_once,
        }),
    }
}

fn elapsed(task: &TaskView, now: Timestamp) -> Option<Millis> {
    task.started.filter(|_| task.state == TaskState::Running).map(|started| now.since(started))
}

fn due_in(task: &TaskView, now: Timestamp) -> Option<Millis> {
    task.due.map(|due| due.since(now))
}

fn status(job: &JobView) -> &'static str {
    let any = |state| job.tasks.iter().any(|task| task.state == state);
    if job.state == JobState::Running && any(TaskState::Retrying) && !any(TaskState::Running) {
        return TaskState::Retrying.as_str();
    }
    job.state.as_str()
}

/// Attempts after an error. The error that ended a task for good was followed by none.
fn retries(task: &TaskView) -> u32 {
    let last_word = task
        .history
        .iter()
        .any(|record| record.attempt == task.counters.attempt && matches!(record.how, AttemptEnd::Failed(_)));
    task.counters.failures.saturating_sub(u32::from(last_word && task.state.is_terminal()))
}

fn error(task: &TaskView) -> Option<String> {
    if task.state == TaskState::Completed {
        return None;
    }
    let last = task.history.iter().rev().find(|record| record.how != AttemptEnd::Stale);
    let items = task.items.filter(|items| items.failed > 0);
    last.map(|record| record.message.clone())
        .or(items.map(|items| format!("{} of {} items failed", items.failed, items.count)))
}
