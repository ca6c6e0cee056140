//! What was told about a task stays true: attempts only rise, and a task that is over stays so.

use super::found::Found;
use super::trace::{END, JobTrace, TaskSight, TaskTrace, Trace};
use orchestrator_core::TaskId;

pub(super) fn check(trace: &Trace<'_>, found: &mut Found) {
    for (id, task) in &trace.tasks {
        let job = trace.job(id.job);
        attempts_only_rise(trace, *id, task, found);
        over_stays_over(trace, *id, task, job, found);
        over_is_not_started(trace, *id, task, job, found);
        tasks_do_not_vanish(trace, *id, task, job, found);
    }
}

/// The attempt's number is the fence. If it went back, an old worker could pass for the new one.
fn attempts_only_rise(trace: &Trace<'_>, id: TaskId, task: &TaskTrace, found: &mut Found) {
    for sight in &task.sights {
        let known = task.seen.before(sight.called).max(task.started.before(sight.called));
        if let Some(known) = known.filter(|known| *known > sight.attempt) {
            let (name, attempt) = (trace.task_name(id), sight.attempt);
            found.lost(format!("{name} was at attempt {known}, and a later read saw attempt {attempt}"));
        }
    }
    let Some(last) = trace.last_task(id).map(|task| task.attempt) else { return };
    let name = || trace.task_name(id);
    if let Some(started) = task.started.before(END).filter(|started| *started > last) {
        found.wrong(format!("attempt {started} of {} was started, but its last one is {last}", name()));
    }
    if let Some(seen) = task.seen.before(END).filter(|seen| *seen > last) {
        found.lost(format!("{} was seen at attempt {seen}, but its last one is {last}", name()));
    }
}

/// Only a revival of its job leads out of the end of a task.
fn over_stays_over(trace: &Trace<'_>, id: TaskId, task: &TaskTrace, job: &JobTrace, found: &mut Found) {
    let end = trace.last_task(id).map(|last| TaskSight {
        called: END,
        answered: END,
        state: last.state,
        attempt: last.attempt,
    });
    for sight in task.sights.iter().copied().chain(end) {
        let when = if sight.called == END { "at the end" } else { "later" };
        let kept = |called| !job.may_have_revived(called, sight.answered);
        for (state, _) in task.ends.before(sight.called).filter(|(_, called)| kept(*called)) {
            if sight.state == state {
                continue;
            }
            let (name, is) = (trace.task_name(id), sight.state);
            let what = format!("{name} was {state}, and without a revival it is {is} {when}");
            if is.is_terminal() { found.wrong(what) } else { found.lost(what) }
        }
        if let Some((_, attempt)) = task.over.before(sight.called).filter(|(called, _)| kept(*called))
            && sight.attempt > attempt
        {
            let (name, now) = (trace.task_name(id), sight.attempt);
            found.doubled(format!(
                "{name} was over at attempt {attempt}, and without a revival it is at attempt {now} {when}"
            ));
        }
    }
}

/// What is over is not handed out again. An attempt that was handed out before may still begin late.
fn over_is_not_started(trace: &Trace<'_>, id: TaskId, task: &TaskTrace, job: &JobTrace, found: &mut Found) {
    for (place, attempt) in task.starts.iter().copied() {
        if let Some((called, over)) = task.over.before(place)
            && attempt > over
            && !job.may_have_revived(called, place)
        {
            let name = trace.task_name(id);
            found.doubled(format!(
                "{name} was over at attempt {over}, and without a revival attempt {attempt} was started"
            ));
        }
    }
}

/// Tasks stay with their job. Only a revival takes items away, when the task that they belong to runs anew.
fn tasks_do_not_vanish(trace: &Trace<'_>, id: TaskId, task: &TaskTrace, job: &JobTrace, found: &mut Found) {
    let Some(ended) = trace.last.get(&id.job) else {
        if let Some((_, attempt)) = task.starts.first() {
            found.wrong(format!("attempt {attempt} of task {id} was started, but its job is not there"));
        }
        return;
    };
    if ended.tasks.contains_key(&id.index) || job.may_have_been_revived() {
        return;
    }
    match task.starts.first() {
        Some((_, attempt)) => found.wrong(format!(
            "attempt {attempt} of {} was started, but its job has no such task",
            trace.task_name(id)
        )),
        None => found.lost(format!("{} was seen, but its job has no such task", trace.task_name(id))),
    }
}
