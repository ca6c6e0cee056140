//! The rules of flows told plainly: how the tasks of an ended job may have ended, given what they need.

use crate::last::plan_of;
use crate::oracle::{Check, Violation};
use orchestrator_core::flow::JoinRule;
use orchestrator_core::flow::plan::{Plan, TaskPlan};
use orchestrator_core::{JobState, TaskState};
use orchestrator_store::model::Model;
use orchestrator_store::{JobFilter, JobView, Page, TaskView};

/// How a task ended, as far as others depend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Completed,
    Skipped,
    /// Skipped because something before it went wrong.
    Blocked,
    Failed,
}

impl Standing {
    fn is_bad(self) -> bool {
        matches!(self, Standing::Failed | Standing::Blocked)
    }
}

/// Looks at every job of a flow that came to its own end.
pub fn ends_follow_the_rules(model: &Model) -> Check {
    let states = vec![JobState::Completed, JobState::Failed];
    let filter = JobFilter { states, ..JobFilter::default() };
    for job in model.list(&filter, Page { after: None, limit: u32::MAX }) {
        let Some(plan) = plan_of(model, &job) else { continue };
        follows(&plan, &job).map_err(|what| Violation::new("rules", format!("job {}: {what}", job.id)))?;
    }
    Ok(())
}

fn follows(plan: &Plan, job: &JobView) -> Result<(), String> {
    let mut all: Vec<Standing> = vec![];
    // The flows of scripts name what they need before they need it.
    for (rules, task) in plan.tasks().iter().zip(&job.tasks) {
        let standing = standing(plan, rules, task, &all).map_err(|what| format!("{} {what}", task.name))?;
        all.push(standing);
    }
    let bad = all.iter().any(|standing| standing.is_bad());
    if bad != (job.state == JobState::Failed) {
        return Err(format!("it is {}, but its tasks are {all:?}", job.state));
    }
    Ok(())
}

fn standing(plan: &Plan, rules: &TaskPlan, task: &TaskView, before: &[Standing]) -> Result<Standing, String> {
    let needs: Vec<(Standing, bool)> =
        rules.needs.iter().map(|n| (before[*n as usize], plan.tasks()[*n as usize].optional)).collect();
    let any_bad = needs.iter().any(|(need, _)| need.is_bad());
    let holds = match rules.join {
        JoinRule::AllDone => true,
        JoinRule::AnyFailed => any_bad,
        JoinRule::AllCompleted => needs.iter().all(|(need, optional)| match need {
            Standing::Completed => true,
            Standing::Skipped => *optional,
            Standing::Blocked | Standing::Failed => false,
        }),
    };
    match task.state {
        // By the deadline of an earlier life of the job, of which only a part was run again.
        TaskState::TimedOut => Ok(Standing::Failed),
        TaskState::Skipped if !holds => Ok(if any_bad { Standing::Blocked } else { Standing::Skipped }),
        _ if !holds => Err(format!("is {} though its join does not hold: {needs:?}", task.state)),
        TaskState::Completed => Ok(Standing::Completed),
        TaskState::Failed if rules.optional => Err("is optional, and failed all the same".to_owned()),
        TaskState::Failed => Ok(Standing::Failed),
        TaskState::Skipped => {
            // A condition, or a list that cannot be made, skips a task that was never tried.
            let tried = task.counters.attempt > 0 || rules.when.is_some() || rules.each.is_some();
            if tried {
                Ok(Standing::Skipped)
            } else {
                Err(format!("never ran, though its needs are {needs:?}"))
            }
        }
        state => Err(format!("is {state} in a job that has ended")),
    }
}
