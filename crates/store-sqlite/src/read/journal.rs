//! The journal. A row holds what one commit changed, packed; who and what it is about is looked up when it is read, once
//! per job of a page.

use super::flows::Version;
use super::jobs::{Reading, read_run, task_name, unreadable};
use orchestrator_core::flow::Run;
use orchestrator_core::{Event, JobEvent, JobId, TaskEvent, TaskId, Timestamp};
use orchestrator_store::packed::{JOB_EVENT, job_state_of, state_of};
use orchestrator_store::{EventId, JournalEvent, JournalPage, JournalRange, Pager};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// An event as it is written: the number of the job, the index of the task, the state, the attempt.
type Written = (i64, u32, u8, u32);

/// The job of an event.
struct About {
    id: JobId,
    tenant: Arc<str>,
    /// Where it stands, if it has a head.
    head: Option<(Version, Run)>,
}

/// A page of the journal.
pub fn journal(at: Reading<'_>, after: EventId, limit: u32) -> rusqlite::Result<JournalPage> {
    let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_journal.sql"))?;
    let mut rows = statement.query([after.entry])?;
    let mut jobs = FxHashMap::default();
    let mut pager = Pager::new(after, limit);
    while !pager.is_full()
        && let Some(row) = rows.next()?
    {
        let (entry, moment) = (row.get(0)?, Timestamp::from_millis(row.get(1)?));
        let written = unpack(row.get_ref(2)?)?;
        for index in pager.take(entry, written.len()) {
            let (seq, task, code, attempt) = written[index];
            let job = match jobs.entry(seq) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(about(at, seq)?),
            };
            // Nothing is told of a job that was removed.
            let Some(job) = job else { continue };
            let event = if task == JOB_EVENT {
                let state = job_state_of(code).ok_or_else(|| unreadable(2, "a state"))?;
                Event::Job(JobEvent { job: job.id, state })
            } else {
                let state = state_of(code).ok_or_else(|| unreadable(2, "a state"))?;
                Event::Task(TaskEvent { task: TaskId { job: job.id, index: task }, state, attempt })
            };
            pager.push(JournalEvent {
                id: EventId { entry, index: index as u32 },
                at: moment,
                event,
                name: (task != JOB_EVENT).then(|| job.name(task)),
                tenant: job.tenant.clone(),
                flow: job.flow(),
            });
        }
    }
    Ok(pager.done())
}

/// Both ends of the journal.
pub fn range(conn: &Connection) -> rusqlite::Result<JournalRange> {
    let mut ends = conn.prepare_cached(include_str!("../../sql/view_journal_ends.sql"))?;
    let range = ends.query_row([], |row| {
        let index = unpack(row.get_ref(1)?)?.len().saturating_sub(1) as u32;
        Ok(JournalRange { oldest: row.get(2)?, newest: EventId { entry: row.get(0)?, index } })
    });
    Ok(range.optional()?.unwrap_or_default())
}

fn unpack(events: ValueRef<'_>) -> rusqlite::Result<Vec<Written>> {
    postcard::from_bytes(events.as_blob()?).map_err(|_| unreadable(0, "an entry of the journal"))
}

/// Looks a job up; none where it was removed.
fn about(at: Reading<'_>, seq: i64) -> rusqlite::Result<Option<About>> {
    let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_journal_job.sql"))?;
    let found = statement.query_row([seq], |row| {
        let head = match (row.get::<_, Option<i64>>(2)?, row.get_ref(3)?) {
            (Some(flow), body @ ValueRef::Blob(_)) => {
                Some((at.versions.get(at.conn, flow)?, read_run(body)?))
            }
            _ => None,
        };
        Ok(About {
            id: at.ids.job(Timestamp::from_millis(row.get(0)?), seq),
            tenant: row.get::<_, String>(1)?.into(),
            head,
        })
    });
    found.optional()
}

impl About {
    fn name(&self, index: u32) -> Arc<str> {
        match &self.head {
            Some((version, run)) => task_name(version, run, index),
            None => "main".into(),
        }
    }

    fn flow(&self) -> Option<Arc<str>> {
        let (version, _) = self.head.as_ref()?;
        (!version.plan.is_implicit()).then(|| version.plan.name().clone())
    }
}
