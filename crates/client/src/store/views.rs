//! Views as they were before they were written as JSON, where a value that is null looks like none.
//!
//! Which of the two it was follows from where a job or task stands: one that has completed has an output, the task of a
//! queue's job and an item of a list have an input from their beginning. A flow gives its tasks a null for an input only where it says so, which is told as none.

use orchestrator_core::{JobState, Json, TaskState};
use orchestrator_store::{JobView, TaskView};

/// A job as the store showed it.
pub fn job(mut job: JobView) -> JobView {
    let of_queue = job.flow.is_none();
    for one in &mut job.tasks {
        *one = task(std::mem::replace(one, TaskView::pending(0, "".into(), one.spec.clone())), of_queue);
    }
    let told = job.tasks.iter().all(|task| task.output.is_some());
    if job.state == JobState::Completed && told {
        job.output.get_or_insert_with(Json::null);
    }
    job
}

/// A task as the store showed it, where it is known whether it has an input.
pub fn task(mut task: TaskView, has_input: bool) -> TaskView {
    if has_input {
        task.input.get_or_insert_with(Json::null);
    }
    // A skip that a handler asked for has an output. One in place of a failure has none, and its failure is told.
    let attempt = task.counters.attempt;
    let asked_for =
        attempt > 0 && task.input.is_some() && task.history.last().is_none_or(|last| last.attempt != attempt);
    if task.state == TaskState::Completed || task.state == TaskState::Skipped && asked_for {
        task.output.get_or_insert_with(Json::null);
    }
    task
}
