//! Short words for examples of flows.

use super::world::*;
use crate::verbs::*;
use crate::views::*;
use orchestrator_core::flow::def::BackoffDef;
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::{Event, JobId, JobState, NewJob, Outcome, TaskId, TaskState};
use std::sync::Arc;

/// A task for the examples' handler; retries wait 1 s, 2 s, 4 s without jitter.
pub(super) fn task(name: &str) -> Task {
    on(name, HANDLER)
}

/// A task for a handler.
pub(super) fn on(name: &str, handler: &str) -> Task {
    Task::new(name, handler).backoff(BackoffDef { jitter_percent: Some(0), ..BackoffDef::default() })
}

/// A flow of tasks.
pub(super) fn flow<const N: usize>(tasks: [Task; N]) -> Flow {
    tasks.into_iter().fold(Flow::new("flow"), Flow::task)
}

pub(super) fn plan(flow: Flow) -> Arc<Plan> {
    Arc::new(flow.plan().unwrap_or_else(|problems| panic!("the flow should be sound: {problems:?}")))
}

/// Three tasks, one after the other.
pub(super) fn chain() -> Flow {
    flow([task("a"), task("b").needs(["a"]), task("c").needs(["b"])])
}

pub(super) fn new(flow: Flow) -> NewJob {
    NewJob::of_flow(plan(flow))
}

/// An attempt that ended well, with a result.
pub(super) fn output(text: &str) -> Outcome {
    Outcome::Completed(json(text))
}

pub(super) fn recover(job: JobId, from: Option<&str>) -> Command {
    Command::Recover { job, from: from.map(Arc::from) }
}

impl World {
    /// Submits a job of a flow.
    pub async fn start(&self, flow: Flow) -> JobId {
        self.add(new(flow)).await
    }

    /// Submits a job of a flow with an input.
    pub async fn start_with(&self, flow: Flow, input: &str) -> JobId {
        self.add(new(flow).payload(json(input))).await
    }

    /// Leases the one task that is next, which must have this name.
    pub async fn take(&self, name: &str) -> Leased {
        let leased = self.lease_one().await;
        assert_eq!(&*leased.name, name, "the task that is next");
        leased
    }

    /// Runs the task that is next to an end.
    pub async fn run(&self, name: &str, outcome: Outcome) -> Settled {
        let leased = self.take(name).await;
        self.settle(leased.held(), outcome).await
    }

    /// Runs the tasks that are next to their good ends, in this order.
    pub async fn run_all(&self, names: &[&str]) {
        for name in names {
            assert_eq!(self.run(name, done()).await.state(), Some(TaskState::Completed));
        }
    }

    /// Where the tasks of a job's flow stand.
    pub async fn states(&self, job: JobId) -> Vec<TaskState> {
        self.job(job).await.tasks.iter().map(|task| task.state).collect()
    }

    pub async fn job_state(&self, job: JobId) -> JobState {
        self.job(job).await.state
    }

    /// A task by its name.
    pub async fn named(&self, job: JobId, name: &str) -> TaskView {
        let tasks = self.job(job).await.tasks;
        tasks.into_iter().find(|task| &*task.name == name).unwrap_or_else(|| panic!("no task {name}"))
    }

    /// The items of a task by its name.
    pub async fn items_of(&self, job: JobId, name: &str) -> Vec<TaskView> {
        let group = TaskId { job, index: self.named(job, name).await.index };
        self.store.items(group, None, ALL).await.expect("items")
    }

    /// What the journal says of a job, in order.
    pub async fn life(&self, job: JobId) -> Vec<JobState> {
        let told = self.events().await.into_iter().filter_map(|event| match event {
            Event::Job(event) if event.job == job => Some(event.state),
            _ => None,
        });
        told.collect()
    }

    /// What the journal says of a task, in order.
    pub async fn task_life(&self, job: JobId, index: u32) -> Vec<(TaskState, u32)> {
        let told = self.events().await.into_iter().filter_map(|event| match event {
            Event::Task(event) if event.task == TaskId { job, index } => Some((event.state, event.attempt)),
            _ => None,
        });
        told.collect()
    }

    /// Every event of the journal.
    pub async fn events(&self) -> Vec<Event> {
        journal(&*self.store).await.into_iter().map(|told| told.event).collect()
    }
}
