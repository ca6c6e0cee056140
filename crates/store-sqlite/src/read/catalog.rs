//! The catalog of the contract, on the readers.

use super::{jobs, stats};
use crate::SqliteStore;
use async_trait::async_trait;
use orchestrator_core::{JobId, Timestamp};
use orchestrator_store::{
    Catalog, DeadLetter, JobFilter, JobView, JournalEntry, LimitView, LineFilter, Page, Stats, StoreResult,
};
use tokio::sync::watch;

#[async_trait]
impl Catalog for SqliteStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        match self.readers.read_here(|conn, ids| jobs::job_at_hand(conn, ids, id))? {
            Some(job) => Ok(Some(job)),
            None => self.readers.read(move |conn, ids| jobs::job(conn, ids, id)).await,
        }
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        self.readers.read(move |conn, ids| jobs::list(conn, ids, &filter, page)).await
    }

    async fn stats(&self) -> StoreResult<Stats> {
        self.readers.read(|conn, _| stats::stats(conn)).await
    }

    async fn dead_letters(&self, filter: LineFilter, page: Page) -> StoreResult<Vec<DeadLetter>> {
        self.readers.read(move |conn, ids| jobs::dead_letters(conn, ids, &filter, page)).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.readers.read(|conn, _| stats::limits(conn)).await
    }

    async fn journal(&self, after: i64, limit: u32) -> StoreResult<Vec<JournalEntry>> {
        self.readers
            .read(move |conn, ids| {
                let sql = "SELECT n, at, events FROM journal WHERE n > ?1 ORDER BY n LIMIT ?2";
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query((after, limit))?;
                let mut entries = vec![];
                while let Some(row) = rows.next()? {
                    entries.push(JournalEntry {
                        n: row.get(0)?,
                        at: Timestamp::from_millis(row.get(1)?),
                        events: jobs::events(conn, ids, row.get_ref(2)?.as_blob()?)?,
                    });
                }
                Ok(entries)
            })
            .await
    }
}
