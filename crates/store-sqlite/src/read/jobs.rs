//! Jobs as the catalog shows them.

use super::flows::{Version, Versions};
use super::tasks::{self, Entry};
use orchestrator_core::flow::Run;
use orchestrator_core::{
    DeadReason, Document, JobId, JobState, Json, Meta, Millis, Priority, TaskId, Timestamp,
};
use orchestrator_store::packed::{Ids, index_of};
use orchestrator_store::{DeadLetter, DocumentView, JobView, LineFilter, TaskView};
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Row};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Jobs from after a number on, the oldest first.
pub(super) const OLDEST: &str = include_str!("../../sql/view_jobs_page.sql");

/// What every read of jobs needs.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    pub conn: &'a Connection,
    pub ids: Ids,
    pub versions: &'a Versions,
}

/// One job, if there is one with this id.
pub fn job(at: Reading<'_>, id: JobId) -> rusqlite::Result<Option<JobView>> {
    with_row(at, id, |row| view(at, row).map(Some))
}

/// One job, if it is held or over and has few tasks: then a few seeks find all of it. `None` says nothing.
pub fn job_at_hand(at: Reading<'_>, id: JobId) -> rusqlite::Result<Option<JobView>> {
    with_row(at, id, |row| {
        let waits =
            row.get_ref("ended_state")? == ValueRef::Null && row.get_ref("lease_attempt")? == ValueRef::Null;
        let small = row.get_ref("run_body")?.as_blob_or_null()?.is_none_or(|body| body.len() < 64);
        if waits || !small { Ok(None) } else { view(at, row).map(Some) }
    })
}

/// Runs a read on the row of a job, if there is one with this id.
fn with_row<T>(
    at: Reading<'_>,
    id: JobId,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<Option<T>>,
) -> rusqlite::Result<Option<T>> {
    let Some(seq) = at.ids.seq(id) else { return Ok(None) };
    let mut statement = at.conn.prepare_cached(OLDEST)?;
    let mut rows = statement.query([seq - 1])?;
    match rows.next()? {
        Some(row) if at.ids.job(Timestamp::from_millis(row.get("created")?), row.get("seq")?) == id => {
            read(row)
        }
        _ => Ok(None),
    }
}

/// A page of dead letters in order of their jobs.
pub fn dead_letters(
    at: Reading<'_>,
    filter: &LineFilter,
    after: Option<TaskId>,
    limit: u32,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let after = after.map_or(Some(-1), |task| at.ids.packed(task)).unwrap_or(i64::MAX);
    let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_dead.sql"))?;
    let rows =
        statement.query_map((after, filter.queue.as_deref(), filter.handler.as_deref(), limit), |row| {
            let task: i64 = row.get(0)?;
            let reason: String = row.get(6)?;
            let (name, flow) = match row.get::<_, Option<i64>>(11)? {
                None => ("main".into(), None),
                Some(flow) => {
                    let version = at.versions.get(at.conn, flow)?;
                    let run = read_run(row.get_ref(12)?)?;
                    (task_name(&version, &run, index_of(task)), version.reference().map(|flow| flow.name))
                }
            };
            Ok(DeadLetter {
                task: at.ids.task(Timestamp::from_millis(row.get(1)?), task),
                name,
                flow,
                key: row.get::<_, Option<String>>(2)?.map(Into::into),
                queue: row.get::<_, String>(3)?.into(),
                handler: row.get::<_, String>(4)?.into(),
                at: Timestamp::from_millis(row.get(5)?),
                reason: DeadReason::from_word(&reason).ok_or_else(|| unreadable(6, &reason))?,
                counters: tasks::counters(row, 7)?,
                message: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
            })
        })?;
    rows.collect()
}

pub(super) fn task_name(version: &Version, run: &Run, index: u32) -> Arc<str> {
    match run.place(index) {
        None => index.to_string().into(),
        Some(place) => {
            let name = &version.plan.tasks()[place.task as usize].name;
            place.item.map_or(name.clone(), |item| format!("{name}[{item}]").into())
        }
    }
}

/// One task of a job.
pub fn task(at: Reading<'_>, id: TaskId) -> rusqlite::Result<Option<TaskView>> {
    with_row(at, id.job, |row| {
        let Some(head) = head(at, row)? else {
            return Ok(if id.index == 0 { Some(queue_task(at, row)?) } else { None });
        };
        let Some(place) = head.run.place(id.index) else { return Ok(None) };
        tasks::of_flow(at.conn, &head.job(), id.index, place).map(Some)
    })
}

/// The items that a task was expanded into.
pub fn items(
    at: Reading<'_>,
    group: TaskId,
    after: Option<u32>,
    limit: u32,
) -> rusqlite::Result<Vec<TaskView>> {
    let found = with_row(at, group.job, |row| {
        let Some(head) = head(at, row)? else { return Ok(None) };
        let Some(group) = head.run.group(group.index) else { return Ok(None) };
        let from = after.map_or(group.first, |after| group.first.max(after.saturating_add(1)));
        let indexes = (from..group.first + group.count).take(limit as usize);
        let view = |index: u32| {
            let place = head.run.place(index).ok_or_else(|| unreadable(0, "an item"))?;
            tasks::of_flow(at.conn, &head.job(), index, place)
        };
        indexes.map(view).collect::<Result<Vec<_>, _>>().map(Some)
    })?;
    Ok(found.unwrap_or_default())
}

/// The head of a job, read.
struct Head {
    seq: i64,
    version: Version,
    run: Run,
    payload: Json,
    usual: FxHashMap<u32, Millis>,
}

impl Head {
    fn job(&self) -> tasks::Job<'_> {
        tasks::Job {
            seq: self.seq,
            version: &self.version,
            run: &self.run,
            payload: &self.payload,
            usual: &self.usual,
        }
    }
}

fn head(at: Reading<'_>, row: &Row<'_>) -> rusqlite::Result<Option<Head>> {
    let Some(flow) = row.get::<_, Option<i64>>("flow")? else { return Ok(None) };
    let version = at.versions.get(at.conn, flow)?;
    let mut usual = FxHashMap::default();
    if !version.plan.is_implicit() {
        let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_timings.sql"))?;
        let mut rows = statement.query([flow])?;
        while let Some(row) = rows.next()? {
            usual.insert(row.get(0)?, Millis(u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0)));
        }
    }
    Ok(Some(Head {
        seq: row.get("seq")?,
        version,
        run: read_run(row.get_ref("run_body")?)?,
        payload: Json::trusted(row.get::<_, String>("payload")?),
        usual,
    }))
}

pub(super) fn read_run(body: ValueRef<'_>) -> rusqlite::Result<Run> {
    postcard::from_bytes(body.as_blob()?).map_err(|_| unreadable(0, "the head of a job"))
}

fn queue_task(at: Reading<'_>, row: &Row<'_>) -> rusqlite::Result<TaskView> {
    let spec: String = row.get("spec_body")?;
    let spec = serde_json::from_str(&spec).map_err(|_| unreadable(0, &spec))?;
    let entry = Entry {
        line: row.get("line")?,
        lane: row.get("lane")?,
        tier: row.get("tier")?,
        at: row.get("entry")?,
    };
    let payload = Json::trusted(row.get::<_, String>("payload")?);
    tasks::of_queue(at.conn, row.get("seq")?, Arc::new(spec), &payload, &entry)
}

/// What a job carries along.
pub(super) fn meta(column: ValueRef<'_>) -> rusqlite::Result<Meta> {
    Meta::from_text(column.as_str_or_null()?).map_err(|_| unreadable(0, "what a job carries along"))
}

fn document_view(row: &Row<'_>) -> rusqlite::Result<Option<DocumentView>> {
    let Some(name) = row.get::<_, Option<String>>("document_name")? else { return Ok(None) };
    Ok(Some(DocumentView {
        name: name.into(),
        media_type: row.get::<_, String>("media_type")?.into(),
        size: u64::try_from(row.get::<_, i64>("document_size")?).unwrap_or(0),
        sha256: row.get::<_, String>("sha256")?.into(),
    }))
}

/// The document of a job.
pub fn document(at: Reading<'_>, id: JobId) -> rusqlite::Result<Option<Document>> {
    let Some(seq) = at.ids.seq(id) else { return Ok(None) };
    let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_document.sql"))?;
    let mut rows = statement.query([seq])?;
    match rows.next()? {
        Some(row) if Timestamp::from_millis(row.get(0)?) == id.created() => {
            let (name, media_type): (String, String) = (row.get(1)?, row.get(2)?);
            Ok(Some(Document::new(name, media_type, row.get_ref(3)?.as_blob()?)))
        }
        _ => Ok(None),
    }
}

pub(super) fn view(at: Reading<'_>, row: &Row<'_>) -> rusqlite::Result<JobView> {
    let seq: i64 = row.get("seq")?;
    let created = Timestamp::from_millis(row.get("created")?);
    let previous: Option<(i64, i64)> =
        row.get::<_, Option<i64>>("previous")?.zip(row.get("previous_created")?);
    let base = JobView {
        id: at.ids.job(created, seq),
        state: JobState::Pending,
        flow: None,
        tenant: row.get::<_, String>("tenant_name")?.into(),
        key: row.get::<_, Option<String>>("key")?.map(Into::into),
        created,
        started: None,
        ended: None,
        deadline: None,
        priority: Priority::from_tier(row.get("tier")?),
        previous: previous.map(|(seq, created)| at.ids.job(Timestamp::from_millis(created), seq)),
        waits_for: vec![],
        recoveries: 0,
        max_recoveries: 0,
        reason: None,
        payload: Json::trusted(row.get::<_, String>("payload")?),
        meta: meta(row.get_ref("meta")?)?,
        document: document_view(row)?,
        output: None,
        tasks: vec![],
    };
    let Some(head) = head(at, row)? else {
        let task = queue_task(at, row)?;
        return Ok(JobView {
            state: JobState::of_only_task(task.state, task.counters.attempt > 0),
            started: task.started,
            ended: task.ended,
            output: task.output.clone(),
            tasks: vec![task],
            ..base
        });
    };
    let indexes = 0..head.version.plan.tasks().len() as u32;
    let place = |index| orchestrator_core::flow::run::Place { task: index, item: None };
    let tasks: Vec<TaskView> = indexes
        .map(|index| tasks::of_flow(at.conn, &head.job(), index, place(index)))
        .collect::<Result<_, _>>()?;
    let run = &head.run;
    let defined = row.get::<_, Option<String>>("run_output")?.map(Json::trusted);
    Ok(JobView {
        state: run.state,
        flow: head.version.reference(),
        started: run.started,
        ended: run.ended,
        deadline: run.times_out(),
        waits_for: waits_for(at, seq)?,
        recoveries: run.recoveries,
        max_recoveries: head.version.plan.max_recoveries(),
        reason: run.reason.clone(),
        output: match head.version.plan.output() {
            Some(_) => defined,
            None if run.state == JobState::Completed => JobView::output_of(&head.version.plan, &tasks),
            None => None,
        },
        tasks,
        ..base
    })
}

fn waits_for(at: Reading<'_>, seq: i64) -> rusqlite::Result<Vec<JobId>> {
    let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_waits_for.sql"))?;
    let rows =
        statement.query_map([seq], |row| Ok(at.ids.job(Timestamp::from_millis(row.get(1)?), row.get(0)?)))?;
    rows.collect()
}

/// A value in the tables that this program would not have written.
pub fn unreadable(column: usize, value: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("cannot read {value:?}").into())
}
