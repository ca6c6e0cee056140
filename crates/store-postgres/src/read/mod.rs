//! What the catalog shows. Every read is one transaction that sees one moment of the database and cannot write. Only
//! the journal needs a write before it is read: that gives numbers to its entries.
//!
//! A page of anything is read by a handful of statements over arrays, never by one per job or task, and those that do
//! not need each other's answers are sent together.

mod dead;
mod flows;
mod jobs;
mod journal;
mod list;
mod overview;
mod removable;
mod row;
mod shared;
mod sql;
mod stats;
mod tasks;

pub use journal::{NUMBERING as JOURNAL_NUMBERING, number as number_journal};

use crate::names::Names;
use deadpool_postgres::Client;
use futures_util::FutureExt;
use futures_util::future::{try_join, try_join_all};
use orchestrator_store::Held;
use orchestrator_store::packed::Ids;
use rustc_hash::FxHashSet;
use std::fmt::{self, Display, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

/// Why a read came to nothing.
#[derive(Debug)]
pub enum ReadError {
    /// The database said no, or could not be asked.
    Sql(Error),
    /// A value in the tables that this program would not have written.
    Unreadable(String),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        ReadError::Sql(error)
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Sql(error) => error.fmt(f),
            ReadError::Unreadable(what) => {
                write!(f, "{what} does not read back: the database was changed by another program")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Sql(error) => Some(error),
            ReadError::Unreadable(_) => None,
        }
    }
}

fn unreadable(what: impl Into<String>) -> ReadError {
    ReadError::Unreadable(what.into())
}

/// The result of a read.
pub type Read<T> = Result<T, ReadError>;

/// A statement and its values.
type Ask<'a> = (&'static str, &'a [&'a (dyn ToSql + Sync)]);

/// Begins to read: one moment for all questions, and nothing is written.
const BEGIN: &str = "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// Reads at one moment. Whatever is asked of one reader fits together.
pub struct Reader<'a> {
    client: Client,
    begun: AtomicBool,
    ids: Ids,
    names: &'a Names,
}

impl<'a> Reader<'a> {
    /// A reader on a connection that is nobody else's. The moment is that of the first question.
    pub fn new(client: Client, ids: Ids, names: &'a Names) -> Reader<'a> {
        Reader { client, begun: AtomicBool::new(false), ids, names }
    }

    /// Whether each attempt still holds its lease.
    pub async fn held(&self, attempts: &[Held]) -> Read<Vec<bool>> {
        let tasks: Vec<i64> = attempts.iter().filter_map(|held| self.ids.packed(held.task)).collect();
        let mut found = FxHashSet::default();
        for row in self.query(sql::HOLDERS, &[&tasks]).await? {
            found.insert((row.try_get::<_, i64>(0)?, row.try_get::<_, i32>(1)?));
        }
        let holds = |held: &Held| {
            let attempt = i32::try_from(held.attempt).ok();
            self.ids.packed(held.task).zip(attempt).is_some_and(|lease| found.contains(&lease))
        };
        Ok(attempts.iter().map(holds).collect())
    }

    async fn query(&self, sql: &'static str, values: &[&(dyn ToSql + Sync)]) -> Read<Vec<Row>> {
        let ask = async {
            let statement = self.client.prepare_cached(sql).await?;
            self.client.query(&statement, values).await
        };
        if self.begun.swap(true, Ordering::Relaxed) {
            return Ok(ask.await?);
        }
        // Sent in this order and answered together.
        Ok(try_join(self.client.batch_execute(BEGIN), ask).await?.1)
    }

    /// Sends several questions at once. The answers stand in their order.
    async fn query_all<const N: usize>(&self, asks: [Ask<'_>; N]) -> Read<[Vec<Row>; N]> {
        let answers = try_join_all(asks.map(|(sql, values)| self.query(sql, values))).await?;
        Ok(answers.try_into().expect("there are as many answers as questions"))
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // Sent at once and not waited for: the next that has the connection is served after it. If it cannot be sent,
        // the connection is gone, and the transaction with it.
        if self.begun.load(Ordering::Relaxed) {
            let _ = self.client.batch_execute("ROLLBACK").now_or_never();
        }
    }
}
