//! Ids differ between stores: names under which the jobs of two stores can be compared.

use crate::retention::{Forget, Removable, RemovablePage};
use crate::verbs::{Command, Controlled, Held, Submitted, Swept, Wish};
use crate::views::{DeadLetter, JobView, TaskView};
use orchestrator_core::{Event, JobEvent, JobId, NewJob, TaskEvent, TaskId, Timestamp};

/// The jobs of a store, numbered from 1 in order of submission.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<JobId>);

impl Names {
    pub fn of(ids: impl IntoIterator<Item = JobId>) -> Names {
        Names(ids.into_iter().collect())
    }

    pub fn push(&mut self, id: JobId) {
        self.0.push(id);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The id that stands for job number `n`, the same for every store.
    pub fn numbered(n: usize) -> JobId {
        JobId::from_parts(Timestamp::from_millis(0), n as u128)
    }

    /// The id, in this store, of the job that [`Names::numbered`] stands for. One that does not exist stays as
    /// it is, and is unknown to the store as well.
    pub fn id(&self, numbered: JobId) -> JobId {
        let n = numbered.free_bits() as usize;
        n.checked_sub(1).and_then(|at| self.0.get(at)).copied().unwrap_or(numbered)
    }

    /// The number, as an id, of a job of this store. One that was never submitted stays as it is.
    pub fn name(&self, id: JobId) -> JobId {
        self.0.iter().position(|other| *other == id).map_or(id, |at| Names::numbered(at + 1))
    }

    pub fn task(&self, task: TaskId) -> TaskId {
        TaskId { job: self.name(task.job), ..task }
    }

    pub fn own_task(&self, task: TaskId) -> TaskId {
        TaskId { job: self.id(task.job), ..task }
    }

    /// Answers of this store, with its jobs by number.
    pub fn submitted(&self, answer: Submitted) -> Submitted {
        match answer {
            Submitted::Created { id, previous } => {
                Submitted::Created { id: self.name(id), previous: previous.map(|id| self.name(id)) }
            }
            Submitted::Existing { id, state } => Submitted::Existing { id: self.name(id), state },
            Submitted::Conflict { id } => Submitted::Conflict { id: self.name(id) },
        }
    }

    pub fn controlled(&self, answer: Controlled) -> Controlled {
        match answer {
            Controlled::Superseded(id) => Controlled::Superseded(self.name(id)),
            other => other,
        }
    }

    pub fn held(&self, held: Held) -> Held {
        Held { task: self.task(held.task), ..held }
    }

    pub fn swept(&self, swept: Swept) -> Swept {
        Swept {
            ended: swept.ended.into_iter().map(|(held, end)| (self.held(held), end)).collect(),
            timed_out: swept.timed_out.into_iter().map(|id| self.name(id)).collect(),
            more: swept.more,
        }
    }

    /// Requests to this store, from jobs by number.
    pub fn own(&self, held: Held) -> Held {
        Held { task: self.own_task(held.task), ..held }
    }

    pub fn new_job(&self, job: NewJob) -> NewJob {
        NewJob {
            after: job.after.iter().map(|id| self.id(*id)).collect(),
            rerun_of: job.rerun_of.map(|id| self.id(id)),
            ..job
        }
    }

    pub fn command(&self, command: Command) -> Command {
        match command {
            Command::Retry(id) => Command::Retry(self.id(id)),
            Command::Cancel(id) => Command::Cancel(self.id(id)),
            Command::Pause(id) => Command::Pause(self.id(id)),
            Command::Resume(id) => Command::Resume(self.id(id)),
            Command::Recover { job, from } => Command::Recover { job: self.id(job), from },
            Command::Requeue(task) => Command::Requeue(self.own_task(task)),
            Command::Discard(task) => Command::Discard(self.own_task(task)),
        }
    }

    pub fn wish(&self, wish: Wish) -> Wish {
        Wish { command: self.command(wish.command), ..wish }
    }

    pub fn forget(&self, wish: Forget) -> Forget {
        Forget { job: self.id(wish.job), ..wish }
    }

    pub fn removable(&self, page: RemovablePage) -> RemovablePage {
        let named = |job: Removable| Removable { job: self.name(job.job), ..job };
        RemovablePage {
            jobs: page.jobs.into_iter().map(named).collect(),
            next: page.next.map(|id| self.name(id)),
        }
    }

    /// What this store shows, with its jobs by number.
    pub fn view(&self, job: JobView) -> JobView {
        JobView {
            id: self.name(job.id),
            previous: job.previous.map(|id| self.name(id)),
            waits_for: job.waits_for.iter().map(|id| self.name(*id)).collect(),
            reason: job.reason.map(|reason| self.reason(reason)),
            tasks: job.tasks.into_iter().map(|task| self.task_view(task)).collect(),
            ..job
        }
    }

    /// A reason may name the job that this one was to wait for.
    fn reason(&self, reason: String) -> String {
        let rename = |reason: String, id: &JobId| {
            let text = id.to_string();
            if reason.contains(&text) { reason.replace(&text, &self.name(*id).to_string()) } else { reason }
        };
        self.0.iter().fold(reason, rename)
    }

    pub fn task_view(&self, task: TaskView) -> TaskView {
        TaskView { parked: false, ..task }
    }

    pub fn dead(&self, dead: DeadLetter) -> DeadLetter {
        DeadLetter { task: self.task(dead.task), ..dead }
    }

    pub fn event(&self, event: Event) -> Event {
        match event {
            Event::Task(event) => Event::Task(TaskEvent { task: self.task(event.task), ..event }),
            Event::Job(event) => Event::Job(JobEvent { job: self.name(event.job), ..event }),
        }
    }
}
