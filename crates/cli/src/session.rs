//! What most commands start with: the configuration, the log, the handlers and the store.

use crate::cli::Globals;
use crate::config::{self, Config, Flag, Loaded, RetentionConfig, Sources};
use crate::database;
pub use crate::database::Missing;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::log;
use crate::output::Output;
use orchestrator_core::Millis;
use orchestrator_engine::{Engine, EngineConfig, Retention};
use orchestrator_store::Store;
use orchestrator_worker::Registry;
use orchestrator_worker::builtin::{self, BuiltinConfig};
use std::sync::Arc;

/// A command at work.
pub struct Session {
    /// Where text goes.
    pub out: Output,
    /// The configuration in force.
    pub config: Config,
}

impl Session {
    /// Loads the configuration and starts the log.
    pub fn start(globals: &Globals, flags: Vec<Flag>) -> CliResult<Session> {
        let out = globals.output();
        let Loaded { config, .. } = load(globals, flags)?.map_err(|problems| CliError::config(&problems))?;
        log::start(&config.log, globals, out);
        Ok(Session { out, config })
    }

    /// The same session with another configuration.
    pub fn with_config(&self, config: Config) -> Session {
        Session { out: self.out, config }
    }

    /// Opens the store.
    pub async fn open(&self, missing: Missing) -> CliResult<Arc<dyn Store>> {
        database::open(&self.config.store, missing).await
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

/// Loads the configuration; what is wrong with it comes back as a value.
pub fn load(globals: &Globals, mut flags: Vec<Flag>) -> CliResult<Result<Loaded, Vec<config::Problem>>> {
    if let Some(path) = globals.config.as_ref().filter(|path| !path.exists()) {
        return Err(CliError::new(Exit::NotFound, "not_found", "there is no such configuration file")
            .at(path.display().to_string())
            .hint("`orchestrator config show --default > orchestrator.toml` writes one"));
    }
    flags.extend(globals.flags());
    Ok(config::load(&Sources { file: globals.config.clone(), env: Sources::environment(), flags }))
}
