//! The handlers that come with the binary: `noop`, `sleep`, `command`, `http` and `download`.
//!
//! What each takes and gives stands at the head of its module. All read their payload field by
//! field, so that one look names everything that is wrong with it: at submit, where
//! [`Handler::check`](crate::Handler::check) refuses it, and again when it runs. Problems carry the
//! path from the job down (`payload.sources[2].url`).

mod client;
mod command;
mod download;
mod fields;
mod host;
mod http;
mod plain;

pub use download::first_limits;
pub use host::host_key;

use crate::handler::Registry;
use orchestrator_core::Millis;
use orchestrator_store::clock::{Clock, SystemClock};
use std::path::PathBuf;
use std::sync::Arc;

/// What the handlers need to know of the place where they run.
#[derive(Clone)]
pub struct BuiltinConfig {
    /// Where `download` puts files whose path is relative.
    pub download_dir: PathBuf,
    /// The largest file that `download` takes, in bytes, where the payload does not say.
    pub max_download: u64,
    /// The largest result that `command` and `http` take, in bytes.
    pub max_output: usize,
    /// How long `http` waits for a whole answer, where the payload does not say.
    pub http_timeout: Millis,
    /// How long `http` and `download` try to connect.
    pub connect_timeout: Millis,
    /// How long `download` waits for the next bytes.
    pub idle_timeout: Millis,
    /// How long a program has between the request to end and its kill.
    pub kill_grace: Millis,
    /// Tells how far away the date of a `Retry-After` is.
    pub clock: Arc<dyn Clock>,
}

impl Default for BuiltinConfig {
    fn default() -> Self {
        BuiltinConfig {
            download_dir: PathBuf::from("downloads"),
            max_download: 1_000_000_000,
            max_output: 1 << 20,
            http_timeout: Millis::secs(30),
            connect_timeout: Millis::secs(10),
            idle_timeout: Millis::secs(30),
            kill_grace: Millis::secs(5),
            clock: Arc::new(SystemClock),
        }
    }
}

/// Every handler of the binary, by name.
pub fn registry(config: BuiltinConfig) -> Registry {
    Registry::new()
        .with("noop", plain::Noop)
        .with("sleep", plain::Sleep)
        .with("command", command::Command::new(&config))
        .with("http", http::Http::new(&config))
        .with("download", download::Downloader::new(&config))
}
