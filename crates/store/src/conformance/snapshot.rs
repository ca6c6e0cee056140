//! Everything that can be seen of a store, in a form in which two stores can be compared.
//!
//! Ids differ between stores, so jobs are renumbered in order of submission. Whether a task in line
//! is parked or ready is a store's own affair, so that is left out.

use super::world::{ALL, everything};
use crate::contract::Catalog;
use crate::verbs::{Command, Controlled, Held, Submitted};
use crate::views::*;
use orchestrator_core::{Event, JobId, TaskId, Timestamp};
use std::collections::BTreeMap;
use std::fmt::Debug;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Snapshot {
    jobs: Vec<JobView>,
    stats: Vec<LineStats>,
    dead: Vec<DeadLetter>,
    limits: Vec<LimitView>,
    /// The events of each task, in order.
    events: BTreeMap<TaskId, Vec<Event>>,
}

impl Snapshot {
    /// Reads everything.
    pub async fn of(catalog: &dyn Catalog) -> Snapshot {
        let jobs = catalog.list(JobFilter::default(), everything()).await.expect("list");
        let names = Names::of(jobs.iter().map(|job| job.id));
        let dead = catalog.dead_letters(LineFilter::default(), everything()).await.expect("dead_letters");
        let journal = catalog.journal(0, ALL).await.expect("journal");
        Snapshot {
            jobs: jobs.into_iter().map(|job| names.view(job)).collect(),
            stats: catalog.stats().await.expect("stats").lines.into_iter().map(line).collect(),
            dead: dead.into_iter().map(|dead| DeadLetter { job: names.name(dead.job), ..dead }).collect(),
            limits: catalog.limits().await.expect("limits"),
            events: names.events(journal.iter().flat_map(|entry| &entry.events)),
        }
    }

    /// Says where two stores differ, if they do: the first thing that is not the same.
    pub fn same_as(&self, other: &Snapshot) -> Result<(), String> {
        same_list("jobs", &self.jobs, &other.jobs)?;
        same_list("lines of stats", &self.stats, &other.stats)?;
        same_list("dead letters", &self.dead, &other.dead)?;
        same_list("limits", &self.limits, &other.limits)?;
        let events = |snapshot: &Snapshot| snapshot.events.values().flatten().copied().collect::<Vec<_>>();
        same_list("events of the journal, task by task", &events(self), &events(other))
    }
}

fn same_list<T: PartialEq + Debug>(what: &str, ours: &[T], others: &[T]) -> Result<(), String> {
    for (n, (a, b)) in ours.iter().zip(others).enumerate() {
        if a != b {
            return Err(format!("{what}: number {} differs\n  got      {a:?}\n  expected {b:?}", n + 1));
        }
    }
    if ours.len() != others.len() {
        let more = ours.get(others.len()).or(others.get(ours.len()));
        return Err(format!(
            "{what}: got {}, expected {}; the first that only one has is {more:?}",
            ours.len(),
            others.len()
        ));
    }
    Ok(())
}

/// Ready and parked together.
fn line(stats: LineStats) -> LineStats {
    LineStats { ready: stats.ready + stats.parked, parked: 0, ..stats }
}

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
        Held { task: TaskId { job: self.name(held.task.job), ..held.task }, ..held }
    }

    /// Requests to this store, from jobs by number.
    pub fn own(&self, held: Held) -> Held {
        Held { task: TaskId { job: self.id(held.task.job), ..held.task }, ..held }
    }

    pub fn command(&self, command: Command) -> Command {
        match command {
            Command::Retry(id) => Command::Retry(self.id(id)),
            Command::Cancel(id) => Command::Cancel(self.id(id)),
        }
    }

    pub fn view(&self, job: JobView) -> JobView {
        JobView {
            id: self.name(job.id),
            previous: job.previous.map(|id| self.name(id)),
            task: TaskView { parked: false, ..job.task },
            ..job
        }
    }

    fn events<'a>(&self, events: impl IntoIterator<Item = &'a Event>) -> BTreeMap<TaskId, Vec<Event>> {
        let mut by_task: BTreeMap<TaskId, Vec<Event>> = BTreeMap::new();
        for event in events {
            let task = TaskId { job: self.name(event.task.job), ..event.task };
            by_task.entry(task).or_default().push(Event { task, ..*event });
        }
        by_task
    }
}
