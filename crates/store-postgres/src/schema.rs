//! Migrations: SQL files that are applied once, in order, under a lock that all replicas respect.
//!
//! All tables stand in a schema of their own. Its `meta` says that it is ours, which version it has, and the salt of
//! the ids.
//!
//! Replicas are upgraded one by one, so a migration must leave alone what programs of the version before it rely on: it
//! adds tables, views, functions and columns that may be left out of an INSERT, and takes nothing away. Then those that
//! run go on, while one that starts and finds tables newer than itself refuses them: it may be older than anything that
//! was thought of.

use crate::connect::Connections;
use crate::error;
use deadpool_postgres::Client;
use orchestrator_store::packed::SALT_BITS;
use orchestrator_store::{StoreError, StoreResult};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, GenericClient};

/// What makes version N out of version N-1.
pub const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_state_is_location.sql"),
    include_str!("../migrations/0002_history_views.sql"),
];

/// The newest version that this program knows.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// How long a migration waits for a table that others use. Whoever comes after it waits behind it, so it gives way soon,
/// lets them pass, and tries again.
const PATIENCE: &str = "SET LOCAL lock_timeout = '1s'";
/// How long it rests before it does.
const REST: Duration = Duration::from_millis(500);
/// So often it tries: for some minutes.
const TRIES: u32 = 200;

/// Marks the tables as ours.
const APPLICATION: &str = "orchestrator";

/// What was found in a schema.
enum Found {
    /// Nothing: it is free, or missing.
    Nothing,
    /// Tables of another program, and one of them.
    Foreign(String),
    /// Ours, of this version.
    Ours(i64),
}

/// Brings the tables to the current version, in a schema that is made where it is missing; refuses what is not ours or
/// is newer. Processes that start together wait for the first of them.
pub async fn prepare(connections: &Connections) -> StoreResult<()> {
    if version(connections).await? == Some(VERSION) {
        return Ok(());
    }
    upgrade(connections, MIGRATIONS).await
}

/// Brings the tables to the version that the last of these migrations makes. Processes that use them go on meanwhile.
pub async fn upgrade(connections: &Connections, migrations: &[&str]) -> StoreResult<()> {
    let mut client = connections.writer().await?;
    let mut tries = 1;
    loop {
        match attempt(connections, &mut client, migrations).await? {
            Ok(()) => return Ok(()),
            Err(error) if tries < TRIES && is_in_the_way(&error) => {
                tracing::info!(tries, "the tables are in use: the migration tries again");
                tries += 1;
                tokio::time::sleep(REST).await;
            }
            Err(error) => return Err(error::at_open(connections.place(), &error)),
        }
    }
}

/// Whether a table could not be had: somebody used it for too long, or waited for us in turn.
fn is_in_the_way(error: &Error) -> bool {
    error::is_retryable(error) || error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

async fn attempt(
    connections: &Connections,
    client: &mut Client,
    migrations: &[&str],
) -> StoreResult<Result<(), Error>> {
    let at_open = |error: Error| error::at_open(connections.place(), &error);
    let tx = client.transaction().await.map_err(at_open)?;
    // However long another process migrates, this one has nothing else to do.
    tx.batch_execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0").await.map_err(at_open)?;
    let lock = format!("{APPLICATION} migrations of {}", connections.schema());
    tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&lock]).await.map_err(at_open)?;
    tx.batch_execute(PATIENCE).await.map_err(at_open)?;
    // Another process may have migrated while this one waited for the lock.
    let from = checked(connections, look(&*tx, connections).await?, migrations.len() as i64)?.unwrap_or(0);
    if let Err(error) = migrate(&*tx, connections.schema(), from, migrations).await {
        tx.rollback().await.map_err(at_open)?;
        return Ok(Err(error));
    }
    Ok(tx.commit().await)
}

/// The version of the tables; nothing where there are none. Refuses what is not ours or is newer.
pub async fn version(connections: &Connections) -> StoreResult<Option<i64>> {
    let client = connections.writer().await?;
    checked(connections, look(&**client, connections).await?, VERSION)
}

/// The database's own random number, which tells its ids from those of other databases.
pub async fn salt(connections: &Connections) -> StoreResult<u32> {
    let client = connections.reader().await?;
    let row = client.query_opt("SELECT value FROM meta WHERE name = 'salt'", &[]).await;
    let row = row.map_err(|error| error::at_open(connections.place(), &error))?;
    row.and_then(|row| row.get::<_, &str>(0).parse().ok())
        .ok_or_else(|| refused(connections, "its meta table holds no salt".to_owned()))
}

async fn migrate(tx: &impl GenericClient, schema: &str, from: i64, migrations: &[&str]) -> Result<(), Error> {
    if from == 0 {
        // Making a schema needs a right that a role may lack where somebody made it already, even with IF NOT EXISTS.
        let exists = tx.query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[&schema]).await?.is_some();
        if !exists {
            tx.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
        }
    }
    for sql in migrations.iter().skip(usize::try_from(from).unwrap_or(0)) {
        tx.batch_execute(sql).await?;
    }
    let salt = fastrand::u32(0..1 << SALT_BITS).to_string();
    for (name, value) in [("application", APPLICATION), ("salt", &salt)] {
        let sql = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        tx.execute(sql, &[&name, &value]).await?;
    }
    let sql = "INSERT INTO meta (name, value) VALUES ('version', $1) \
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    tx.execute(sql, &[&migrations.len().to_string()]).await?;
    Ok(())
}

async fn look(client: &impl GenericClient, connections: &Connections) -> StoreResult<Found> {
    let sql = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') \
               ORDER BY c.relname <> 'meta', c.relname LIMIT 1";
    let at_open = |error: Error| error::at_open(connections.place(), &error);
    let Some(row) = client.query_opt(sql, &[&connections.schema()]).await.map_err(at_open)? else {
        return Ok(Found::Nothing);
    };
    let first: String = row.get(0);
    if first != "meta" {
        return Ok(Found::Foreign(first));
    }
    let sql = "SELECT v.value FROM meta v, meta a \
               WHERE v.name = 'version' AND a.name = 'application' AND a.value = $1";
    let version = match client.query_opt(sql, &[&APPLICATION]).await {
        Ok(row) => row.and_then(|row| row.try_get::<_, String>(0).ok()?.parse().ok()),
        // A table of that name, but with other columns.
        Err(error) if error.code().is_some_and(is_another_shape) => None,
        Err(error) => return Err(at_open(error)),
    };
    Ok(version.map_or(Found::Foreign(first), Found::Ours))
}

fn is_another_shape(code: &SqlState) -> bool {
    [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_FUNCTION, SqlState::INVALID_TEXT_REPRESENTATION]
        .contains(code)
}

fn checked(connections: &Connections, found: Found, known: i64) -> StoreResult<Option<i64>> {
    match found {
        Found::Nothing => Ok(None),
        Found::Foreign(table) => Err(refused(
            connections,
            format!(
                "its schema {:?} has a table {table:?} of another program; ?schema=NAME in the URL names another schema",
                connections.schema()
            ),
        )),
        Found::Ours(found) if found > known => {
            Err(StoreError::NewerSchema { place: connections.place().to_owned(), found, known })
        }
        Found::Ours(found) => Ok(Some(found)),
    }
}

fn refused(connections: &Connections, detail: String) -> StoreError {
    StoreError::NotADatabase { place: connections.place().to_owned(), detail }
}
