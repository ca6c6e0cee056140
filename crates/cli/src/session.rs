//! What most commands start with: the configuration, the log, the handlers and the store, be it a database or a server.

use crate::cli::Globals;
use crate::config::{self, Config, Flag, Loaded, RetentionConfig, Sources};
use crate::database;
pub use crate::database::Missing;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::log;
use crate::output::Output;
use crate::reload::InForce;
use orchestrator_client::{Client, RemoteSource, RemoteStore};
use orchestrator_core::Millis;
use orchestrator_engine::{Engine, EngineConfig, Retention};
use orchestrator_store::{Store, StoreError};
use orchestrator_worker::builtin::{self, BuiltinConfig};
use orchestrator_worker::{Registry, WorkSource};
use std::sync::Arc;
use std::time::Duration;

/// How long after a try to reach the server the next one is made.
const SERVER_AWAY: Duration = Duration::from_millis(500);

/// A command at work.
pub struct Session {
    /// Where text goes.
    pub out: Output,
    /// The configuration in force.
    pub config: Config,
    /// Where it came from.
    pub sources: Sources,
    /// What the next configuration is compared with.
    pub in_force: InForce,
    /// The server that stands for the database, where there is one.
    server: Option<String>,
}

impl Session {
    /// Loads the configuration and starts the log.
    pub fn start(globals: &Globals, flags: Vec<Flag>) -> CliResult<Session> {
        Session::start_from(globals, sources(globals, flags)?)
    }

    /// The same with the configuration from where it is told.
    pub fn start_from(globals: &Globals, sources: Sources) -> CliResult<Session> {
        let out = globals.output();
        let loaded = config::load(&sources).map_err(|problems| CliError::config(&problems))?;
        log::start(&loaded.config, globals, out);
        let in_force = InForce::of(&loaded);
        Ok(Session { out, config: loaded.config, sources, in_force, server: globals.server() })
    }

    /// The same session with another configuration.
    pub fn with_config(&self, config: Config) -> Session {
        let (sources, in_force, server) = (self.sources.clone(), self.in_force.clone(), self.server.clone());
        Session { out: self.out, config, sources, in_force, server }
    }

    /// A session that works on its database, whatever server the environment names.
    pub fn on_database(self) -> Session {
        Session { server: None, ..self }
    }

    /// Whether a server stands for the database: then that one sweeps, removes what is old and keeps the limits.
    pub fn is_remote(&self) -> bool {
        self.server.is_some()
    }

    /// Opens the store: the database, or a server that stands for it.
    pub async fn open(&self, missing: Missing) -> CliResult<Arc<dyn Store>> {
        if let Some(url) = &self.server {
            return Ok(Arc::new(RemoteStore::open(client(url)?).await.map_err(StoreError::from)?));
        }
        database::open(&self.config.store, missing).await
    }

    /// Opens the store for work that goes on until somebody ends it: a server that is away is waited for.
    pub async fn open_waiting(&self, missing: Missing) -> CliResult<Arc<dyn Store>> {
        let Some(url) = &self.server else { return self.open(missing).await };
        let (client, mut told) = (client(url)?, false);
        loop {
            match RemoteStore::open(client.clone())
                .await
                .map_err(|error| CliError::from(StoreError::from(error)))
            {
                Err(error) if error.exit == Exit::Unreachable => {
                    if !std::mem::replace(&mut told, true) {
                        self.out.note(format!("{}: waiting for it", error.what));
                    }
                    tokio::time::sleep(SERVER_AWAY).await;
                }
                opened => return Ok(Arc::new(opened?)),
            }
        }
    }

    /// The largest payload, in bytes.
    pub fn max_payload(&self) -> usize {
        usize::try_from(self.config.queue.max_payload.0).unwrap_or(usize::MAX)
    }

    /// The engine on a store.
    pub fn engine(&self, store: Arc<dyn Store>) -> Engine {
        let config = EngineConfig {
            max_payload: self.max_payload(),
            poll_every: self.config.queue.poll,
            ..EngineConfig::default()
        };
        Engine::new(store, config)
    }

    /// Where the workers of this process get their tasks from.
    pub fn source(&self, engine: &Engine) -> CliResult<Arc<dyn WorkSource>> {
        match &self.server {
            // It waits for work at the server, where the engine here would ask again and again.
            Some(url) => Ok(Arc::new(RemoteSource::new(client(url)?))),
            None => Ok(engine.source()),
        }
    }

    /// What is kept how long.
    pub fn retention(&self) -> Retention {
        let RetentionConfig { completed, failed, dead_letters, journal, archive } = &self.config.retention;
        Retention {
            completed: completed.0,
            failed: failed.0,
            dead_letters: dead_letters.0,
            journal: journal.0,
            archive: (!archive.is_empty()).then(|| archive.into()),
            ..Retention::default()
        }
    }

    /// The handlers of this program.
    pub fn registry(&self) -> Registry {
        let http = self.config.http.timeout;
        builtin::registry(BuiltinConfig {
            download_dir: self.config.download.dir.clone().into(),
            max_download: self.config.download.max_size.0,
            http_timeout: http,
            connect_timeout: http.min(Millis::secs(10)),
            idle_timeout: http,
            ..BuiltinConfig::default()
        })
    }
}

fn client(url: &str) -> CliResult<Client> {
    Client::new(url).map_err(|error| CliError::usage(error.to_string()))
}

/// Loads the configuration; what is wrong with it comes back as a value.
pub fn load(globals: &Globals, flags: Vec<Flag>) -> CliResult<Result<Loaded, Vec<config::Problem>>> {
    Ok(config::load(&sources(globals, flags)?))
}

/// Where the configuration comes from.
pub fn sources(globals: &Globals, mut flags: Vec<Flag>) -> CliResult<Sources> {
    if let Some(path) = globals.config.as_ref().filter(|path| !path.exists()) {
        return Err(CliError::new(Exit::NotFound, "not_found", "there is no such configuration file")
            .at(path.display().to_string())
            .hint("`orchestrator config show --default > orchestrator.toml` writes one"));
    }
    flags.extend(globals.flags());
    Ok(Sources { file: globals.config.clone(), env: Sources::environment(), flags })
}
