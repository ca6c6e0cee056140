//! The database's clock, by which leases, delays and rates go: it is one for all processes.

use crate::connect::Connections;
use crate::error;
use orchestrator_core::{Millis, Timestamp};
use orchestrator_store::{Clock, StoreResult, SystemClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// How often the two clocks are compared.
const EVERY: Duration = Duration::from_secs(30);

/// This machine's clock, set by the database's.
#[derive(Clone, Debug, Default)]
pub struct DatabaseClock {
    ahead: Arc<AtomicI64>,
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let ours = SystemClock.now().as_millis();
        Timestamp::from_millis(ours + self.ahead.load(Ordering::Relaxed))
    }
}

impl DatabaseClock {
    /// Compares the clocks, and goes on to do so now and then until the handle is dropped.
    pub async fn start(connections: Connections) -> StoreResult<(DatabaseClock, AbortOnDropHandle<()>)> {
        let clock = DatabaseClock::default();
        clock.compare(&connections).await?;
        let own = clock.clone();
        let task = tokio::spawn(async move {
            loop {
                sleep(EVERY).await;
                if let Err(error) = own.compare(&connections).await {
                    tracing::debug!(%error, "cannot compare clocks with the database, trying again");
                }
            }
        });
        Ok((clock, AbortOnDropHandle::new(task)))
    }

    async fn compare(&self, connections: &Connections) -> StoreResult<()> {
        let client = connections.writer().await?;
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let statement = client.prepare_cached(sql).await.map_err(|error| error::at_work(&error))?;
        let asked = Instant::now();
        let row = client.query_one(&statement, &[]).await.map_err(|error| error::at_work(&error))?;
        // The answer was given about half-way between.
        let theirs = Timestamp::from_millis(row.get(0)) + Millis::from(asked.elapsed() / 2);
        self.ahead.store(theirs.as_millis() - SystemClock.now().as_millis(), Ordering::Relaxed);
        Ok(())
    }
}
