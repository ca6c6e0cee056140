//! Jobs as the catalog shows them.

use crate::ids::{Ids, index_of, pack, seq_of, state_of};
use orchestrator_core::{
    Counters, DeadReason, ErrorClass, JobId, JobState, Json, Limits, Priority, TaskState, Timestamp,
    WorkerId, decide,
};
use orchestrator_store::{
    AttemptEnd, AttemptRecord, DeadLetter, JobFilter, JobView, LineFilter, Page, TaskView,
};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};

/// Jobs from after a number, in order: a page of them, or the first one alone.
const PAGE: &str = include_str!("../../sql/view_jobs_page.sql");
const WAITING: &str = include_str!("../../sql/view_waiting.sql");
const MOVED: &str = include_str!("../../sql/view_moved.sql");
const ATTEMPTS: &str = include_str!("../../sql/view_attempts.sql");
const DEAD: &str = include_str!("../../sql/view_dead.sql");

/// One job, if there is one with this id.
pub fn job(conn: &Connection, ids: Ids, id: JobId) -> rusqlite::Result<Option<JobView>> {
    let Some(seq) = ids.seq(id) else { return Ok(None) };
    let view = conn.prepare_cached(PAGE)?.query_row(only(seq), |row| view(conn, ids, row)).optional()?;
    Ok(view.filter(|view| view.id == id))
}

/// One job, if its task is held or over: then a few seeks find all of it. `None` says nothing.
pub fn job_at_hand(conn: &Connection, ids: Ids, id: JobId) -> rusqlite::Result<Option<JobView>> {
    let Some(seq) = ids.seq(id) else { return Ok(None) };
    let at_hand = |row: &Row<'_>| {
        let waits =
            row.get_ref("ended_state")? == ValueRef::Null && row.get_ref("lease_attempt")? == ValueRef::Null;
        if waits { Ok(None) } else { view(conn, ids, row).map(Some) }
    };
    let view = conn.prepare_cached(PAGE)?.query_row(only(seq), at_hand).optional()?.flatten();
    Ok(view.filter(|view| view.id == id))
}

/// What makes a page start at one job. The caller compares ids: the job may not be there.
fn only(seq: i64) -> (i64, Option<&'static str>, Option<&'static str>) {
    (seq - 1, None, None)
}

/// A page of jobs in order of submission.
pub fn list(conn: &Connection, ids: Ids, filter: &JobFilter, page: Page) -> rusqlite::Result<Vec<JobView>> {
    let after = page.after.map_or(Some(0), |id| ids.seq(id)).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(PAGE)?;
    let mut rows = statement.query((after, filter.line.queue.as_deref(), filter.line.handler.as_deref()))?;
    let mut found = vec![];
    while found.len() < page.limit as usize
        && let Some(row) = rows.next()?
    {
        let view = view(conn, ids, row)?;
        if filter.state.is_none_or(|state| view.task.state == state) {
            found.push(view);
        }
    }
    Ok(found)
}

/// A page of dead letters in order of their jobs.
pub fn dead_letters(
    conn: &Connection,
    ids: Ids,
    filter: &LineFilter,
    page: Page,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let after = page.after.map_or(Some(0), |id| ids.seq(id)).map_or(i64::MAX, |seq| pack(seq, 0));
    let mut statement = conn.prepare_cached(DEAD)?;
    let rows = statement.query_map(
        (after, filter.queue.as_deref(), filter.handler.as_deref(), page.limit),
        |row| {
            let task: i64 = row.get(0)?;
            let reason: String = row.get(6)?;
            Ok(DeadLetter {
                job: ids.job(Timestamp::from_millis(row.get(1)?), seq_of(task)),
                key: row.get::<_, Option<String>>(2)?.map(Into::into),
                queue: row.get::<_, String>(3)?.into(),
                handler: row.get::<_, String>(4)?.into(),
                at: Timestamp::from_millis(row.get(5)?),
                reason: DeadReason::from_word(&reason).ok_or_else(|| unreadable(6, &reason))?,
                counters: Counters { attempt: row.get(7)?, failures: row.get(8)?, crashes: row.get(9)? },
                message: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
            })
        },
    )?;
    rows.collect()
}

fn view(conn: &Connection, ids: Ids, row: &Row<'_>) -> rusqlite::Result<JobView> {
    let seq: i64 = row.get("seq")?;
    let task_row = pack(seq, 0);
    let created = Timestamp::from_millis(row.get("created")?);
    let task = task(conn, row, task_row)?;
    let spec: String = row.get("spec_body")?;
    let previous: Option<(i64, i64)> =
        row.get::<_, Option<i64>>("previous")?.zip(row.get("previous_created")?);
    Ok(JobView {
        id: ids.task(created, task_row).job,
        state: JobState::of_only_task(task.state, task.counters.attempt > 0),
        tenant: row.get::<_, String>("tenant_name")?.into(),
        key: row.get::<_, Option<String>>("key")?.map(Into::into),
        created,
        priority: Priority::from_tier(row.get("tier")?),
        previous: previous.map(|(seq, created)| ids.job(Timestamp::from_millis(created), seq)),
        spec: serde_json::from_str(&spec).map_err(|_| unreadable(0, &spec))?,
        payload: Json::trusted(row.get::<_, String>("payload")?),
        task,
        history: history(conn, task_row)?,
    })
}

/// The task of a job: held and ended ones come with the row, waiting ones are looked for.
fn task(conn: &Connection, row: &Row<'_>, task: i64) -> rusqlite::Result<TaskView> {
    let blank = TaskView {
        state: TaskState::Queued,
        counters: Counters::default(),
        limits: Limits::none(),
        checkpoint: None,
        worker: None,
        expires: None,
        due: None,
        parked: false,
        ended: None,
        output: None,
        dead: None,
    };
    if let Some(code) = row.get::<_, Option<u8>>("ended_state")? {
        let dead: Option<String> = row.get("dead_reason")?;
        return Ok(TaskView {
            state: state_of(code).ok_or_else(|| unreadable(0, "state"))?,
            counters: counters(row, "ended_attempt", "ended_failures", "ended_crashes")?,
            limits: limits(&row.get::<_, String>("ended_keys")?)?,
            ended: Some(Timestamp::from_millis(row.get("ended_at")?)),
            output: row.get::<_, Option<String>>("output")?.map(Json::trusted),
            dead: dead.as_deref().and_then(DeadReason::from_word),
            ..blank
        });
    }
    if row.get::<_, Option<u32>>("lease_attempt")?.is_some() {
        return Ok(TaskView {
            state: TaskState::Running,
            counters: counters(row, "lease_attempt", "lease_failures", "lease_crashes")?,
            limits: limits(&row.get::<_, String>("lease_keys")?)?,
            checkpoint: row.get::<_, Option<String>>("lease_checkpoint")?.map(Json::trusted),
            worker: Some(WorkerId::new(row.get::<_, String>("worker")?)),
            expires: Some(Timestamp::from_millis(row.get("expires")?)),
            ..blank
        });
    }
    let read = |row: &Row<'_>| {
        let counters = counters(row, "attempt", "failures", "crashes")?;
        let due = row.get::<_, Option<i64>>("due")?.map(Timestamp::from_millis);
        Ok(TaskView {
            state: if due.is_some() { decide::waiting_state(&counters) } else { TaskState::Queued },
            counters,
            limits: limits(&row.get::<_, String>("keys")?)?,
            checkpoint: row.get::<_, Option<String>>("checkpoint")?.map(Json::trusted),
            due,
            parked: row.get("parked")?,
            ..blank.clone()
        })
    };
    let (line, lane, tier, entry): (i64, i64, u8, i64) =
        (row.get("line")?, row.get("lane")?, row.get("tier")?, row.get("entry")?);
    let here = conn.prepare_cached(WAITING)?.query_row((line, lane, tier, entry, task), read).optional()?;
    match here {
        Some(found) => Ok(found),
        None => conn.prepare_cached(MOVED)?.query_row((line, tier, task), read),
    }
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

fn counters(row: &Row<'_>, attempt: &str, failures: &str, crashes: &str) -> rusqlite::Result<Counters> {
    Ok(Counters { attempt: row.get(attempt)?, failures: row.get(failures)?, crashes: row.get(crashes)? })
}

fn limits(text: &str) -> rusqlite::Result<Limits> {
    serde_json::from_str(text).map_err(|_| unreadable(0, text))
}

/// A value in the tables that this program would not have written.
pub fn unreadable(column: usize, value: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("cannot read {value:?}").into())
}

/// Rebuilds the events of one journal row. The creation times of the jobs complete their ids.
pub fn events(conn: &Connection, ids: Ids, blob: &[u8]) -> rusqlite::Result<Vec<orchestrator_core::Event>> {
    let raw: Vec<(i64, u32, u8, u32)> =
        postcard::from_bytes(blob).map_err(|_| unreadable(2, "a journal entry"))?;
    let mut created = conn.prepare_cached("SELECT created FROM jobs WHERE seq = ?1")?;
    let mut events = Vec::with_capacity(raw.len());
    for (seq, index, code, attempt) in raw {
        let Some(at) = created.query_row([seq], |row| row.get(0)).optional()? else { continue };
        let task = pack(seq, index);
        debug_assert_eq!(index_of(task), index);
        events.push(orchestrator_core::Event {
            task: ids.task(Timestamp::from_millis(at), task),
            state: state_of(code).ok_or_else(|| unreadable(2, "a state"))?,
            attempt,
        });
    }
    Ok(events)
}
