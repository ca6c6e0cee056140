//! Whether the journal of a model tells its truth.

use super::Model;
use orchestrator_core::{Event, JobId, JobState, TaskEvent, TaskId, TaskState};
use std::collections::BTreeMap;

impl Model {
    /// Every event is a legal move, and the last one of each task and job is its state.
    pub(super) fn journal_tells_the_truth(&self) -> Result<(), String> {
        let mut tasks: BTreeMap<TaskId, TaskEvent> = BTreeMap::new();
        let mut jobs: BTreeMap<JobId, JobState> = BTreeMap::new();
        for event in self.journal.iter().flat_map(|entry| &entry.events) {
            match event {
                Event::Task(event) => {
                    let from = tasks.insert(event.task, *event);
                    let from = from.map_or(TaskState::Pending, |event| event.state);
                    if !from.can_become(event.state) {
                        return Err(format!(
                            "the journal moves task {} from {from} to {}",
                            event.task, event.state
                        ));
                    }
                }
                Event::Job(event) => {
                    let from = jobs.insert(event.job, event.state);
                    // A job of a queue is first told of when it is paused.
                    let legal = from.map_or(!event.state.is_terminal(), |from| from.can_become(event.state));
                    if !legal {
                        return Err(format!(
                            "the journal moves job {} from {from:?} to {}",
                            event.job, event.state
                        ));
                    }
                }
            }
        }
        for job in self.jobs.values() {
            let told = jobs.get(&job.id).copied();
            if told != job.header.then_some(job.state()) {
                return Err(format!("the journal leaves job {} in {told:?}, it is {}", job.id, job.state()));
            }
        }
        for ((_, index), job, task) in self.tasks() {
            let told = tasks.get(&job.task_id(index)).map(|event| (event.state, event.attempt));
            let told = told.unwrap_or((TaskState::Pending, 0));
            let is = (task.state(), task.counters.attempt);
            if told != is {
                return Err(format!(
                    "the journal leaves task {} in {told:?}, it is {is:?}",
                    job.task_id(index)
                ));
            }
        }
        Ok(())
    }
}
