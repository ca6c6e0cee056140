//! Days, paused queues, workers, and documents.

use super::row::Columns;
use super::{Read, Reader, sql, unreadable};
use orchestrator_core::{Document, JobId, JobState, Timestamp};
use orchestrator_store::packed::job_state_of;
use orchestrator_store::{DayStats, PausedQueue, WORKER_REMEMBERED, WorkerView};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Reader<'_> {
    /// What happened day by day, the newest first.
    pub async fn daily(&self, days: u32) -> Read<Vec<DayStats>> {
        let mut found: Vec<DayStats> = vec![];
        let mut last = None;
        if days == 0 {
            return Ok(found);
        }
        for row in self.query(sql::DAILY, &[&i32::try_from(days).unwrap_or(i32::MAX)]).await? {
            let day: i32 = row.try_get("day")?;
            if last.replace(day) != Some(day) {
                found.push(DayStats::new(day.into()));
            }
            let Some(day) = found.last_mut() else { continue };
            let n = u64::try_from(row.try_get::<_, i64>("n")?).unwrap_or(0);
            let count = match job_state_of(row.small("what")?) {
                Some(JobState::Pending) => Some(&mut day.created),
                Some(JobState::Recovering) => Some(&mut day.reopened),
                state => state.and_then(|state| day.ended(state)),
            };
            *count.ok_or_else(|| unreadable("what is counted by day"))? = n;
        }
        Ok(found)
    }

    /// The queues that are paused.
    pub async fn paused_queues(&self) -> Read<Vec<PausedQueue>> {
        let rows = self.query(sql::PAUSED, &[]).await?;
        let view = |row: &tokio_postgres::Row| {
            Ok(PausedQueue { queue: row.text("queue")?, since: row.moment("since")? })
        };
        rows.iter().map(view).collect()
    }

    /// The workers that are remembered.
    pub async fn workers(&self, now: Timestamp) -> Read<Vec<WorkerView>> {
        let since = (now - WORKER_REMEMBERED).as_millis();
        let [workers, running] = self.query_all([(sql::WORKERS, &[&since]), (sql::RUNNING, &[])]).await?;
        let mut counts: FxHashMap<Arc<str>, i64> = FxHashMap::default();
        for row in &running {
            counts.insert(row.text("worker")?, row.try_get("n")?);
        }
        let view = |row: &tokio_postgres::Row| {
            let note: &str = row.try_get("note")?;
            let running = counts.get(&row.text("name")?).copied().unwrap_or(0);
            Ok(WorkerView {
                note: serde_json::from_str(note).map_err(|_| unreadable(format!("the worker {note:?}")))?,
                first_seen: row.moment("first_seen")?,
                last_seen: row.moment("last_seen")?,
                running: u64::try_from(running).unwrap_or(0),
            })
        };
        workers.iter().map(view).collect()
    }

    /// The document of a job.
    pub async fn document(&self, id: JobId) -> Read<Option<Document>> {
        let Some(seq) = self.ids.seq(id) else { return Ok(None) };
        let rows = self.query(sql::DOCUMENT, &[&seq]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        if row.moment("created")? != id.created() {
            return Ok(None);
        }
        let content: &[u8] = row.try_get("content")?;
        Ok(Some(Document::new(row.text("name")?, row.text("media_type")?, content)))
    }
}
