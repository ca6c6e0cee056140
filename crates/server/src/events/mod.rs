//! Live events, for any number of listeners.
//!
//! One task reads the journal, and only while somebody listens. It writes each event once, as the text that goes over the wire, into
//! a ring of bounded size, and rings a bell. Every listener has a place of its own in the journal and takes what comes after it when
//! its client is ready for more: from the ring, or from the store by pages where the ring has moved on. So nobody waits for a slow
//! client, and memory does not grow with one. The journal is the truth: a listener that is lost loses nothing, for its client comes
//! back with the id of the last event that it saw, here or at another server on the same database.

mod chunk;
mod listener;
mod ring;
#[cfg(test)]
mod tests;

pub use chunk::Filter;
pub use listener::Listener;

use chunk::Chunk;
use orchestrator_store::{EventId, Store, StoreResult};
use ring::{Next, Ring};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The journal is looked at this often without a hint.
const POLL: Duration = Duration::from_millis(50);
/// And never more often than this, however many hints there are.
const PACE: Duration = Duration::from_millis(10);
/// A store that fails is asked again after this.
const BREATH: Duration = Duration::from_secs(1);
/// So many events are read at once. Their text is one piece of a ring, and what a client that does not read makes wait for it.
const PAGE: u32 = 250;
/// The bytes that the ring of a server takes.
pub const RING: usize = 8 << 20;
/// So many listeners that are behind read at the same time: the rest of the store's readers is for requests.
const CATCHING_UP: usize = 4;

/// Hands events to listeners.
pub struct Hub {
    store: Arc<dyn Store>,
    stopping: CancellationToken,
    ring_size: usize,
    state: Mutex<State>,
    /// Rises with the ring.
    bell: watch::Sender<EventId>,
    catching_up: Semaphore,
}

#[derive(Default)]
struct State {
    listeners: usize,
    /// Whether the journal is being read.
    reading: bool,
    /// None until the reader knows where the journal stands.
    ring: Option<Ring>,
}

impl Hub {
    /// A hub on a store, whose ring takes so many bytes. Listeners are sent away when the server stops.
    pub fn new(store: Arc<dyn Store>, stopping: CancellationToken, ring_size: usize) -> Arc<Self> {
        Arc::new(Hub {
            store,
            stopping,
            ring_size,
            state: Mutex::default(),
            bell: watch::Sender::new(EventId::START),
            catching_up: Semaphore::new(CATCHING_UP),
        })
    }

    /// Listens from after an event on.
    pub fn listen(self: &Arc<Self>, after: EventId, filter: Filter) -> Listener {
        let mut state = self.lock();
        state.listeners += 1;
        if !std::mem::replace(&mut state.reading, true) {
            tokio::spawn(self.clone().read());
        }
        Listener::new(self.clone(), self.bell.subscribe(), after, filter)
    }

    fn leave(&self) {
        self.lock().listeners -= 1;
    }

    /// What comes after an event, as far as the ring knows.
    fn after(&self, after: EventId) -> Next {
        self.lock().ring.as_ref().map_or(Next::Nothing, |ring| ring.after(after))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the journal for as long as somebody listens.
    async fn read(self: Arc<Self>) {
        let mut hints = self.store.changes();
        while self.is_wanted() {
            // Before the look, so that what is committed after it is not overlooked.
            hints.borrow_and_update();
            match self.look().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%error, "cannot read the journal, trying again");
                    self.rest(BREATH).await;
                }
            }
            self.rest(PACE).await;
            tokio::select! {
                Ok(()) = hints.changed() => {}
                () = self.rest(POLL - PACE) => {}
            }
        }
    }

    /// Whether somebody listens. If not, the ring is given up, and the next listener starts the reading anew.
    fn is_wanted(&self) -> bool {
        let mut state = self.lock();
        if state.listeners > 0 && !self.stopping.is_cancelled() {
            return true;
        }
        *state = State { listeners: state.listeners, ..State::default() };
        false
    }

    /// Takes what is new into the ring. Says whether there was anything.
    async fn look(&self) -> StoreResult<bool> {
        let tip = self.lock().ring.as_ref().map(Ring::tip);
        let Some(tip) = tip else {
            let newest = self.store.journal_range().await?.newest;
            self.lock().ring = Some(Ring::new(newest, self.ring_size));
            self.bell.send_replace(newest);
            return Ok(false);
        };
        let page = self.store.journal(tip, PAGE).await?;
        if page.missed {
            // It was away for so long that what it missed is not kept. Its listeners find that out for themselves.
            self.lock().ring = None;
            return Ok(true);
        }
        if page.next == tip {
            return Ok(false);
        }
        let chunk = Chunk::of(page);
        let tip = chunk.upto;
        if let Some(ring) = &mut self.lock().ring {
            ring.push(chunk);
        }
        self.bell.send_replace(tip);
        Ok(true)
    }

    async fn rest(&self, span: Duration) {
        tokio::select! {
            () = self.stopping.cancelled() => {}
            () = sleep(span) => {}
        }
    }
}
