//! A task starts when the tasks that it needs are over.

use super::found::Found;
use super::trace::Trace;
use crate::{LastTask, Run};
use orchestrator_core::{TaskId, TaskState};

/// Looks only at jobs that were never revived and at needs that a handler completed: of those the moment is known
/// before which they were not over. A revived job may have run the need again after its dependents.
pub(super) fn check(trace: &Trace<'_>, found: &mut Found) {
    for ended in trace.last.values() {
        let id = ended.job.id;
        if trace.job(id).may_have_been_revived() {
            continue;
        }
        for task in ended.tasks.values() {
            let needs = task.needs.iter().filter_map(|need| ended.tasks.get(need));
            for need in needs.filter(|need| need.runs && need.state == TaskState::Completed) {
                starts_after(trace, TaskId { job: id, index: task.index }, need, found);
            }
        }
    }
}

fn starts_after(trace: &Trace<'_>, id: TaskId, need: &LastTask, found: &mut Found) {
    let first = trace.tasks.get(&id).and_then(|task| task.starts.first());
    let run = Run { task: TaskId { job: id.job, index: need.index }, attempt: need.attempt };
    let finished = trace.runs.get(&run).filter(|run| run.finishes > 0).map(|run| run.finished);
    if let (Some((started, attempt)), Some(finished)) = (first, finished)
        && *started < finished
    {
        let (name, index, need_name) = (trace.task_name(id), need.index, &need.name);
        let last = need.attempt;
        found.wrong(format!(
            "attempt {attempt} of {name} was started before attempt {last} of task {index} ({need_name}), which it needs, was over"
        ));
    }
}
