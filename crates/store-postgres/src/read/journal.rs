//! The journal. An entry gets its number when it is read for the first time, after its commit: so numbers follow each
//! other without gaps in the order in which readers can see the entries, and none appears behind one that was read.

use super::row::Columns;
use super::{Read, sql, unreadable};
use deadpool_postgres::{Client, Transaction};
use orchestrator_core::{Event, JobEvent, JobId, TaskEvent, TaskId, Timestamp};
use orchestrator_store::JournalEntry;
use orchestrator_store::packed::{Ids, JOB_EVENT, job_state_of, state_of};
use rustc_hash::FxHashMap;
use tokio_postgres::Row;

/// The key of the lock under which numbers are given out.
pub const NUMBERING: i64 = 0x6A6F_7572_6E61_6C00;

/// An event as it is written: the number of the job, the index of the task, the state, the attempt.
type Written = (i64, u32, u8, u32);

/// The journal from after an entry. The connection must be one that can write.
pub async fn journal(client: &mut Client, ids: Ids, after: i64, limit: u32) -> Read<Vec<JournalEntry>> {
    let limit = i64::from(limit);
    let page = client.prepare_cached(sql::JOURNAL).await?;
    let mut rows = client.query(&page, &[&after, &limit]).await?;
    if (rows.len() as i64) < limit && number(client, limit).await? {
        rows = client.query(&page, &[&after, &limit]).await?;
    }
    let mut entries = Vec::with_capacity(rows.len());
    for row in &rows {
        let events: Vec<Written> = postcard::from_bytes(row.try_get("events")?)
            .map_err(|_| unreadable("an entry of the journal"))?;
        entries.push((row, events));
    }
    let mut seqs: Vec<i64> = entries.iter().flat_map(|(_, events)| events).map(|event| event.0).collect();
    seqs.sort_unstable();
    seqs.dedup();
    let created = created(client, seqs).await?;
    let id = |seq: i64| created.get(&seq).map(|created| ids.job(*created, seq));
    entries.into_iter().map(|(row, events)| entry(row, events, id)).collect()
}

/// Gives numbers to entries that have none, at most so many. Says whether there were any.
async fn number(client: &mut Client, limit: i64) -> Read<bool> {
    // Each statement sees what is committed when it begins: the one that gives numbers, what those before it gave.
    let tx: Transaction<'_> = client.transaction().await?;
    let lock = tx.prepare_cached(sql::JOURNAL_LOCK).await?;
    tx.execute(&lock, &[&NUMBERING]).await?;
    let give = tx.prepare_cached(sql::JOURNAL_NUMBER).await?;
    let given = tx.execute(&give, &[&limit]).await?;
    tx.commit().await?;
    Ok(given > 0)
}

/// When jobs were created, which completes their ids.
async fn created(client: &Client, seqs: Vec<i64>) -> Read<FxHashMap<i64, Timestamp>> {
    if seqs.is_empty() {
        return Ok(FxHashMap::default());
    }
    let statement = client.prepare_cached(sql::CREATED).await?;
    let rows = client.query(&statement, &[&seqs]).await?;
    rows.iter().map(|row| Ok((row.try_get("seq")?, row.moment("created")?))).collect()
}

/// Events of jobs that are gone are left out.
fn entry(row: &Row, events: Vec<Written>, id: impl Fn(i64) -> Option<JobId>) -> Read<JournalEntry> {
    let mut told = Vec::with_capacity(events.len());
    for (seq, index, code, attempt) in events {
        let Some(job) = id(seq) else { continue };
        told.push(if index == JOB_EVENT {
            let state = job_state_of(code).ok_or_else(|| unreadable("the state of a job"))?;
            Event::Job(JobEvent { job, state })
        } else {
            let state = state_of(code).ok_or_else(|| unreadable("the state of a task"))?;
            Event::Task(TaskEvent { task: TaskId { job, index }, state, attempt })
        });
    }
    Ok(JournalEntry { n: row.try_get("n")?, at: row.moment("at")?, events: told })
}
