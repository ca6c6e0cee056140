//! Taking a job up again that ended badly: what is reset, what is kept, and how it goes on.

use super::{Facts, MAX_INDEX, Machine, Moves, Past};
use crate::flow::def::JoinRule;
use crate::flow::plan::Plan;
use crate::flow::run::{Group, Run, Standing};
use crate::planted::{Bug, planted};
use crate::state::{JobState, TaskState};
use serde::{Deserialize, Serialize};

/// From where a job is taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// From everything that went wrong. Of a `for_each`, only the items that did.
    Failures,
    /// From one task of the plan.
    Task(u32),
    /// From one item of a `for_each`, by its index.
    Item(u32),
}

/// What a recovery does first. The store undoes the ends of these tasks and tells [`restart`] their last attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reset {
    /// Tasks of the plan that are as if they had never run.
    pub tasks: Vec<u32>,
    /// Items that they had been expanded into: gone for good.
    pub gone: Vec<Group>,
    /// Expanded tasks of which the items that went wrong run again.
    pub reopened: Vec<Group>,
    /// If given, only this one of them.
    pub item: Option<u32>,
}

/// What a store undid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undone {
    /// The tasks of [`Reset::tasks`], each with its last attempt.
    pub tasks: Vec<(u32, u32)>,
    /// The items that run again, each with its last attempt, in order.
    pub items: Vec<(u32, u32)>,
}

/// Why a job cannot be recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoRecovery {
    /// It has not ended badly.
    #[error("it is {0}, not failed or timed out")]
    State(JobState),
    /// It was recovered as often as it may be.
    #[error("it was recovered {0} times, which is as often as its flow allows")]
    Exhausted(u32),
    /// Something that the task needs did not end well.
    #[error("{task} needs {need}, which is {state}: recover from there")]
    Blocked {
        /// The task.
        task: String,
        /// What it needs.
        need: String,
        /// How that ended.
        state: TaskState,
    },
    /// It has had more tasks than a job may have.
    #[error("it has had {MAX_INDEX} tasks, which is as many as a job may have")]
    Full,
}

/// Takes a job up again that ended badly. `counted` recoveries are capped by the flow.
pub fn recover(plan: &Plan, run: &mut Run, from: From, counted: bool) -> Result<Reset, NoRecovery> {
    if !matches!(run.state, JobState::Failed | JobState::TimedOut) {
        return Err(NoRecovery::State(run.state));
    }
    if counted && run.recoveries >= plan.max_recoveries() {
        return Err(NoRecovery::Exhausted(run.recoveries));
    }
    if run.next >= MAX_INDEX {
        return Err(NoRecovery::Full);
    }
    let heads: Vec<u32> = match from {
        From::Task(task) => vec![task],
        From::Item(index) => run.place(index).map(|place| place.task).into_iter().collect(),
        From::Failures => {
            (0..run.tasks.len() as u32).filter(|task| run.tasks[*task as usize].is_bad()).collect()
        }
    };
    let whole = matches!(from, From::Task(_));
    let mut tasks =
        if planted(Bug::RecoverOnlyHeads) { heads.clone() } else { plan.with_descendants(&heads) };
    for head in &heads {
        let rules = &plan.tasks()[*head as usize];
        let bad = |need: &&u32| tasks.binary_search(need).is_err() && run.tasks[**need as usize].is_bad();
        if let (JoinRule::AllCompleted, Some(need)) = (rules.join, rules.needs.iter().find(bad)) {
            return Err(blocked(plan, run, *head, *need));
        }
    }
    let expanded = |run: &Run, task: u32| run.group(task).is_some();
    let reopen: Vec<u32> = heads.into_iter().filter(|head| !whole && expanded(run, *head)).collect();
    // An expanded task that another head resets is reset as a whole.
    let reopen: Vec<u32> = reopen
        .into_iter()
        .filter(|task| {
            !plan.tasks()[*task as usize].needs.iter().any(|need| tasks.binary_search(need).is_ok())
        })
        .collect();
    tasks.retain(|task| !reopen.contains(task));
    for task in &tasks {
        run.tasks[*task as usize] = Standing::Pending;
    }
    let gone: Vec<Group> =
        run.groups.extract_if(.., |group| tasks.binary_search(&group.task).is_ok()).collect();
    // The indices of items that are gone are never given again, so their attempts need not be known.
    run.attempts.retain(|(index, _)| !gone.iter().any(|group| group.has(*index)));
    let reopened = run.groups.iter().filter(|group| reopen.contains(&group.task)).cloned().collect();
    run.recoveries += u32::from(counted);
    run.state = JobState::Running;
    run.ended = None;
    run.reason = None;
    let item = match from {
        From::Item(index) => Some(index),
        From::Failures | From::Task(_) => None,
    };
    Ok(Reset { tasks, gone, reopened, item })
}

fn blocked(plan: &Plan, run: &Run, task: u32, need: u32) -> NoRecovery {
    NoRecovery::Blocked {
        task: plan.tasks()[task as usize].name.to_string(),
        need: plan.tasks()[need as usize].name.to_string(),
        state: run.tasks[need as usize].state(),
    }
}

/// Lets in what a recovery undid. The job's time starts anew.
pub fn restart<P: Past>(
    plan: &Plan,
    run: &mut Run,
    facts: Facts<'_>,
    past: &mut P,
    undone: &Undone,
) -> Result<Moves, P::Error> {
    run.note_attempts(undone.tasks.iter().chain(&undone.items).copied());
    run.deadline = plan.timeout().map(|span| facts.now + span);
    let mut machine = Machine::new(plan, run, facts, past);
    machine.reopen(&undone.items);
    for (task, _) in &undone.tasks {
        machine.enter_if_due(*task)?;
    }
    machine.run_down()
}
