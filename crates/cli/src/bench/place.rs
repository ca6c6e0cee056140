//! Where a benchmark works: a directory on the disk to measure, or a PostgreSQL database. Every scenario gets a store
//! of its own, and nothing is left behind.

use super::load::failed;
use super::raw::{Bare, postgres, sqlite};
use crate::cli::Globals;
use crate::config::StoreConfig;
use crate::database;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::session::Session;
use orchestrator_store::Store;
use orchestrator_store_postgres::connect::Connections;
use orchestrator_store_postgres::{Options, PostgresStore};
use orchestrator_store_sqlite::SqliteStore;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// Where a benchmark works.
pub enum Place {
    /// A scratch directory: a file for each store.
    Dir(TempDir),
    /// A database: a schema for each store.
    Server(Server),
}

/// A PostgreSQL database.
pub struct Server {
    config: StoreConfig,
    made: Mutex<Vec<String>>,
}

impl Place {
    /// The database that `--db` names, where that is a URL; else the disk under `--dir`.
    pub fn new(globals: &Globals, dir: &Path) -> CliResult<Place> {
        let session = Session::start(globals, vec![])?;
        let config = session.config.store;
        if database::is_url(&config.db) {
            return Ok(Place::Server(Server { config, made: Mutex::default() }));
        }
        Place::dir(dir)
    }

    /// A new directory in another, which is gone when it is dropped.
    pub fn dir(dir: &Path) -> CliResult<Place> {
        let made = tempfile::Builder::new().prefix(".orchestrator-bench-").tempdir_in(dir);
        made.map(Place::Dir).map_err(|error| {
            CliError::new(Exit::Error, "io", format!("cannot write to {}: {error}", dir.display()))
                .hint("name a directory on the disk to measure with --dir")
        })
    }

    /// A new, empty store.
    pub async fn store(&self, name: &str) -> CliResult<Arc<dyn Store>> {
        match self {
            Place::Dir(dir) => {
                let file = dir.path().join(format!("{name}.db"));
                Ok(SqliteStore::open(&file, Default::default()).map_err(failed)?)
            }
            Place::Server(server) => Ok(PostgresStore::open(server.options(name)?).await?),
        }
    }

    /// The name by which another process opens a new, empty store.
    pub fn db(&self, name: &str) -> CliResult<String> {
        match self {
            Place::Dir(dir) => Ok(dir.path().join(format!("{name}.db")).display().to_string()),
            Place::Server(server) => Ok(server.options(name)?.url),
        }
    }

    /// The bare database, with nothing in it.
    pub async fn bare(&self, name: &str) -> CliResult<Bare> {
        match self {
            Place::Dir(dir) => Ok(Bare::Sqlite(sqlite::Bare::new(dir.path().join(format!("{name}.db"))))),
            Place::Server(server) => Ok(Bare::Postgres(postgres::Bare::new(server.options(name)?).await?)),
        }
    }

    /// A transaction that is held open in the same database until it is dropped. Files have none.
    pub async fn hold_open(&self) -> CliResult<Option<postgres::HeldOpen>> {
        match self {
            Place::Dir(_) => Ok(None),
            Place::Server(server) => Ok(Some(postgres::HeldOpen::begin(server.options("held_open")?).await?)),
        }
    }

    /// The database, and what its answers mean.
    pub async fn about(&self) -> CliResult<String> {
        match self {
            Place::Dir(_) => {
                let version = rusqlite::version();
                Ok(format!("SQLite {version}, WAL, synchronous=FULL: every answer is on disk"))
            }
            Place::Server(server) => {
                let connections = Connections::new(&database::postgres(&server.config)?)?;
                let (client, wire) = connections.own().await?;
                let driven = tokio::spawn(wire);
                let ask = "SELECT current_setting('server_version'), current_setting('fsync'),
                    current_setting('synchronous_commit'), current_setting('shared_buffers')";
                let row = client.query_one(ask, &[]).await.map_err(failed)?;
                let part = |at: usize| row.get::<_, String>(at);
                driven.abort();
                Ok(format!(
                    "PostgreSQL {}, fsync={}, synchronous_commit={}, shared_buffers={}",
                    part(0),
                    part(1),
                    part(2),
                    part(3)
                ))
            }
        }
    }

    /// Removes what was made.
    pub async fn clean(self) -> CliResult<()> {
        let Place::Server(server) = self else { return Ok(()) };
        let made = std::mem::take(&mut *server.made.lock().unwrap_or_else(PoisonError::into_inner));
        let connections = Connections::new(&database::postgres(&server.config)?)?;
        let (client, wire) = connections.own().await?;
        let driven = tokio::spawn(wire);
        // Dropping much takes its time.
        client.batch_execute("SET statement_timeout = 0; SET lock_timeout = 0").await.map_err(failed)?;
        for schema in made {
            // The names are our own: letters, digits and underscores.
            client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.map_err(failed)?;
        }
        drop(client);
        driven.await.map_err(failed)?.map_err(failed)
    }
}

impl Server {
    /// Options for a schema of our own.
    fn options(&self, name: &str) -> CliResult<Options> {
        let name = name.replace('-', "_");
        let schema = format!("orchestrator_bench_{}_{name}", std::process::id());
        let mut options = database::postgres(&self.config)?;
        let joint = if options.url.contains('?') { '&' } else { '?' };
        // The last one counts, whatever the URL says before.
        options.url = format!("{}{joint}schema={schema}", options.url);
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(schema);
        Ok(options)
    }
}
