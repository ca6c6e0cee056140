//! One listener: a place in the journal, and what of it goes to a client.

use super::chunk::{Chunk, Filter};
use super::ring::Next;
use super::{BREATH, Hub, PAGE, POLL};
use crate::meters::Listening;
use bytes::Bytes;
use futures_util::stream::{Stream, unfold};
use orchestrator_store::EventId;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

/// A client hears something at least this often, so that both sides notice when the other is gone.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After so many milliseconds a client that lost its connection is to come back.
const RETRY_MS: u32 = 1000;

/// Someone who listens.
pub struct Listener {
    hub: Arc<Hub>,
    bell: watch::Receiver<EventId>,
    filter: Filter,
    /// Everything up to this was looked at.
    cursor: EventId,
    /// The last id that the client got without an event.
    told: EventId,
    pending: VecDeque<Bytes>,
    next_beat: Instant,
    _listening: Listening,
}

impl Listener {
    pub(super) fn new(hub: Arc<Hub>, bell: watch::Receiver<EventId>, after: EventId, filter: Filter) -> Self {
        // The id comes first, so that a client that is cut off before the first event knows where it began.
        let hello = format!("retry: {RETRY_MS}\nid: {after}\n\n");
        Listener {
            hub,
            bell,
            filter,
            cursor: after,
            told: after,
            pending: VecDeque::from([Bytes::from(hello)]),
            next_beat: Instant::now() + HEARTBEAT,
            _listening: Listening::begin(),
        }
    }

    /// All that the client gets, until the server stops.
    pub fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        unfold(self, |mut listener| async move {
            let piece = listener.next().await?;
            Some((Ok(piece), listener))
        })
    }

    /// The next piece for the client; none when it is over.
    pub async fn next(&mut self) -> Option<Bytes> {
        let stopping = self.hub.stopping.clone();
        let piece = tokio::select! {
            biased;
            () = stopping.cancelled() => None,
            piece = self.piece() => piece,
        };
        self.next_beat = Instant::now() + HEARTBEAT;
        piece
    }

    async fn piece(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pending.pop_front() {
                return Some(piece);
            }
            if Instant::now() >= self.next_beat {
                return Some(self.heartbeat());
            }
            // Before the look, so that what comes after it rings.
            self.bell.borrow_and_update();
            match self.hub.after(self.cursor) {
                Next::Chunk(chunk) => self.take(&chunk),
                Next::Behind => self.catch_up().await?,
                Next::Nothing => {
                    // Woken by either; the bell is there as long as the hub is.
                    let _ = timeout_at(self.next_beat, self.bell.changed()).await;
                }
            }
        }
    }

    fn take(&mut self, chunk: &Chunk) {
        self.pending.extend(chunk.after(self.cursor, &self.filter));
        self.cursor = chunk.upto;
    }

    /// Reads a page of what the ring does not hold. None where it is not kept any more: the client will come back, and be
    /// told so.
    async fn catch_up(&mut self) -> Option<()> {
        let turn = self.hub.catching_up.acquire().await.ok()?;
        let page = self.hub.store.journal(self.cursor, PAGE).await;
        drop(turn);
        match page {
            Ok(page) if page.missed => return None,
            Ok(page) if page.next == self.cursor => sleep(POLL).await,
            Ok(page) => self.take(&Chunk::of(page)),
            Err(error) if error.is_transient() => sleep(BREATH).await,
            Err(_) => return None,
        }
        Some(())
    }

    /// A comment; with an id where the listener has moved on, so that what was passed over for the client need not be passed over
    /// again when it comes back.
    fn heartbeat(&mut self) -> Bytes {
        if self.cursor == self.told {
            return Bytes::from_static(b":\n\n");
        }
        self.told = self.cursor;
        format!(":\nid: {}\n\n", self.cursor).into()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.leave();
    }
}
