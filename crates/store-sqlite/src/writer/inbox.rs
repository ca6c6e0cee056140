//! The receiving end of the mailbox: waits for requests, but not past a moment.

use super::mailbox::Request;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long the writer looks out for the next request before it sleeps. A job at idle is a chain of
/// short hops between the writer and its callers, and to wake a sleeping thread takes longer than
/// most of them.
const LOOK_OUT: Duration = Duration::from_micros(50);

/// When callers come in crowds, a commit waits for those that the one before has just answered, as
/// they mostly come right back: else the crowd splits into two halves that wait for each other's sync.
/// It waits as long as one more comes within `GAP`, and no longer than `MOST`.
const GAP: Duration = Duration::from_micros(40);
const MOST: Duration = Duration::from_micros(200);
/// So many requests in the commit before are a crowd.
const CROWD: usize = 8;

/// What came of waiting.
pub enum Received {
    /// A request.
    Request(Request),
    /// The moment was reached first.
    Nothing,
    /// No caller is left.
    Closed,
}

/// The requests of all callers.
pub struct Inbox {
    requests: mpsc::Receiver<Request>,
    waker: Waker,
    /// How many requests shared the transaction before.
    last_group: usize,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Inbox {
    /// Made in the thread that will receive.
    pub fn new(requests: mpsc::Receiver<Request>) -> Self {
        Inbox { requests, waker: Arc::new(Unpark(std::thread::current())).into(), last_group: 0 }
    }

    fn now(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }

    /// What goes into one transaction together with `first`: all that is there, and what a crowd
    /// brings in a moment, until it weighs `most`.
    pub fn group(&mut self, first: Request, most: usize) -> Vec<Request> {
        let crowded = self.last_group >= CROWD;
        let mut weight = first.weight();
        let mut group = vec![first];
        let start = Instant::now();
        let mut gap: Option<Instant> = None;
        while weight < most {
            if let Some(request) = self.now() {
                weight += request.weight();
                group.push(request);
                gap = None;
                continue;
            }
            let now = Instant::now();
            if !crowded || now - *gap.get_or_insert(now) > GAP || now - start > MOST {
                break;
            }
            std::hint::spin_loop();
        }
        self.last_group = group.len();
        group
    }

    /// Waits for a request, until a moment if there is one.
    pub fn next(&mut self, until: Option<Instant>) -> Received {
        let start = Instant::now();
        while start.elapsed() < LOOK_OUT {
            if let Some(request) = self.now() {
                return Received::Request(request);
            }
            std::hint::spin_loop();
        }
        loop {
            match self.requests.poll_recv(&mut Context::from_waker(&self.waker)) {
                Poll::Ready(Some(request)) => return Received::Request(request),
                Poll::Ready(None) => return Received::Closed,
                Poll::Pending => {}
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => std::thread::park(),
                Some(Duration::ZERO) => return Received::Nothing,
                Some(left) => std::thread::park_timeout(left),
            }
        }
    }
}
