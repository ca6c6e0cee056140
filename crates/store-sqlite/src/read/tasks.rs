//! Tasks as the catalog shows them: wherever a task stands, its view is made here.

use super::flows::Version;
use super::jobs::unreadable;
use orchestrator_core::flow::Run;
use orchestrator_core::flow::run::Place;
use orchestrator_core::{
    Counters, DeadReason, ErrorClass, Json, Limits, Millis, TaskSpec, TaskState, Timestamp, WorkerId, decide,
};
use orchestrator_store::packed::{pack, state_of};
use orchestrator_store::{AttemptEnd, AttemptRecord, ItemsView, TaskView};
use rusqlite::{Connection, OptionalExtension, Row};
use rustc_hash::FxHashMap;
use std::sync::Arc;

const END: &str = include_str!("../../sql/view_end.sql");
const LEASE: &str = include_str!("../../sql/view_lease.sql");
const TASK: &str = include_str!("../../sql/view_task.sql");
const HELD: &str = include_str!("../../sql/view_held.sql");
const WAITING: &str = include_str!("../../sql/view_waiting.sql");
const MOVED: &str = include_str!("../../sql/view_moved.sql");
const ATTEMPTS: &str = include_str!("../../sql/view_attempts.sql");
const RUNNING_ITEMS: &str = include_str!("../../sql/view_running_items.sql");

/// Where a task stood when it entered.
pub struct Entry {
    pub line: i64,
    pub lane: i64,
    pub tier: u8,
    pub at: i64,
}

/// The task of a queue's job that has no head.
pub fn of_queue(
    conn: &Connection,
    seq: i64,
    spec: Arc<TaskSpec>,
    payload: &Json,
    entry: &Entry,
) -> rusqlite::Result<TaskView> {
    let task = pack(seq, 0);
    let mut view = TaskView { input: Some(payload.clone()), ..TaskView::pending(0, "main".into(), spec) };
    if !fill_settled(conn, task, &mut view)? {
        let at = (entry.line, entry.lane, entry.tier, entry.at, task);
        let here =
            conn.prepare_cached(WAITING)?.query_row(at, |row| fill_waiting(row, &mut view)).optional()?;
        if here.is_none() {
            let at = (entry.line, entry.tier, task);
            conn.prepare_cached(MOVED)?.query_row(at, |row| fill_waiting(row, &mut view))?;
        }
    }
    view.history = history(conn, task)?;
    Ok(view)
}

/// What is known of a job whose tasks are shown.
pub struct Job<'a> {
    pub seq: i64,
    pub version: &'a Version,
    pub run: &'a Run,
    pub payload: &'a Json,
    pub usual: &'a FxHashMap<u32, Millis>,
}

/// A task of a job with a head.
pub fn of_flow(conn: &Connection, job: &Job<'_>, index: u32, place: Place) -> rusqlite::Result<TaskView> {
    let task = pack(job.seq, index);
    let rules = &job.version.plan.tasks()[place.task as usize];
    let name = match place.item {
        Some(item) => format!("{}[{item}]", rules.name).into(),
        None => rules.name.clone(),
    };
    let mut view = TaskView::pending(index, name, rules.spec.clone());
    // The task of a job of a queue gets what was submitted, and that is known from the start.
    view.input = job.version.plan.is_implicit().then(|| job.payload.clone());
    view.counters.attempt = job.run.attempts_before(index);
    view.usual = job.usual.get(&place.task).copied();
    view.history = history(conn, task)?;
    let group = if place.item.is_none() { job.run.group(place.task) } else { None };
    let row = |row: &Row<'_>| {
        let payload: Option<String> = row.get(3)?;
        let input = payload.map(Json::trusted).or_else(|| rules.literal.clone());
        view.input = Some(input.unwrap_or_else(|| job.payload.clone()));
        let at: Option<i64> = row.get(2)?;
        view.limits = limits(&row.get::<_, String>(5)?)?;
        let (lane, tier, line) = (row.get(0)?, row.get(1)?, row.get(4)?);
        Ok(at.map(|at| Entry { line, lane, tier, at }))
    };
    let entry = conn.prepare_cached(TASK)?.query_row([task], row).optional()?;
    if fill_settled(conn, task, &mut view)? {
        if rules.each.is_some() && place.item.is_none() && view.state == TaskState::Completed {
            view.output = Some(list_of_items(conn, job, place.task)?);
        }
    } else if let Some(Some(Entry { line, lane, tier, at })) = entry {
        let held =
            conn.prepare_cached(HELD)?.query_row([task], |row| fill_waiting(row, &mut view)).optional()?;
        if held.is_none() {
            let at = (line, lane, tier, at, task);
            conn.prepare_cached(WAITING)?.query_row(at, |row| fill_waiting(row, &mut view))?;
        }
    } else if group.is_some() {
        view.state = TaskState::Running;
    }
    if let Some(group) = group {
        let (first, last) = (pack(job.seq, group.first), pack(job.seq, group.first) + i64::from(group.count));
        view.items = Some(ItemsView {
            first: group.first,
            count: group.count,
            ended: group.ended,
            failed: group.failed,
            running: conn.prepare_cached(RUNNING_ITEMS)?.query_row((first, last), |row| row.get(0))?,
        });
    }
    Ok(view)
}

/// The output of a task that was expanded: the list of what its items ended with.
fn list_of_items(conn: &Connection, job: &Job<'_>, task: u32) -> rusqlite::Result<Json> {
    let items = job.run.group(task).map_or(0..0, |group| group.first..group.first + group.count);
    let outputs = items.map(|index| output(conn, pack(job.seq, index))).collect::<Result<Vec<_>, _>>()?;
    Ok(TaskView::output_of_items(outputs))
}

fn output(conn: &Connection, task: i64) -> rusqlite::Result<Option<Json>> {
    let mut statement = conn.prepare_cached(include_str!("../../sql/task_output.sql"))?;
    let found = statement.query_row([task], |row| row.get::<_, Option<String>>(0)).optional()?;
    Ok(found.flatten().map(Json::trusted))
}

/// Fills in a task that is over or held by a worker. False if it is neither.
fn fill_settled(conn: &Connection, task: i64, view: &mut TaskView) -> rusqlite::Result<bool> {
    let over = conn.prepare_cached(END)?.query_row([task], |row| {
        let dead: Option<String> = row.get(7)?;
        view.state = state_of(row.get(0)?).ok_or_else(|| unreadable(0, "state"))?;
        view.ended = Some(Timestamp::from_millis(row.get(1)?));
        view.counters = counters(row, 2)?;
        view.output = row.get::<_, Option<String>>(5)?.map(Json::trusted);
        view.limits = limits(&row.get::<_, String>(6)?)?;
        view.dead = dead.as_deref().and_then(DeadReason::from_word);
        Ok(())
    });
    if over.optional()?.is_some() {
        return Ok(true);
    }
    let leased = conn.prepare_cached(LEASE)?.query_row([task], |row| {
        view.state = TaskState::Running;
        view.counters = counters(row, 0)?;
        view.checkpoint = row.get::<_, Option<String>>(3)?.map(Json::trusted);
        view.worker = Some(WorkerId::new(row.get::<_, String>(4)?));
        view.started = Some(Timestamp::from_millis(row.get(5)?));
        view.expires = Some(Timestamp::from_millis(row.get(6)?));
        view.limits = limits(&row.get::<_, String>(7)?)?;
        Ok(())
    });
    Ok(leased.optional()?.is_some())
}

fn fill_waiting(row: &Row<'_>, view: &mut TaskView) -> rusqlite::Result<()> {
    view.counters = counters(row, 0)?;
    view.checkpoint = row.get::<_, Option<String>>("checkpoint")?.map(Json::trusted);
    view.due = row.get::<_, Option<i64>>("due")?.map(Timestamp::from_millis);
    view.since = row.get::<_, Option<i64>>("since")?.map(Timestamp::from_millis);
    view.parked = row.get("parked")?;
    view.held = row.get("held")?;
    view.limits = limits(&row.get::<_, String>("keys")?)?;
    view.state = if view.due.is_some() { decide::waiting_state(&view.counters) } else { TaskState::Queued };
    Ok(())
}

fn history(conn: &Connection, task: i64) -> rusqlite::Result<Vec<AttemptRecord>> {
    let mut statement = conn.prepare_cached(ATTEMPTS)?;
    let rows = statement.query_map([task], |row| {
        let how: String = row.get(2)?;
        Ok(AttemptRecord {
            attempt: row.get(0)?,
            at: Timestamp::from_millis(row.get(1)?),
            how: attempt_end(&how).ok_or_else(|| unreadable(2, &how))?,
            message: row.get(3)?,
        })
    })?;
    rows.collect()
}

fn attempt_end(how: &str) -> Option<AttemptEnd> {
    match how {
        "lost" => Some(AttemptEnd::Lost),
        "stale" => Some(AttemptEnd::Stale),
        _ => how.strip_prefix("failed:").and_then(ErrorClass::from_word).map(AttemptEnd::Failed),
    }
}

/// Attempt, failures and crashes, from a column on.
pub fn counters(row: &Row<'_>, at: usize) -> rusqlite::Result<Counters> {
    Ok(Counters { attempt: row.get(at)?, failures: row.get(at + 1)?, crashes: row.get(at + 2)? })
}

fn limits(text: &str) -> rusqlite::Result<Limits> {
    serde_json::from_str(text).map_err(|_| unreadable(0, text))
}
