//! Days, paused queues and workers.

use super::jobs::unreadable;
use orchestrator_core::{JobState, Timestamp};
use orchestrator_store::packed::job_state_of;
use orchestrator_store::{DayStats, PausedQueue, WORKER_REMEMBERED, WorkerView};
use rusqlite::Connection;
use rustc_hash::FxHashMap;

/// What happened day by day, the newest first. Rows are read one by one, so the look ends where it may.
pub fn daily(conn: &Connection, days: u32) -> rusqlite::Result<Vec<DayStats>> {
    let mut statement = conn.prepare_cached(include_str!("../../sql/view_daily.sql"))?;
    let mut rows = statement.query([])?;
    let mut found: Vec<DayStats> = vec![];
    let mut last = None;
    while let Some(row) = rows.next()? {
        let day: i64 = row.get(0)?;
        if last.replace(day) != Some(day) {
            if found.len() == days as usize {
                break;
            }
            found.push(DayStats::new(day));
        }
        let state = job_state_of(row.get(1)?).ok_or_else(|| unreadable(1, "what is counted by day"))?;
        let n = u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0);
        let Some(day) = found.last_mut() else { continue };
        match state {
            JobState::Pending => day.created = n,
            JobState::Recovering => day.reopened = n,
            state => *day.ended(state).ok_or_else(|| unreadable(1, "what is counted by day"))? = n,
        }
    }
    Ok(found)
}

/// The queues that are paused.
pub fn paused_queues(conn: &Connection) -> rusqlite::Result<Vec<PausedQueue>> {
    let mut statement = conn.prepare_cached(include_str!("../../sql/view_paused.sql"))?;
    let rows = statement.query_map([], |row| {
        Ok(PausedQueue { queue: row.get::<_, String>(0)?.into(), since: Timestamp::from_millis(row.get(1)?) })
    })?;
    rows.collect()
}

/// The workers that are remembered.
pub fn workers(conn: &Connection, now: Timestamp) -> rusqlite::Result<Vec<WorkerView>> {
    let mut statement = conn.prepare_cached(include_str!("../../sql/view_running.sql"))?;
    let running = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let running: FxHashMap<String, i64> = running.collect::<Result<_, _>>()?;
    let mut statement = conn.prepare_cached(include_str!("../../sql/view_workers.sql"))?;
    let rows = statement.query_map([(now - WORKER_REMEMBERED).as_millis()], |row| {
        let (name, note): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(WorkerView {
            note: serde_json::from_str(&note).map_err(|_| unreadable(0, &note))?,
            first_seen: Timestamp::from_millis(row.get(2)?),
            last_seen: Timestamp::from_millis(row.get(3)?),
            running: running.get(&name).map_or(0, |n| u64::try_from(*n).unwrap_or(0)),
        })
    })?;
    rows.collect()
}
