//! Everything that can be seen of a store, in a form in which two stores can be compared.
//!
//! Whether a task in line is parked or ready is a store's own affair, so that is left out, and so are
//! lines of which nothing is counted.

use super::names::Names;
use super::world::{ALL, everything, journal};
use crate::contract::Catalog;
use crate::views::*;
use orchestrator_core::{Document, Event, JobEvent, JobId, TaskEvent, TaskId};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// What the journal tells beside an event: the name of the task, the tenant and the flow.
type About = (Option<Arc<str>>, Arc<str>, Option<Arc<str>>);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Snapshot {
    jobs: Vec<JobView>,
    items: Vec<(TaskId, TaskView)>,
    stats: Vec<LineStats>,
    dead: Vec<DeadLetter>,
    limits: Vec<LimitView>,
    flows: Vec<FlowView>,
    documents: Vec<(JobId, Option<Document>)>,
    paused: Vec<PausedQueue>,
    workers: Vec<WorkerView>,
    daily: Vec<DayStats>,
    /// The events of each task and of each job, in order.
    tasks: BTreeMap<TaskId, Vec<(TaskEvent, About)>>,
    lives: BTreeMap<JobId, Vec<(JobEvent, About)>>,
}

impl Snapshot {
    /// Reads everything.
    pub async fn of(catalog: &dyn Catalog) -> Snapshot {
        let jobs = catalog.list(JobFilter::default(), everything()).await.expect("list");
        Snapshot::named(catalog, &Names::of(jobs.iter().map(|job| job.id))).await
    }

    /// Reads everything, with jobs by these names.
    pub async fn named(catalog: &dyn Catalog, names: &Names) -> Snapshot {
        let jobs = catalog.list(JobFilter::default(), everything()).await.expect("list");
        let dead = catalog.dead_letters(LineFilter::default(), None, ALL).await.expect("dead_letters");
        let mut snapshot = Snapshot {
            items: vec![],
            stats: lines(catalog.stats().await.expect("stats")),
            dead: dead.into_iter().map(|dead| names.dead(dead)).collect(),
            limits: catalog.limits().await.expect("limits"),
            flows: flows(catalog, &jobs).await,
            documents: vec![],
            paused: catalog.paused_queues().await.expect("paused_queues"),
            workers: catalog.workers().await.expect("workers"),
            daily: catalog.daily(ALL).await.expect("daily"),
            tasks: BTreeMap::new(),
            lives: BTreeMap::new(),
            jobs: vec![],
        };
        for told in journal(catalog).await {
            let about = (told.name, told.tenant, told.flow);
            snapshot.note(names.event(told.event), about);
        }
        for job in jobs {
            for group in job.tasks.iter().filter(|task| task.items.is_some()) {
                let group = TaskId { job: job.id, index: group.index };
                let items = catalog.items(group, None, ALL).await.expect("items");
                let named = items.into_iter().map(|item| (names.task(group), names.task_view(item)));
                snapshot.items.extend(named);
            }
            if job.document.is_some() {
                let document = catalog.document(job.id).await.expect("document");
                snapshot.documents.push((names.name(job.id), document));
            }
            snapshot.jobs.push(names.view(job));
        }
        snapshot
    }

    fn note(&mut self, event: Event, about: About) {
        match event {
            Event::Task(event) => self.tasks.entry(event.task).or_default().push((event, about)),
            Event::Job(event) => self.lives.entry(event.job).or_default().push((event, about)),
        }
    }

    /// Says where two stores differ, if they do: the first thing that is not the same.
    pub fn same_as(&self, other: &Snapshot) -> Result<(), String> {
        same_list("jobs", &self.jobs, &other.jobs)?;
        same_list("items", &self.items, &other.items)?;
        same_list("lines of stats", &self.stats, &other.stats)?;
        same_list("dead letters", &self.dead, &other.dead)?;
        same_list("limits", &self.limits, &other.limits)?;
        same_list("flows", &self.flows, &other.flows)?;
        same_list("documents", &self.documents, &other.documents)?;
        same_list("paused queues", &self.paused, &other.paused)?;
        same_list("workers", &self.workers, &other.workers)?;
        same_list("days", &self.daily, &other.daily)?;
        let (ours, theirs) = (flat(&self.tasks), flat(&other.tasks));
        same_list("events of the journal, task by task", &ours, &theirs)?;
        let (ours, theirs) = (flat(&self.lives), flat(&other.lives));
        same_list("events of the journal, job by job", &ours, &theirs)
    }
}

/// The current flows, and every version of those and of those that jobs run.
async fn flows(catalog: &dyn Catalog, jobs: &[JobView]) -> Vec<FlowView> {
    let mut flows = catalog.flows(None).await.expect("flows");
    let ran = jobs.iter().filter_map(|job| job.flow.as_ref()).map(|flow| flow.name.clone());
    let mut names: Vec<_> = flows.iter().map(|flow| flow.flow.name.clone()).chain(ran).collect();
    names.sort();
    names.dedup();
    for name in names {
        flows.extend(catalog.flows(Some(name)).await.expect("flows"));
    }
    flows
}

/// Ready and parked together, and only where something is counted.
fn lines(stats: Stats) -> Vec<LineStats> {
    let lines = stats.lines.into_iter();
    let lines = lines.map(|line| LineStats { ready: line.ready + line.parked, parked: 0, ..line });
    lines.filter(|line| *line != LineStats::new(line.queue.clone(), line.handler.clone())).collect()
}

fn flat<K, T: Clone>(events: &BTreeMap<K, Vec<T>>) -> Vec<T> {
    events.values().flatten().cloned().collect()
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
