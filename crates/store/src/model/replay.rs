//! Whether the journal of a model tells its truth.

use super::{Entry, Model};
use orchestrator_core::{Event, JobId, JobState, TaskEvent, TaskId, TaskState};
use std::collections::BTreeMap;

/// What the journal has told so far. A journal is only appended to, so whoever checks a model again and again
/// keeps this and reads each entry once.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The last entry that was read.
    upto: i64,
    tasks: BTreeMap<TaskId, TaskEvent>,
    jobs: BTreeMap<JobId, JobState>,
}

impl Told {
    /// Reads an entry.
    pub(super) fn read(&mut self, entry: &Entry) -> Result<(), String> {
        self.upto = entry.n;
        entry.events.iter().try_for_each(|event| self.hear(event))
    }

    fn hear(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Task(event) => {
                let from = self.tasks.insert(event.task, *event);
                let from = from.map_or(TaskState::Pending, |event| event.state);
                if !from.can_become(event.state) {
                    return Err(format!(
                        "the journal moves task {} from {from} to {}",
                        event.task, event.state
                    ));
                }
            }
            Event::Job(event) => {
                let from = self.jobs.insert(event.job, event.state);
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
        Ok(())
    }
}

impl Model {
    /// Every event is a legal move, and the last one of each task and job is its state.
    pub(super) fn journal_tells_the_truth(&self, told: &mut Told) -> Result<(), String> {
        if told.upto < self.told.upto {
            *told = self.told.clone();
        }
        let unread = self.journal.partition_point(|entry| entry.n <= told.upto);
        self.journal[unread..].iter().try_for_each(|entry| told.read(entry))?;
        for job in self.jobs.values() {
            let told = told.jobs.get(&job.id).copied();
            if told != job.header.then_some(job.state()) {
                return Err(format!("the journal leaves job {} in {told:?}, it is {}", job.id, job.state()));
            }
        }
        for ((_, index), job, task) in self.tasks() {
            let told = told.tasks.get(&job.task_id(index)).map(|event| (event.state, event.attempt));
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
