//! How far a job is, and how long it will take.
//!
//! A task weighs what it usually takes: by past runs, else by the flow's estimate, else by the mean of the
//! tasks of which one of the two is known; all weigh the same where nothing is known. A running task
//! counts by the time it has run, but never as nearly done, so an estimate that was too short makes the
//! percentage stand still and not fall. A `for_each` weighs what one item takes: how many there will be is
//! only known when it is expanded, and a weight that grew then would make the percentage fall.
//!
//! The rest of the time is that of the longest way through what is left. It knows nothing of limits
//! and of how busy the workers are.

use super::def::JoinRule;
use crate::state::{JobState, TaskState};
use crate::time::Millis;

/// The most that a running task counts, whatever its estimate said.
const NEARLY: f64 = 0.95;

/// A job at one moment.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// Its state.
    pub state: JobState,
    /// Whether it waits for other jobs.
    pub waits: bool,
    /// The tasks of its plan, in order.
    pub tasks: Vec<TaskLook<'a>>,
}

/// A task at one moment.
#[derive(Clone, Debug)]
pub struct TaskLook<'a> {
    /// Its state.
    pub state: TaskState,
    /// The tasks that must have ended before.
    pub needs: &'a [u32],
    /// When it may start once they have.
    pub join: JoinRule,
    /// How long it, or one item of it, took in past runs.
    pub usual: Option<Millis>,
    /// How long it, or one item of it, takes by its definition.
    pub estimate: Option<Millis>,
    /// How long its attempt has been running.
    pub running_for: Option<Millis>,
    /// How long it waits before its next attempt.
    pub due_in: Option<Millis>,
    /// What it was expanded into.
    pub items: Option<ItemsLook>,
}

/// The items of a `for_each` at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemsLook {
    /// How many there are.
    pub count: u32,
    /// How many have ended.
    pub ended: u32,
    /// How many of those failed.
    pub failed: u32,
    /// How many run.
    pub running: u32,
    /// How many may run at once, by the definition.
    pub at_once: Option<u32>,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// The whole job, in percent: 100 only when it has completed.
    pub percent: f64,
    /// Each task, in percent.
    pub tasks: Vec<f64>,
    /// How long the rest will take; none where nothing is known, and while the job does not go on.
    pub eta: Option<Millis>,
}

/// Tells how far a job is.
pub fn reached(job: &Look<'_>) -> Reached {
    let order = needs_first(&job.tasks);
    let blocked = blocked(&job.tasks, &order);
    let expected = expected(&job.tasks);
    let shares: Vec<f64> =
        (0..job.tasks.len()).map(|at| share(&job.tasks[at], blocked[at], expected[at])).collect();
    let weight = |at: usize| expected[at].map_or(1.0, |span| span.0 as f64);
    let total: f64 = (0..shares.len()).map(weight).sum();
    let done: f64 = shares.iter().enumerate().map(|(at, share)| share * weight(at)).sum();
    let percent = match job.state {
        JobState::Completed => 100.0,
        _ if total > 0.0 => (100.0 * done / total).min(99.0),
        _ => 0.0,
    };
    let goes_on = matches!(job.state, JobState::Pending | JobState::Running) && !job.waits;
    let eta = if goes_on { remaining(&job.tasks, &order, &blocked, &expected) } else { None };
    Reached { percent, tasks: shares.iter().map(|share| 100.0 * share).collect(), eta }
}

/// How long each task takes; all or none are known, as the mean stands in for what is not.
fn expected(tasks: &[TaskLook<'_>]) -> Vec<Option<Millis>> {
    // Never zero, or a flow of tasks that take no time would have no weight at all.
    let known = |task: &TaskLook<'_>| task.usual.or(task.estimate).map(|span| span.max(Millis(1)));
    let all: Vec<u64> = tasks.iter().filter_map(known).map(|span| span.0).collect();
    let mean = (!all.is_empty()).then(|| {
        let sum: u128 = all.iter().map(|ms| u128::from(*ms)).sum();
        Millis(u64::try_from(sum / all.len() as u128).unwrap_or(u64::MAX))
    });
    tasks.iter().map(|task| known(task).or(mean)).collect()
}

/// How much of a task is done, from 0 to 1.
fn share(task: &TaskLook<'_>, blocked: bool, expected: Option<Millis>) -> f64 {
    match task.state {
        TaskState::Completed => 1.0,
        TaskState::Skipped => f64::from(!blocked),
        TaskState::Running | TaskState::Failed | TaskState::TimedOut | TaskState::Cancelled => {
            match (task.items, task.running_for, expected) {
                (Some(items), _, _) => {
                    f64::from(items.ended.saturating_sub(items.failed)) / f64::from(items.count.max(1))
                }
                (None, Some(elapsed), Some(expected)) if task.state == TaskState::Running => {
                    (elapsed.0 as f64 / expected.0 as f64).min(NEARLY)
                }
                _ => 0.0,
            }
        }
        TaskState::Pending | TaskState::Queued | TaskState::Retrying => 0.0,
    }
}

/// Which tasks never run because something before them went wrong. They show as skipped, but nothing
/// of them is done.
fn blocked(tasks: &[TaskLook<'_>], order: &[usize]) -> Vec<bool> {
    let mut blocked = vec![false; tasks.len()];
    for at in order {
        let task = &tasks[*at];
        let open = matches!(task.state, TaskState::Skipped | TaskState::Pending);
        blocked[*at] = open && task.join == JoinRule::AllCompleted && any_bad(task, tasks, &blocked);
    }
    blocked
}

fn any_bad(task: &TaskLook<'_>, tasks: &[TaskLook<'_>], blocked: &[bool]) -> bool {
    task.needs.iter().any(|need| {
        let bad = matches!(
            tasks[*need as usize].state,
            TaskState::Failed | TaskState::TimedOut | TaskState::Cancelled
        );
        bad || blocked[*need as usize]
    })
}

/// The longest way through what is left.
fn remaining(
    tasks: &[TaskLook<'_>],
    order: &[usize],
    blocked: &[bool],
    expected: &[Option<Millis>],
) -> Option<Millis> {
    let mut finish = vec![0u64; tasks.len()];
    for at in order {
        let task = &tasks[*at];
        let start = task.needs.iter().map(|need| finish[*need as usize]).max().unwrap_or(0);
        let unlikely = task.join == JoinRule::AnyFailed
            && task.state == TaskState::Pending
            && !any_bad(task, tasks, blocked);
        let own = if blocked[*at] || unlikely { 0 } else { left(task, expected[*at])? };
        finish[*at] = start.saturating_add(own);
    }
    finish.into_iter().max().map(Millis)
}

/// How much longer a task takes, in milliseconds.
fn left(task: &TaskLook<'_>, expected: Option<Millis>) -> Option<u64> {
    if task.state.is_terminal() {
        return Some(0);
    }
    let expected = expected?.0;
    if let Some(items) = task.items {
        let open = u64::from(items.count.saturating_sub(items.ended));
        let lanes = if items.running > 0 { items.running } else { items.at_once? };
        return Some(open.saturating_mul(expected).div_ceil(u64::from(lanes.max(1))));
    }
    if let Some(elapsed) = task.running_for {
        let at_least = expected as f64 * (1.0 - NEARLY);
        return Some(expected.saturating_sub(elapsed.0).max(at_least.ceil() as u64));
    }
    Some(task.due_in.unwrap_or_default().0.saturating_add(expected))
}

/// The tasks in an order in which every need comes first.
fn needs_first(tasks: &[TaskLook<'_>]) -> Vec<usize> {
    let mut dependents = vec![vec![]; tasks.len()];
    let mut open: Vec<usize> = tasks.iter().map(|task| task.needs.len()).collect();
    for (at, task) in tasks.iter().enumerate() {
        for need in task.needs {
            dependents[*need as usize].push(at);
        }
    }
    let mut order: Vec<usize> = (0..tasks.len()).filter(|at| open[*at] == 0).collect();
    let mut next = 0;
    while let Some(at) = order.get(next).copied() {
        next += 1;
        for dependent in &dependents[at] {
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                order.push(*dependent);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests;
