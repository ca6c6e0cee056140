//! The journal, replayed: only legal moves, and attempts that never fall.

use super::world::{ALL, journal};
use crate::contract::Catalog;
use crate::views::JobView;
use orchestrator_core::{Event, JobEvent, JobId, JobState, TaskEvent, TaskId, TaskState};
use std::collections::BTreeMap;

/// What each task and each job went through.
#[derive(Debug, Default)]
pub(super) struct Lives {
    pub tasks: BTreeMap<TaskId, Vec<TaskEvent>>,
    pub jobs: BTreeMap<JobId, Vec<JobState>>,
}

impl Lives {
    pub async fn of(catalog: &dyn Catalog) -> Lives {
        let mut lives = Lives::default();
        let told = journal(catalog).await;
        for pair in told.windows(2) {
            assert!(pair[0].id < pair[1].id && pair[0].at <= pair[1].at, "events stand in order: {pair:?}");
        }
        for told in told {
            match told.event {
                Event::Task(event) => lives.task(event),
                Event::Job(event) => lives.job(event),
            }
        }
        lives
    }

    fn task(&mut self, event: TaskEvent) {
        let life = self.tasks.entry(event.task).or_default();
        let (from, attempt) = life.last().map_or((TaskState::Pending, 0), |last| (last.state, last.attempt));
        assert!(from.can_become(event.state), "no legal move: {from} to {event:?}");
        // A task that is expanded runs without an attempt of its own.
        let started = from != TaskState::Pending && event.state == TaskState::Running;
        assert_eq!(
            event.attempt,
            attempt + u32::from(started),
            "an attempt counts when it starts: {life:?} then {event:?}"
        );
        life.push(event);
    }

    fn job(&mut self, event: JobEvent) {
        let life = self.jobs.entry(event.job).or_default();
        // A job of a queue is first told of when it is paused.
        let first = [JobState::Pending, JobState::Pausing, JobState::Paused];
        match life.last() {
            None => assert!(first.contains(&event.state), "no beginning: {event:?}"),
            Some(from) => assert!(from.can_become(event.state), "no legal move: {from} to {event:?}"),
        }
        life.push(event.state);
    }

    /// Where the journal leaves a task.
    pub fn end_of(&self, task: TaskId) -> (TaskState, u32) {
        let last = self.tasks.get(&task).and_then(|life| life.last());
        last.map_or((TaskState::Pending, 0), |last| (last.state, last.attempt))
    }

    /// The journal's end of each job and task is what the catalog shows of it.
    pub async fn agree_with(&self, catalog: &dyn Catalog, jobs: &[JobView]) {
        let known: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let told = self.tasks.keys().map(|task| task.job).chain(self.jobs.keys().copied());
        for id in told {
            assert!(known.contains(&id), "the journal knows job {id}, and the catalog does not");
        }
        for job in jobs {
            // A job of a queue that was never paused and waited for none is all its task.
            let told_of = job.max_recoveries > 0 || job.flow.is_some();
            let last = self.jobs.get(&job.id).and_then(|life| life.last()).copied();
            assert_eq!(last, told_of.then_some(job.state), "the journal of {job:?}");
            let mut tasks = job.tasks.clone();
            for group in job.tasks.iter().filter(|task| task.items.is_some()) {
                let group = TaskId { job: job.id, index: group.index };
                tasks.extend(catalog.items(group, None, ALL).await.expect("items"));
            }
            for task in tasks {
                let told = self.end_of(TaskId { job: job.id, index: task.index });
                assert_eq!(told, (task.state, task.counters.attempt), "the journal of {task:?} in {job:?}");
            }
        }
    }
}
