//! Looks at the store while jobs run: to show how far they are, and to see when nothing is left.

use super::progress::{Snapshot, View};
use super::report::Settlements;
use super::serve::Lines;
use crate::error::{CliError, CliResult};
use orchestrator_store::Catalog;
use orchestrator_worker::{Pool, Stats as PoolStats};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The time between two looks at the pool, which cost nothing.
const TICK: Duration = Duration::from_millis(200);

/// Counting a long queue takes a while; while the pool is at work, at most one part in so many of
/// the time goes into it.
const SPARING: u32 = 20;

/// A run that does not end by itself is only shown: it need not know at once that the last job has ended.
const AT_EASE: Duration = Duration::from_secs(2);

/// A run under watch.
pub struct Watch<'a> {
    store: &'a dyn Catalog,
    lines: &'a Lines,
    first: &'a Snapshot,
    view: &'a mut View,
    drain: bool,
}

/// The latest look at the store.
struct Look {
    seen: Snapshot,
    pool: PoolStats,
    next: Instant,
}

impl<'a> Watch<'a> {
    /// Watches a run that started with `first`.
    pub fn new(
        store: &'a dyn Catalog,
        lines: &'a Lines,
        first: &'a Snapshot,
        view: &'a mut View,
        drain: bool,
    ) -> Self {
        Watch { store, lines, first, view, drain }
    }

    /// Shows progress until nothing is left to do; for ever unless the plan is to drain.
    pub async fn until_drained(&mut self, pool: &Pool, settlements: &mut Settlements) -> CliResult<()> {
        let mut look = Look { seen: self.first.clone(), pool: PoolStats::default(), next: Instant::now() };
        loop {
            let now = pool.stats();
            let idle = now.running + now.buffered == 0 && now.leased == look.pool.leased;
            if (idle && self.drain) || Instant::now() >= look.next {
                look = self.look(look, now).await?;
                if self.drain && look.seen.left() == 0 {
                    return Ok(());
                }
            }
            // Between two looks, what this process ended is known.
            let shown = look.seen.after(ended(&now).saturating_sub(ended(&look.pool)));
            self.view.show(&shown, &now, self.store).await?;
            let mut tick = std::pin::pin!(sleep(TICK));
            loop {
                tokio::select! {
                    event = settlements.next_event() => settlements.show(event)?,
                    () = &mut tick => break,
                }
            }
        }
    }

    async fn look(&self, before: Look, pool: PoolStats) -> CliResult<Look> {
        let started = Instant::now();
        let seen = match Snapshot::take(self.store, self.lines, Some(self.first)).await {
            Ok(seen) => seen,
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "cannot count jobs, trying again");
                return Ok(before);
            }
            Err(error) => return Err(CliError::from(error)),
        };
        let pause = started.elapsed() * SPARING;
        let pause = if self.drain { pause } else { pause.max(AT_EASE) };
        Ok(Look { seen, pool, next: Instant::now() + pause })
    }
}

fn ended(pool: &PoolStats) -> u64 {
    pool.completed + pool.skipped + pool.failed
}
