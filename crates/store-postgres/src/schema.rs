//! Migrations: SQL files that are applied once, in order, under a lock that all replicas respect.
//!
//! All tables stand in a schema of their own. Its `meta` says that it is ours, which version it has, and the salt of
//! the ids.

use crate::connect::Connections;
use crate::error;
use orchestrator_store::packed::SALT_BITS;
use orchestrator_store::{StoreError, StoreResult};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, GenericClient};

/// What makes version N out of version N-1.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_state_is_location.sql"),
    include_str!("../migrations/0002_history_views.sql"),
];

/// The newest version that this program knows.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

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
    let at_open = |error: Error| error::at_open(connections.place(), &error);
    let mut client = connections.writer().await?;
    let tx = client.transaction().await.map_err(at_open)?;
    // However long another process migrates, this one has nothing else to do.
    tx.batch_execute("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0").await.map_err(at_open)?;
    let lock = format!("{APPLICATION} migrations of {}", connections.schema());
    tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&lock]).await.map_err(at_open)?;
    // Another process may have migrated while this one waited for the lock.
    let from = checked(connections, look(&*tx, connections).await?)?.unwrap_or(0);
    migrate(&*tx, connections.schema(), from).await.map_err(at_open)?;
    tx.commit().await.map_err(at_open)
}

/// The version of the tables; nothing where there are none. Refuses what is not ours or is newer.
pub async fn version(connections: &Connections) -> StoreResult<Option<i64>> {
    let client = connections.writer().await?;
    checked(connections, look(&**client, connections).await?)
}

/// The database's own random number, which tells its ids from those of other databases.
pub async fn salt(connections: &Connections) -> StoreResult<u32> {
    let client = connections.reader().await?;
    let row = client.query_opt("SELECT value FROM meta WHERE name = 'salt'", &[]).await;
    let row = row.map_err(|error| error::at_open(connections.place(), &error))?;
    row.and_then(|row| row.get::<_, &str>(0).parse().ok())
        .ok_or_else(|| refused(connections, "its meta table holds no salt".to_owned()))
}

async fn migrate(tx: &impl GenericClient, schema: &str, from: i64) -> Result<(), Error> {
    if from == 0 {
        // Making a schema needs a right that a role may lack where somebody made it already, even with IF NOT EXISTS.
        let exists = tx.query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[&schema]).await?.is_some();
        if !exists {
            tx.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
        }
    }
    for sql in MIGRATIONS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        tx.batch_execute(sql).await?;
    }
    let salt = fastrand::u32(0..1 << SALT_BITS).to_string();
    for (name, value) in [("application", APPLICATION), ("salt", &salt)] {
        let sql = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        tx.execute(sql, &[&name, &value]).await?;
    }
    let sql = "INSERT INTO meta (name, value) VALUES ('version', $1) \
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    tx.execute(sql, &[&VERSION.to_string()]).await?;
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

fn checked(connections: &Connections, found: Found) -> StoreResult<Option<i64>> {
    match found {
        Found::Nothing => Ok(None),
        Found::Foreign(table) => Err(refused(
            connections,
            format!(
                "its schema {:?} has a table {table:?} of another program; ?schema=NAME in the URL names another schema",
                connections.schema()
            ),
        )),
        Found::Ours(found) if found > VERSION => {
            Err(StoreError::NewerSchema { place: connections.place().to_owned(), found, known: VERSION })
        }
        Found::Ours(found) => Ok(Some(found)),
    }
}

fn refused(connections: &Connections, detail: String) -> StoreError {
    StoreError::NotADatabase { place: connections.place().to_owned(), detail }
}
