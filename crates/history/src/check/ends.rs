//! How jobs and tasks stand at the end, each looked at by itself.

use super::Rules;
use super::found::Found;
use super::trace::{Ended, Trace};
use crate::{LastTask, Run};
use orchestrator_core::{JobState, TaskId, TaskState};

pub(super) fn check(trace: &Trace<'_>, rules: &Rules, found: &mut Found) {
    for ended in trace.last.values() {
        has_ended(trace, ended, found);
        nothing_completes_after_a_cancel(trace, ended, found);
        for task in &ended.job.tasks {
            let id = TaskId { job: ended.job.id, index: task.index };
            is_over_with_its_job(trace, id, task, ended.job.state, found);
            counts_add_up(trace, id, task, found);
            if rules.no_crashes && task.crashes > 0 {
                let (name, crashes) = (trace.task_name(id), task.crashes);
                found
                    .wrong(format!("{name} lost {crashes} attempts, but nothing happened that may cost one"));
            }
        }
    }
}

/// When all has healed, everything ends.
fn has_ended(trace: &Trace<'_>, ended: &Ended<'_>, found: &mut Found) {
    let job = ended.job;
    if job.state.is_terminal() {
        return;
    }
    let open = job.tasks.iter().filter(|task| !task.state.is_terminal());
    let open: Vec<String> = open
        .map(|task| format!("{} ({}) {} at attempt {}", task.index, task.name, task.state, task.attempt))
        .collect();
    found.stuck(format!("{} is {} at the end; tasks: {}", trace.name(job.id), job.state, open.join(", ")));
}

/// After the answer to a cancel no completion is taken: what was given later is not the task's result.
fn nothing_completes_after_a_cancel(trace: &Trace<'_>, ended: &Ended<'_>, found: &mut Found) {
    let Some(cancelled) = trace.job(ended.job.id).cancelled else { return };
    for task in ended.job.tasks.iter().filter(|task| task.runs && task.state == TaskState::Completed) {
        let id = TaskId { job: ended.job.id, index: task.index };
        let run = trace.runs.get(&Run { task: id, attempt: task.attempt });
        if run.is_some_and(|run| run.finishes > 0 && run.finished > cancelled) {
            let (name, attempt) = (trace.task_name(id), task.attempt);
            found.wrong(format!("{name} was completed by attempt {attempt} after its job was cancelled"));
        }
    }
}

/// A job ends when all of its tasks are over, or ends them with it; and it completes only if none went wrong.
fn is_over_with_its_job(trace: &Trace<'_>, id: TaskId, task: &LastTask, job: JobState, found: &mut Found) {
    let fits = match job {
        JobState::Completed => matches!(task.state, TaskState::Completed | TaskState::Skipped),
        state if state.is_terminal() => task.state.is_terminal(),
        _ => true,
    };
    if !fits {
        found.wrong(format!("{} is {}, but its job is {job}", trace.task_name(id), task.state));
    }
}

/// Each attempt ends at most once, so it fails or is lost at most once.
fn counts_add_up(trace: &Trace<'_>, id: TaskId, task: &LastTask, found: &mut Found) {
    let LastTask { attempt, failures, crashes, .. } = task;
    if u64::from(*failures) + u64::from(*crashes) > u64::from(*attempt) {
        let name = trace.task_name(id);
        found.wrong(format!(
            "{name} has {failures} failures and {crashes} crashes, but only {attempt} attempts"
        ));
    }
}
