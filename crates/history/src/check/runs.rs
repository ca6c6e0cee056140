//! Runs of handlers: each attempt runs once, and a task is completed by the attempt that it says.

use super::found::Found;
use super::trace::{END, Place, RunTrace, Trace};
use crate::{LastTask, Run};
use orchestrator_core::{Json, TaskId, TaskState};

pub(super) fn check(trace: &Trace<'_>, found: &mut Found) {
    for (run, seen) in &trace.runs {
        each_runs_once(trace, *run, seen, found);
    }
    for ended in trace.last.values() {
        for task in ended.tasks.values().filter(|task| is_completed_run(task)) {
            let id = TaskId { job: ended.job.id, index: task.index };
            completed_by_its_last_attempt(trace, id, task, found);
        }
    }
    for (id, task) in &trace.tasks {
        if !trace.last_task(*id).is_some_and(|last| last.runs) {
            continue;
        }
        for sight in task.sights.iter().filter(|sight| sight.state == TaskState::Completed) {
            let run = Run { task: *id, attempt: sight.attempt };
            if result_before(trace, run, sight.answered).is_none() {
                let (name, attempt) = (trace.task_name(*id), sight.attempt);
                found.wrong(format!(
                    "{name} was seen completed at attempt {attempt}, which had not given a result yet"
                ));
            }
        }
    }
}

fn is_completed_run(task: &LastTask) -> bool {
    task.runs && task.state == TaskState::Completed
}

/// An attempt is handed out once: its number is what makes outside effects safe to repeat. And what never started
/// cannot end.
fn each_runs_once(trace: &Trace<'_>, run: Run, seen: &RunTrace<'_>, found: &mut Found) {
    let name = || format!("attempt {} of {}", run.attempt, trace.task_name(run.task));
    if seen.starts > 1 {
        found.doubled(format!("{} was started {} times", name(), seen.starts));
    }
    if seen.finishes > 1 {
        found.doubled(format!("{} was finished {} times", name(), seen.finishes));
    }
    if seen.starts == 0 && seen.finishes + seen.aborts > 0 {
        found.wrong(format!("{} ended, but was never started", name()));
    }
}

/// The result of a run that was given before a place.
fn result_before<'a>(trace: &Trace<'a>, run: Run, place: Place) -> Option<&'a Json> {
    let run = trace.runs.get(&run).filter(|run| run.finishes > 0 && run.finished < place)?;
    run.output
}

/// The number of a task's last attempt rises with every lease, so the attempt that completed a task is the last one,
/// and the result is what that one gave.
fn completed_by_its_last_attempt(trace: &Trace<'_>, id: TaskId, task: &LastTask, found: &mut Found) {
    let (name, attempt) = (trace.task_name(id), task.attempt);
    let Some(given) = result_before(trace, Run { task: id, attempt }, END) else {
        return found.wrong(format!("{name} is completed at attempt {attempt}, which gave no result"));
    };
    // A result of nothing may be kept as none.
    let kept = task.output.clone().unwrap_or_default();
    if kept.same_value(given) {
        return;
    }
    let other = (1..attempt).rev().find(|other| {
        result_before(trace, Run { task: id, attempt: *other }, END)
            .is_some_and(|given| kept.same_value(given))
    });
    found.wrong(match other {
        Some(other) => {
            format!("{name} is completed at attempt {attempt} with the output of attempt {other}: {kept}")
        }
        None => format!("{name} has the output {kept}, but attempt {attempt} gave {given}"),
    });
}
