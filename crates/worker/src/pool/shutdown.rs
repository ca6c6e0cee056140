//! The end of a pool: nothing is lost, and it ends in bounded time.
//!
//! In order: nothing more is leased; what was waiting is given back at once; what runs gets the
//! grace, then its token fires and it is given back; then the last outcomes are handed in.

use super::settler::{Done, give_back};
use super::stats::Stats;
use super::{Shared, introduce};
use orchestrator_core::planted::{Bug, planted};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

/// How long the last outcomes may take when the source does not answer. What is left then comes
/// back by itself when its lease runs out.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What came of the tasks that a pool held when it was told to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Ran to their end, whichever it was.
    pub finished: u64,
    /// Given back without costing them an attempt.
    pub released: u64,
    /// Held until their lease runs out, because the source did not answer.
    pub unreported: u64,
}

/// The tasks of a pool, and when they have to end.
pub(super) struct Crew {
    pub shared: Arc<Shared>,
    /// The dispatcher and the workers.
    pub members: JoinSet<()>,
    pub settler: AbortOnDropHandle<()>,
    pub heartbeat: AbortOnDropHandle<()>,
    pub watch: AbortOnDropHandle<()>,
    pub introduce: AbortOnDropHandle<()>,
    pub done: mpsc::Sender<Done>,
    /// When the grace is over, once somebody asked for the end.
    pub deadline: watch::Receiver<Option<Instant>>,
}

impl Crew {
    /// Waits for the word to stop, and carries it out.
    pub async fn supervise(self) -> Summary {
        let Crew { shared, mut members, settler, heartbeat, watch, introduce, done, mut deadline } = self;
        // An error means that the pool was dropped; that is a word, too.
        let _ = deadline.wait_for(Option::is_some).await;
        let before = shared.stats();
        shared.stopping.cancel();
        let mut waiting = shared.slots.close();
        if planted(Bug::ShutdownKeepsBuffer) {
            waiting.clear();
        }
        members.spawn(async move { give_back(waiting, &done).await });
        let mut ended = pin!(async {
            while members.join_next().await.is_some() {}
            // The last sender went with the last member, so the settler ends when it is through.
            let _ = settler.await;
        });
        if !within_grace(&mut ended, &mut deadline).await {
            shared.slots.cancel_running();
            let limit = Duration::from(shared.config.cancel_grace) + LAST_WORDS;
            if timeout(limit, ended).await.is_err() {
                tracing::error!("the source did not take the last outcomes; their leases will run out");
            }
        }
        drop((heartbeat, watch, introduce));
        introduce::gone(&shared).await;
        summary(before, shared.stats())
    }
}

/// Whether everything ended before the deadline, which may still be moved closer.
async fn within_grace(
    mut ended: impl Future<Output = ()> + Unpin,
    deadline: &mut watch::Receiver<Option<Instant>>,
) -> bool {
    loop {
        let until = deadline.borrow_and_update().unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            () = &mut ended => return true,
            () = sleep_until(until) => return false,
            moved = deadline.changed() => if moved.is_err() { return false },
        }
    }
}

fn summary(before: Stats, after: Stats) -> Summary {
    let released = after.released - before.released;
    Summary {
        released,
        finished: after.settled() - before.settled() - released,
        unreported: after.leased.saturating_sub(after.settled() + after.lost),
    }
}
