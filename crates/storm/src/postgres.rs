//! A PostgreSQL server of the storm's own, which syncs as one in production does.

use crate::Failure;
use pg_harness::{Options, Server};
use std::sync::Arc;

/// A server that ends with the storm; clones are the same one.
#[derive(Clone)]
pub struct Postgres(Arc<Server>);

impl Postgres {
    /// Starts it.
    pub async fn launch() -> Result<Postgres, Failure> {
        Postgres::launch_with(Options::default()).await
    }

    /// Starts it with these options.
    pub async fn launch_with(options: Options) -> Result<Postgres, Failure> {
        let launched = || Server::launch(Options { fsync: true, ..options });
        Ok(Postgres(Arc::new(tokio::task::spawn_blocking(launched).await??)))
    }

    /// Does something with it, which may take a while.
    pub async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Server) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let server = self.0.clone();
        Ok(tokio::task::spawn_blocking(move || act(&server)).await?)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.0.port()
    }
}
