//! How every job stands at the end, for the history checker.

use crate::jobs::key_of;
use orchestrator_core::TaskId;
use orchestrator_core::flow::Plan;
use orchestrator_history::{LastJob, LastTask, LastWord};
use orchestrator_store::model::Model;
use orchestrator_store::{JobFilter, JobView, Page, TaskView};

/// Everything that is there.
pub fn last_word(model: &Model) -> LastWord {
    let jobs = model.list(&JobFilter::default(), Page { after: None, limit: u32::MAX });
    LastWord { jobs: jobs.iter().map(|job| last_job(model, job)).collect() }
}

/// The flow that a job runs, if it runs one.
pub fn plan_of(model: &Model, job: &JobView) -> Option<Plan> {
    let flow = job.flow.as_ref()?;
    let version = model.flow(&flow.name, Some(flow.version))?;
    Plan::from_text(version.definition.as_str()).ok()
}

fn last_job(model: &Model, job: &JobView) -> LastJob {
    let plan = plan_of(model, job);
    let needs = |task: u32| plan.as_ref().map_or(vec![], |plan| plan.tasks()[task as usize].needs.clone());
    let expands = |task: u32| plan.as_ref().is_some_and(|plan| plan.tasks()[task as usize].each.is_some());
    let mut tasks = vec![];
    for task in &job.tasks {
        tasks.push(last_task(task, !expands(task.index), needs(task.index)));
        let items = model.items(TaskId { job: job.id, index: task.index }, None, u32::MAX);
        tasks.extend(items.iter().map(|item| last_task(item, true, needs(task.index))));
    }
    LastJob { id: job.id, key: key_of(job), payload: job.payload.clone(), state: job.state, tasks }
}

fn last_task(task: &TaskView, runs: bool, needs: Vec<u32>) -> LastTask {
    LastTask {
        index: task.index,
        name: task.name.clone(),
        state: task.state,
        attempt: task.counters.attempt,
        failures: task.counters.failures,
        crashes: task.counters.crashes,
        output: task.output.clone().filter(|_| runs),
        runs,
        needs,
    }
}
