//! Jobs that are over and may go.

use super::jobs::{Reading, read_run};
use orchestrator_core::{JobState, Timestamp};
use orchestrator_store::packed::state_of;
use orchestrator_store::{Removable, RemovableAsk, RemovablePage};
use rusqlite::Row;

/// A page of jobs that may go, in order of their numbers. Rows are read one by one, so the look ends where it may.
pub fn removable(at: Reading<'_>, ask: &RemovableAsk) -> rusqlite::Result<RemovablePage> {
    let mut page = RemovablePage::default();
    let Some(latest) = ask.bygone.latest() else { return Ok(page) };
    if ask.limit == 0 || ask.look == 0 {
        return Ok(page);
    }
    let after = ask.after.map_or(Some(0), |id| at.ids.seq(id)).unwrap_or(i64::MAX);
    let mut statement = at.conn.prepare_cached(include_str!("../../sql/view_removable.sql"))?;
    let mut rows = statement.query([after])?;
    let mut looked = 0;
    while let Some(row) = rows.next()? {
        let created = Timestamp::from_millis(row.get("created")?);
        if created >= latest {
            break;
        }
        looked += 1;
        let id = at.ids.job(created, row.get("seq")?);
        if let Some(end) = end(row)?
            && ask.bygone.takes(end.state, end.at, row.get("dead")?)
        {
            page.jobs.push(Removable { job: id, ended: end.at, tasks: end.tasks });
        }
        if page.jobs.len() == ask.limit as usize || looked == ask.look {
            page.next = Some(id);
            break;
        }
    }
    Ok(page)
}

/// How and when a job ended, and how many tasks it has.
struct End {
    state: JobState,
    at: Timestamp,
    tasks: u32,
}

fn end(row: &Row<'_>) -> rusqlite::Result<Option<End>> {
    let body = row.get_ref("run_body")?;
    if body.as_blob_or_null()?.is_some() {
        let run = read_run(body)?;
        return Ok(run.ended.map(|at| End { state: run.state, at, tasks: run.size() }));
    }
    let state = row.get::<_, Option<u8>>("ended_state")?.and_then(state_of);
    Ok(match (state, row.get::<_, Option<i64>>("ended_at")?) {
        (Some(state), Some(at)) => {
            let at = Timestamp::from_millis(at);
            Some(End { state: JobState::of_only_task(state, true), at, tasks: 1 })
        }
        _ => None,
    })
}
