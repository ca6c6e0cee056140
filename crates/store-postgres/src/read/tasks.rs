//! Tasks as the catalog shows them: wherever a task stands, its view is made here.

use super::jobs::{Head, Job, Kind};
use super::row::Columns;
use super::{Read, Reader, sql, unreadable};
use orchestrator_core::flow::run::{Group, Place, Standing};
use orchestrator_core::{DeadReason, ErrorClass, Json, Millis, TaskSpec, TaskState, WorkerId, decide};
use orchestrator_store::packed::{pack, state_of};
use orchestrator_store::{AttemptEnd, AttemptRecord, ItemsView, TaskView};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tokio_postgres::Row;

/// A task that is to be shown. The job must have it.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub job: &'a Job,
    pub index: u32,
}

impl<'a> Wanted<'a> {
    fn task(self) -> i64 {
        pack(self.job.seq, self.index)
    }

    fn head(self) -> Option<&'a Head> {
        match &self.job.kind {
            Kind::Flow(head) => Some(head),
            Kind::Queue(_) => None,
        }
    }

    /// What it was expanded into.
    fn group(self) -> Option<&'a Group> {
        self.head()?.run.group(self.index)
    }

    /// The tasks that it was expanded into: the first, and the one after the last.
    fn items(self) -> Option<(i64, i64)> {
        let group = self.group()?;
        let first = pack(self.job.seq, group.first);
        Some((first, first + i64::from(group.count)))
    }

    /// Whether its output is made of those of its items.
    fn gathers(self) -> bool {
        self.head().is_some_and(|head| {
            let expands = head.plan.tasks().get(self.index as usize).is_some_and(|task| task.each.is_some());
            expands && head.run.tasks[self.index as usize] == Standing::Completed
        })
    }
}

/// What the tables say of some tasks.
#[derive(Default)]
pub(super) struct Facts {
    ended: FxHashMap<i64, Row>,
    leased: FxHashMap<i64, Row>,
    waiting: FxHashMap<i64, Row>,
    history: FxHashMap<i64, Vec<AttemptRecord>>,
    /// Of tasks of flows that came to life.
    rows: FxHashMap<i64, Row>,
    /// How many items are held by workers, by the first item.
    running: FxHashMap<i64, u32>,
    /// What items ended with.
    outputs: FxHashMap<i64, Option<Json>>,
    /// How long the tasks of flows usually take.
    usual: FxHashMap<(i32, u32), Millis>,
}

impl Reader<'_> {
    /// The views of tasks, in the same order.
    pub(super) async fn tasks(&self, wanted: &[Wanted<'_>]) -> Read<Vec<TaskView>> {
        if wanted.is_empty() {
            return Ok(vec![]);
        }
        let tasks: Vec<i64> = wanted.iter().map(|wanted| wanted.task()).collect();
        let of_queues = wanted.iter().filter(|wanted| wanted.head().is_none());
        let jobs: Vec<i64> = of_queues.map(|wanted| wanted.job.seq).collect();
        let mut facts = self.facts(&tasks, &jobs).await?;
        if wanted.iter().any(|wanted| wanted.head().is_some()) {
            self.facts_of_flows(wanted, &mut facts).await?;
        }
        wanted.iter().map(|wanted| view(*wanted, &mut facts)).collect()
    }

    /// What the tables say of tasks; those of queues are also known by their jobs.
    pub(super) async fn facts(&self, tasks: &[i64], jobs: &[i64]) -> Read<Facts> {
        let [ended, leased, attempts] = self
            .query_all([(sql::ENDED, &[&tasks]), (sql::LEASED, &[&tasks]), (sql::ATTEMPTS, &[&tasks])])
            .await?;
        let (ended, leased) = (by_task(ended)?, by_task(leased)?);
        // The places where tasks wait are many, so they are only asked for those that are not elsewhere.
        let waits = |task: &&i64| !ended.contains_key(*task) && !leased.contains_key(*task);
        let rest: Vec<i64> = tasks.iter().filter(waits).copied().collect();
        let waiting = match rest.is_empty() {
            true => vec![],
            false => self.query(sql::WAITING, &[&rest, &jobs]).await?,
        };
        let mut history: FxHashMap<i64, Vec<AttemptRecord>> = FxHashMap::default();
        for row in attempts {
            history.entry(row.try_get("task")?).or_default().push(record(&row)?);
        }
        Ok(Facts { ended, leased, waiting: by_task(waiting)?, history, ..Facts::default() })
    }

    async fn facts_of_flows(&self, wanted: &[Wanted<'_>], facts: &mut Facts) -> Read<()> {
        let heads = || wanted.iter().filter_map(|wanted| wanted.head().map(|head| (*wanted, head)));
        let tasks: Vec<i64> = heads().map(|(wanted, _)| wanted.task()).collect();
        let expanded: Vec<(i64, i64)> = heads().filter_map(|(wanted, _)| wanted.items()).collect();
        let gathered = heads().filter(|(wanted, _)| wanted.gathers());
        let gathered: Vec<(i64, i64)> = gathered.filter_map(|(wanted, _)| wanted.items()).collect();
        let timed = heads().filter(|(_, head)| !head.plan.is_implicit()).map(|(_, head)| head.flow);
        let timed: Vec<i32> = timed.collect::<FxHashSet<_>>().into_iter().collect();
        let (firsts, ends): (Vec<i64>, Vec<i64>) = expanded.into_iter().unzip();
        let (from, to): (Vec<i64>, Vec<i64>) = gathered.into_iter().unzip();
        let [rows, running, outputs, usual] = self
            .query_all([
                (sql::TASKS, &[&tasks]),
                (sql::RUNNING_ITEMS, &[&firsts, &ends]),
                (sql::ITEM_OUTPUTS, &[&from, &to]),
                (sql::TIMINGS, &[&timed]),
            ])
            .await?;
        facts.rows = by_task(rows)?;
        for row in running {
            facts.running.insert(row.try_get("first")?, row.count("n")?);
        }
        for row in outputs {
            facts.outputs.insert(row.try_get("task")?, row.json("output")?);
        }
        for row in usual {
            let usual = u64::try_from(row.try_get::<_, i64>("usual")?).unwrap_or(0);
            facts.usual.insert((row.try_get("flow")?, row.count("task")?), Millis(usual));
        }
        Ok(())
    }
}

fn by_task(rows: Vec<Row>) -> Read<FxHashMap<i64, Row>> {
    rows.into_iter().map(|row| Ok((row.try_get("task")?, row))).collect()
}

pub(super) fn view(wanted: Wanted<'_>, facts: &mut Facts) -> Read<TaskView> {
    match &wanted.job.kind {
        Kind::Queue(spec) => of_queue(wanted, spec, facts),
        Kind::Flow(head) => of_flow(wanted, head, facts),
    }
}

fn of_queue(wanted: Wanted<'_>, spec: &Arc<TaskSpec>, facts: &mut Facts) -> Read<TaskView> {
    let mut view = TaskView::pending(wanted.index, "main".into(), spec.clone());
    view.input = Some(wanted.job.payload.clone());
    view.history = facts.history.remove(&wanted.task()).unwrap_or_default();
    if !fill(&mut view, wanted.task(), facts)? {
        return Err(unreadable(format!("where the task of job number {} stands", wanted.job.seq)));
    }
    Ok(view)
}

fn of_flow(wanted: Wanted<'_>, head: &Head, facts: &mut Facts) -> Read<TaskView> {
    let (task, index, job) = (wanted.task(), wanted.index, wanted.job);
    let place = head.run.place(index).ok_or_else(|| unreadable("the index of a task"))?;
    let rules = &head.plan.tasks()[place.task as usize];
    let mut view = TaskView::pending(index, name_of(head, place), rules.spec.clone());
    // The task of a job of a queue gets what was submitted, and that is known from the start.
    view.input = head.plan.is_implicit().then(|| job.payload.clone());
    view.counters.attempt = head.run.attempts_before(index);
    view.usual = facts.usual.get(&(head.flow, place.task)).copied();
    view.history = facts.history.remove(&task).unwrap_or_default();
    if let Some(row) = facts.rows.get(&task) {
        let own = row.json("payload")?.or_else(|| rules.literal.clone());
        view.input = Some(own.unwrap_or_else(|| job.payload.clone()));
        view.limits = row.limits()?;
    }
    let group = wanted.group();
    if !fill(&mut view, task, facts)? && group.is_some() {
        view.state = TaskState::Running;
    }
    if wanted.gathers() {
        let (first, end) = wanted.items().unwrap_or_default();
        view.output =
            Some(TaskView::output_of_items((first..end).map(|item| facts.outputs.remove(&item).flatten())));
    }
    view.items = group.map(|group| ItemsView {
        first: group.first,
        count: group.count,
        ended: group.ended,
        failed: group.failed,
        running: facts.running.get(&pack(job.seq, group.first)).copied().unwrap_or(0),
    });
    Ok(view)
}

fn name_of(head: &Head, place: Place) -> Arc<str> {
    place_name(&head.plan.tasks()[place.task as usize].name, place)
}

/// The name of the task at a place.
pub fn place_name(name: &Arc<str>, place: Place) -> Arc<str> {
    place.item.map_or_else(|| name.clone(), |item| format!("{name}[{item}]").into())
}

/// Fills in where a task stands. False if it stands nowhere.
fn fill(view: &mut TaskView, task: i64, facts: &Facts) -> Read<bool> {
    let row = if let Some(row) = facts.ended.get(&task) {
        view.state = state_of(row.small("state")?).ok_or_else(|| unreadable("the state of a task"))?;
        view.ended = Some(row.moment("at")?);
        view.output = row.json("output")?;
        view.dead = row.maybe_text("reason")?.and_then(|reason| DeadReason::from_word(&reason));
        row
    } else if let Some(row) = facts.leased.get(&task) {
        view.state = TaskState::Running;
        view.checkpoint = row.json("checkpoint")?;
        view.worker = Some(WorkerId::new(row.text("worker")?));
        view.started = Some(row.moment("started")?);
        view.expires = Some(row.moment("expires")?);
        row
    } else if let Some(row) = facts.waiting.get(&task) {
        view.checkpoint = row.json("checkpoint")?;
        view.due = row.maybe_moment("due")?;
        view.since = row.maybe_moment("since")?;
        view.parked = row.try_get("parked")?;
        view.held = row.try_get("held")?;
        let counters = row.counters()?;
        view.state = if view.due.is_some() { decide::waiting_state(&counters) } else { TaskState::Queued };
        row
    } else {
        return Ok(false);
    };
    view.counters = row.counters()?;
    view.limits = row.limits()?;
    Ok(true)
}

fn record(row: &Row) -> Read<AttemptRecord> {
    let how: &str = row.try_get("how")?;
    Ok(AttemptRecord {
        attempt: row.count("attempt")?,
        at: row.moment("at")?,
        how: attempt_end(how).ok_or_else(|| unreadable(format!("the end {how:?} of an attempt")))?,
        message: row.try_get("message")?,
    })
}

fn attempt_end(how: &str) -> Option<AttemptEnd> {
    match how {
        "lost" => Some(AttemptEnd::Lost),
        "stale" => Some(AttemptEnd::Stale),
        _ => how.strip_prefix("failed:").and_then(ErrorClass::from_word).map(AttemptEnd::Failed),
    }
}
