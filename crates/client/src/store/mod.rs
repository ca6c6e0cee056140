//! A server as a store: what this program would ask of a database, it asks of a server over REST.
//!
//! Every verb is one request, so that it is all or nothing as the contract wants it. What the server does by itself, this does
//! not: it sweeps, removes what is old by its own configuration, and writes the limits of its own configuration. See
//! [`RemoteStore`] for what that means.

mod jobs;
mod reads;
mod views;
mod writes;

use crate::error::ClientError;
use crate::http::{Client, Repeat};
use crate::source::RemoteSource;
use orchestrator_api::time::ServerTime;
use orchestrator_core::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// A store behind a server.
///
/// - `expired` ends nothing and `leads` says no: the server sweeps and removes.
/// - `changes` never rises; a [`RemoteSource`] waits for work at the server instead.
/// - `journal` and `forget_journal` are refused: live events are read from `/events`, and the server's retention removes them.
/// - Rules of a configuration are refused by `set_limits`: those are the server's own.
/// - A job without a limit on its time, or under two limits of one kind, cannot be written in the fields of a request; it is
///   refused and not changed.
pub struct RemoteStore {
    client: Client,
    source: RemoteSource,
    /// By how many milliseconds the server's clock is ahead of this machine's.
    ahead: i64,
    /// Nothing is heard from the server between requests, so it never rises.
    changes: watch::Sender<u64>,
}

impl RemoteStore {
    /// The store behind a server, which must answer now.
    pub async fn open(client: Client) -> Result<Self, ClientError> {
        let before = local_now();
        let ServerTime { now } = client.get(&["time"], &[], Repeat::Never).await?;
        let after = local_now();
        // As if the server had read its clock half-way.
        let ahead = now.as_millis() - (before + (after - before) / 2);
        let source = RemoteSource::new(client.clone());
        Ok(RemoteStore { client, source, ahead, changes: watch::Sender::new(0) })
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_millis(local_now() + self.ahead)
    }
}

/// This machine's clock, in milliseconds since 1970.
fn local_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
