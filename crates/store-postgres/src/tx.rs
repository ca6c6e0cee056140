//! A transaction on one connection: statements are prepared once per connection and sent in pipelines.

use crate::error;
use crate::meters;
use crate::work::Stop;
use futures_util::FutureExt;
use futures_util::future::{try_join, try_join_all, try_join3};
use orchestrator_store::StoreError;
use std::sync::Arc;
use std::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

/// A value for a statement.
pub type Value = Arc<dyn ToSql + Sync + Send>;

/// A query with its values.
pub type Query<'a> = (&'a str, &'a [&'a (dyn ToSql + Sync)]);

/// Why a transaction came to nothing.
#[derive(Debug)]
pub enum Abort {
    /// The database said no before the commit: nothing took effect.
    Sql(Error),
    /// The commit was sent, and nobody knows what came of it.
    Unknown(Error),
    /// Somebody else changed what this transaction had read: once more.
    Again(&'static str),
    /// A request that cannot be stored.
    Invalid(String),
    /// No connection was to be had.
    Away(StoreError),
}

impl From<Error> for Abort {
    fn from(error: Error) -> Self {
        Abort::Sql(error)
    }
}

impl From<Stop> for Abort {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Invalid(why) => Abort::Invalid(why),
            // What is missing is read and computed again, so it does not come this far.
            Stop::Gone | Stop::Missing => Abort::Again("a job is gone that was there a moment ago"),
        }
    }
}

/// A statement that is to be sent, and how many rows it must touch.
pub struct Write {
    sql: &'static str,
    values: Vec<Value>,
    rows: Option<u64>,
}

impl Write {
    /// A statement with its values.
    pub fn new(sql: &'static str, values: Vec<Value>) -> Self {
        Write { sql, values, rows: None }
    }

    /// The same, which must touch exactly so many rows; else somebody else was faster.
    pub fn touching(self, rows: usize) -> Self {
        Write { rows: Some(rows as u64), ..self }
    }
}

/// A connection with a transaction.
pub struct Tx {
    client: Option<deadpool_postgres::Client>,
    open: bool,
}

impl Tx {
    /// Takes over a connection.
    pub fn new(client: deadpool_postgres::Client) -> Self {
        Tx { client: Some(client), open: false }
    }

    fn client(&self) -> &deadpool_postgres::Client {
        self.client.as_ref().expect("the connection is only taken away when the transaction is dropped")
    }

    /// Runs a query; the first one begins the transaction on the way.
    pub async fn query(&mut self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Abort> {
        let opened = std::mem::replace(&mut self.open, true);
        let client = self.client();
        let statement = client.prepare_cached(sql).await?;
        if opened {
            return Ok(client.query(&statement, values).await?);
        }
        Ok(try_join(client.batch_execute("BEGIN"), client.query(&statement, values)).await?.1)
    }

    /// The statements, prepared once per connection.
    async fn prepared(&self, all: impl Iterator<Item = &str>) -> Result<Vec<Statement>, Error> {
        let mut statements = vec![];
        for sql in all {
            statements.push(self.client().prepare_cached(sql).await?);
        }
        Ok(statements)
    }

    /// Begins the transaction, if that is still to be done.
    async fn begun(&self, opened: bool) -> Result<(), Error> {
        if opened { Ok(()) } else { self.client().batch_execute("BEGIN").await }
    }

    /// Runs several queries in one go, one after the other.
    pub async fn query_all(&mut self, queries: &[Query<'_>]) -> Result<Vec<Vec<Row>>, Abort> {
        let opened = std::mem::replace(&mut self.open, true);
        let statements = self.prepared(queries.iter().map(|query| query.0)).await?;
        let pairs = queries.iter().zip(&statements);
        let all = try_join_all(pairs.map(|((_, values), statement)| self.client().query(statement, values)));
        Ok(try_join(self.begun(opened), all).await?.1)
    }

    /// Sends writes without a commit.
    pub async fn write(&mut self, writes: &[Write]) -> Result<(), Abort> {
        for write in writes {
            let values: Vec<&(dyn ToSql + Sync)> =
                write.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            let opened = std::mem::replace(&mut self.open, true);
            let client = self.client();
            let statement = client.prepare_cached(write.sql).await?;
            if !opened {
                client.batch_execute("BEGIN").await?;
            }
            let touched = client.execute(&statement, &values).await?;
            if write.rows.is_some_and(|rows| rows != touched) {
                return Err(Abort::Again("a row was not where it was read"));
            }
        }
        Ok(())
    }

    /// Sends all writes and the commit in one go.
    pub async fn commit(mut self, writes: Vec<Write>) -> Result<(), Abort> {
        let opened = std::mem::replace(&mut self.open, true);
        let client = self.client();
        let statements = self.prepared(writes.iter().map(|write| write.sql)).await?;
        let begin = self.begun(opened);
        let run = |(write, statement): (&Write, Statement)| {
            let values: Vec<Value> = write.values.clone();
            let expected = write.rows;
            async move {
                let values: Vec<&(dyn ToSql + Sync)> =
                    values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
                Ok((client.execute(&statement, &values).await?, expected))
            }
        };
        let all = try_join_all(writes.iter().zip(statements).map(run));
        let started = Instant::now();
        // A count that is not as expected must stop the commit, so the commit waits for the counts; where none is
        // expected it rides along.
        if writes.iter().any(|write| write.rows.is_some()) {
            let (_, counts): (_, Vec<(u64, Option<u64>)>) = try_join(begin, all).await?;
            if counts.iter().any(|(got, expected)| expected.is_some_and(|expected| expected != *got)) {
                return Err(Abort::Again("a row was not where it was read"));
            }
            client.batch_execute("COMMIT").await.map_err(at_commit)?;
        } else {
            let commit = client.batch_execute("COMMIT");
            try_join3(begin, all, commit).await.map_err(at_commit)?;
        }
        meters::COMMIT.record(started.elapsed().as_secs_f64());
        self.open = false;
        Ok(())
    }

    /// Ends a transaction that changed nothing, without waiting for that: what is sent next on the connection comes after.
    pub fn leave(mut self) {
        if self.open {
            let _ = self.client().batch_execute("ROLLBACK").now_or_never();
            self.open = false;
        }
    }

    /// Takes everything back, so that the connection can be used again.
    pub async fn roll_back(mut self) {
        if self.open && self.client().batch_execute("ROLLBACK").await.is_ok() {
            self.open = false;
        }
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        // A connection inside a transaction must not go back to the pool: it is closed, and the server takes back what
        // was done.
        if let (true, Some(client)) = (self.open, self.client.take()) {
            drop(deadpool_postgres::Client::take(client));
        }
    }
}

/// An error while the commit was under way.
fn at_commit(error: Error) -> Abort {
    if error::is_rolled_back(&error) { Abort::Sql(error) } else { Abort::Unknown(error) }
}

impl Abort {
    /// The error for one caller of those whose requests shared the transaction.
    pub fn to_store_error(&self) -> StoreError {
        match self {
            Abort::Sql(error) => error::at_work(error),
            Abort::Unknown(error) => error::at_commit(error),
            Abort::Again(why) => StoreError::Database { source: (*why).into() },
            Abort::Invalid(why) => StoreError::Invalid(why.clone()),
            Abort::Away(error) => error::retold(error),
        }
    }
}
