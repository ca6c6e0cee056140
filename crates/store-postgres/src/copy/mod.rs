//! Moving in: takes the rows of another store, all of them in one transaction.
//!
//! Nobody else works on the database meanwhile: the copy holds the lock of the leader and those of all tables. What the
//! rows become here is told in `fit`; this module owns the transaction.

mod datum;
mod fit;

use crate::connect::Connections;
use crate::error;
use crate::leader;
use crate::schema;
use datum::Datum;
use fit::{Fitting, Load};
use orchestrator_store::copy::{Batch, Standing};
use orchestrator_store::{StoreError, StoreResult};
use std::pin::pin;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, GenericClient};
use tokio_util::task::AbortOnDropHandle;

/// What a database holds that a copy would destroy or repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Jobs.
    pub jobs: u64,
    /// Versions of flows.
    pub flows: u64,
    /// Limit rules that an operator set. Those of configurations do not count: they are written anew by every start.
    pub rules: u64,
    /// The salt of the database that this one is a copy of.
    pub copy_of: Option<u32>,
}

impl Contents {
    /// Whether there is room for a copy.
    pub fn is_empty(&self) -> bool {
        self.jobs == 0 && self.flows == 0 && self.rules == 0
    }
}

/// What comes of asking for a copy.
pub enum Begun {
    /// It may go on.
    Copying(Box<Incoming>),
    /// A process works on the database.
    InUse,
    /// It is not empty.
    Holds(Contents),
}

/// A copy under way. Dropped before its commit, it leaves nothing behind.
pub struct Incoming {
    client: Client,
    /// Drives the connection, which ends with it.
    _wire: AbortOnDropHandle<()>,
    /// All tables with rows, as SQL lists them.
    tables: String,
    fitting: Fitting,
}

/// What a database holds; nothing where it has no tables yet.
pub async fn contents(connections: &Connections) -> StoreResult<Contents> {
    if schema::version(connections).await?.is_none() {
        return Ok(Contents::default());
    }
    let client = connections.reader().await?;
    holds(&**client).await.map_err(|error| error::at_work(&error))
}

/// How far a database is. Changes nothing, and works on one that is newer.
pub async fn standing(connections: &Connections) -> StoreResult<Standing> {
    let (version, newer) = match schema::version(connections).await {
        Err(StoreError::NewerSchema { found, .. }) => (Some(found), true),
        found => (found?, false),
    };
    let mut standing =
        Standing { version, known: schema::VERSION, jobs: None, moved_to: None, copied_from: None };
    if version.is_some() && !newer {
        let client = connections.reader().await?;
        let sql = "SELECT (SELECT count(*) FROM jobs), (SELECT value FROM meta WHERE name = 'copied_from')";
        let row = client.query_one(sql, &[]).await.map_err(|error| error::at_work(&error))?;
        standing.jobs = u64::try_from(row.get::<_, i64>(0)).ok();
        standing.copied_from = row.get(1);
    }
    Ok(standing)
}

/// Begins a copy into a database whose schema is up to date.
pub async fn begin(connections: &Connections) -> StoreResult<Begun> {
    let (client, wire) = connections.own().await?;
    let wire = AbortOnDropHandle::new(tokio::spawn(async move {
        // Whoever uses the connection is told of its end.
        let _ = wire.await;
    }));
    let failed = |error: Error| error::at_work(&error);
    // The sessions of writers are set up for short statements over few rows. This one may take its time.
    let patient = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
        SET LOCAL enable_hashjoin = on; SET LOCAL enable_seqscan = on";
    client.batch_execute(patient).await.map_err(failed)?;
    let alone = "SELECT pg_try_advisory_xact_lock(hashtext($1), hashtext($2))";
    let alone = client.query_one(alone, &[&leader::LOCK, &connections.schema()]).await.map_err(failed)?;
    if !alone.get::<_, bool>(0) {
        return Ok(Begun::InUse);
    }
    client.batch_execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE").await.map_err(failed)?;
    let found = holds(&client).await.map_err(failed)?;
    if !found.is_empty() {
        return Ok(Begun::Holds(found));
    }
    // Names and counts may be left of what was there once. They would be mistaken for those that come.
    let tables = "SELECT string_agg(quote_ident(c.relname), ', ') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname <> 'meta'";
    let tables = client.query_one(tables, &[&connections.schema()]).await.map_err(failed)?;
    let tables: String = tables.get(0);
    let clear = format!("TRUNCATE {tables} RESTART IDENTITY");
    client.batch_execute(&clear).await.map_err(failed)?;
    Ok(Begun::Copying(Box::new(Incoming { client, _wire: wire, tables, fitting: Fitting::default() })))
}

async fn holds(client: &impl GenericClient) -> Result<Contents, Error> {
    let sql = "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM flows),
            (SELECT count(*) FROM rules WHERE operator),
            (SELECT s.value FROM meta s, meta c WHERE s.name = 'salt' AND c.name = 'copied_from')";
    let row = client.query_one(sql, &[]).await?;
    let count = |at| u64::try_from(row.get::<_, i64>(at)).unwrap_or(0);
    let copy_of = row.get::<_, Option<&str>>(3).and_then(|salt| salt.parse().ok());
    Ok(Contents { jobs: count(0), flows: count(1), rules: count(2), copy_of })
}

impl Incoming {
    /// Writes some rows.
    pub async fn write(&mut self, batch: Batch) -> StoreResult<()> {
        let fitted = self.fitting.fit(batch).map_err(StoreError::Invalid)?;
        for load in fitted.loads {
            self.load(load).await?;
        }
        if !fitted.keys.is_empty() {
            // Jobs come in order, and of those with one key the newest has it.
            let (digests, jobs): (Vec<_>, Vec<_>) = fitted.keys.into_iter().unzip();
            let sql = "WITH new AS (SELECT d, j, max(j) OVER (PARTITION BY d) AS last FROM unnest($1::uuid[], $2::bigint[]) w(d, j)),
                former AS (INSERT INTO former_keys (digest, job)
                    SELECT d, j FROM new WHERE j < last
                    UNION ALL SELECT k.digest, k.job FROM keys k JOIN new ON new.d = k.digest AND new.j = new.last)
                INSERT INTO keys (digest, job) SELECT d, j FROM new WHERE j = last
                ON CONFLICT (digest) DO UPDATE SET job = excluded.job";
            self.client.execute(sql, &[&digests, &jobs]).await.map_err(|error| error::at_work(&error))?;
        }
        Ok(())
    }

    async fn load(&self, load: Load) -> StoreResult<()> {
        if load.rows.is_empty() {
            return Ok(());
        }
        let failed = |error: Error| error::at_work(&error);
        let columns = load.columns.join(", ");
        let look = format!("SELECT {columns} FROM {} LIMIT 0", load.table);
        let look = self.client.prepare(&look).await.map_err(failed)?;
        let types: Vec<Type> = look.columns().iter().map(|column| column.type_().clone()).collect();
        let copy = format!("COPY {} ({columns}) FROM STDIN (FORMAT binary)", load.table);
        let sink = self.client.copy_in(&copy).await.map_err(failed)?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in &load.rows {
            writer.as_mut().write_raw(row.iter()).await.map_err(failed)?;
        }
        writer.finish().await.map_err(failed)?;
        Ok(())
    }

    /// Writes what can only be told when all rows are there. What is left is the commit.
    pub async fn finish(&mut self, salt: u32, last_seq: i64, from: &str) -> StoreResult<()> {
        for load in self.fitting.limit_keys() {
            self.load(load).await?;
        }
        let failed = |error: Error| error::at_work(&error);
        self.client.batch_execute(ENTRIES).await.map_err(failed)?;
        self.client.batch_execute(NUMBERS).await.map_err(failed)?;
        let jobs = "SELECT setval('job_seq', greatest($1::bigint, 1), $1::bigint > 0)";
        self.client.execute(jobs, &[&last_seq]).await.map_err(failed)?;
        let meta = "INSERT INTO meta (name, value) VALUES ('salt', $1), ('copied_from', $2)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.client.execute(meta, &[&salt.to_string(), &from]).await.map_err(failed)?;
        // Else the first readers are planned for empty tables.
        self.client.batch_execute(&format!("ANALYZE {}", self.tables)).await.map_err(failed)
    }

    /// Makes it last. After [`StoreError::Unknown`] only a look at the database can tell.
    pub async fn commit(self) -> StoreResult<()> {
        self.client.batch_execute("COMMIT").await.map_err(|error| error::at_commit(&error))
    }
}

/// Where tasks stand, or stood when they were leased or held.
macro_rules! places {
    ($update:literal) => {
        concat!(
            $update,
            " FROM (SELECT task, stamp FROM ready UNION ALL SELECT task, stamp FROM parked UNION ALL
                SELECT task, stamp FROM leases UNION ALL SELECT task, stamp FROM held WHERE stamp IS NOT NULL) p "
        )
    };
}
/// A task in line is found by the stamp that is written at its job or at its row. Elsewhere that may be only kept up for
/// tasks that never moved.
const ENTRIES: &str = concat!(
    places!("UPDATE jobs j SET entry = p.stamp"),
    "WHERE j.seq = p.task >> 20 AND j.flow IS NULL AND j.entry IS DISTINCT FROM p.stamp;",
    places!("UPDATE tasks t SET entry = p.stamp"),
    "WHERE t.task = p.task AND t.entry IS DISTINCT FROM p.stamp"
);

/// What is numbered next comes after what was copied.
const NUMBERS: &str = "
    SELECT setval(pg_get_serial_sequence('specs', 'id'), greatest(max(id), 1), max(id) IS NOT NULL) FROM specs;
    SELECT setval(pg_get_serial_sequence('tenants', 'id'), greatest(max(id), 1), max(id) IS NOT NULL) FROM tenants;
    SELECT setval(pg_get_serial_sequence('lanes', 'id'), greatest(max(id), 1), max(id) IS NOT NULL) FROM lanes;
    SELECT setval(pg_get_serial_sequence('flows', 'id'), greatest(max(id), 1), max(id) IS NOT NULL) FROM flows;
    SELECT setval(pg_get_serial_sequence('limit_keys', 'id'), greatest(max(id), 1), max(id) IS NOT NULL) FROM limit_keys;
    SELECT setval(pg_get_serial_sequence('attempts', 'n'), greatest(max(n), 1), max(n) IS NOT NULL) FROM attempts;
    SELECT setval(pg_get_serial_sequence('journal', 'id'), greatest(max(id), 1), max(id) IS NOT NULL) FROM journal;
    SELECT setval('applied', greatest(max(applied), 1), max(applied) IS NOT NULL) FROM flows";
