//! Who holds what: the buffer of leased tasks and the attempt that each worker runs.
//!
//! One short lock; nothing is awaited and no foreign code runs under it. Workers take from the
//! buffer in order, the dispatcher fills it, the heartbeat reads it.

use super::config::Prefetch;
use super::pace::Pace;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{LimitKey, Limits, Millis};
use orchestrator_store::{Held, Leased};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A buffered task that waited this long is given back: handlers turned out slower than expected,
/// and others may have room for it.
pub(super) const LONGEST_IN_BUFFER: Duration = Duration::from_millis(500);

/// Why an attempt's token fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its lease is gone.
    Lost,
    /// The pool stops.
    Shutdown,
    /// Its time is up.
    Timeout,
}

/// A leased task that waits for a worker.
struct Buffered {
    leased: Leased,
    deadline: Option<Instant>,
    since: Instant,
}

/// An attempt that a worker is to run now.
pub(super) struct Taken {
    pub leased: Leased,
    /// When the attempt times out.
    pub deadline: Option<Instant>,
    pub token: CancellationToken,
    pub started: Instant,
}

struct Running {
    held: Held,
    limits: Limits,
    token: CancellationToken,
    stop: Option<Stop>,
    started: Instant,
}

/// Room for more tasks.
pub(super) struct Room {
    pub slots: u32,
    /// Whether others wait already.
    pub behind_others: bool,
}

#[expect(clippy::large_enum_variant, reason = "handed on at once; a box would be an allocation per task")]
enum Turn {
    Run(Taken),
    Empty,
    Closed,
}

struct Inner {
    buffer: VecDeque<Buffered>,
    /// By worker.
    running: Vec<Option<Running>>,
    busy: usize,
    /// Attempts that are through, but whose outcomes the source has not taken yet.
    unreported: Vec<Held>,
    /// Running attempts by limit key.
    keys: BTreeMap<LimitKey, u32>,
    pace: Pace,
    /// Workers and prefetch, as the dispatcher saw them last.
    capacity: usize,
    /// The dispatcher waits for room.
    wanting: bool,
    closed: bool,
}

impl Inner {
    fn free(&self) -> usize {
        self.capacity.saturating_sub(self.busy + self.buffer.len())
    }

    /// Whether a lease is worth its commit: a worker may be idle, or a good part is free.
    fn has_room(&self) -> bool {
        self.free() > 0 && (self.buffer.is_empty() || self.free() * 4 >= self.capacity)
    }

    /// Whether the dispatcher waits for what is now true.
    fn wakes_dispatcher(&mut self) -> bool {
        self.wanting && self.has_room() && std::mem::take(&mut self.wanting)
    }

    fn finish(&mut self, worker: usize, now: Instant) {
        let Some(done) = self.running[worker].take() else { return };
        if planted(Bug::LostLeaseKeepsSlot) && done.stop == Some(Stop::Lost) {
            return;
        }
        self.busy -= 1;
        self.pace.finished(now.duration_since(done.started));
        for key in done.limits.keys() {
            if let Some(count) = self.keys.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    self.keys.remove(key);
                }
            }
        }
    }

    fn take(&mut self, worker: usize, now: Instant) -> Turn {
        if self.closed {
            return Turn::Closed;
        }
        let Some(Buffered { leased, deadline, .. }) = self.buffer.pop_front() else { return Turn::Empty };
        let token = CancellationToken::new();
        for key in leased.limits.keys() {
            *self.keys.entry(key.clone()).or_default() += 1;
        }
        self.running[worker] = Some(Running {
            held: leased.held(),
            limits: leased.limits.clone(),
            token: token.clone(),
            stop: None,
            started: now,
        });
        self.busy += 1;
        Turn::Run(Taken { leased, deadline, token, started: now })
    }
}

pub(super) struct Slots {
    inner: Mutex<Inner>,
    /// Wakes workers.
    work: Notify,
    /// Wakes the dispatcher.
    room: Notify,
}

impl Slots {
    pub fn new(workers: usize, prefetch: Prefetch) -> Self {
        Slots {
            inner: Mutex::new(Inner {
                buffer: VecDeque::new(),
                running: (0..workers).map(|_| None).collect(),
                busy: 0,
                unreported: vec![],
                keys: BTreeMap::new(),
                pace: Pace::new(prefetch, workers, Instant::now()),
                capacity: workers,
                wanting: false,
                closed: false,
            }),
            work: Notify::new(),
            room: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the worker's attempt, if it had one, and waits for the next. `None` once closed.
    pub async fn next(&self, worker: usize) -> Option<Taken> {
        match self.turn(worker) {
            Turn::Run(taken) => return Some(taken),
            Turn::Closed => return None,
            Turn::Empty => {}
        }
        loop {
            // In line for a wake-up before the second look, so that none is missed.
            let mut woken = pin!(self.work.notified());
            woken.as_mut().enable();
            match self.turn(worker) {
                Turn::Run(taken) => return Some(taken),
                Turn::Closed => return None,
                Turn::Empty => woken.await,
            }
        }
    }

    fn turn(&self, worker: usize) -> Turn {
        let now = Instant::now();
        let (turn, wake) = {
            let mut inner = self.lock();
            inner.finish(worker, now);
            (inner.take(worker, now), inner.wakes_dispatcher())
        };
        if wake {
            self.room.notify_one();
        }
        turn
    }

    /// How many tasks to ask for; `None` when it is not worth it now, and then
    /// [`Slots::room_made`] wakes.
    pub fn room(&self) -> Option<Room> {
        let now = Instant::now();
        let mut inner = self.lock();
        inner.capacity = inner.running.len() + inner.pace.ahead(now);
        inner.wanting = !inner.has_room();
        (!inner.wanting).then(|| Room {
            slots: u32::try_from(inner.free()).unwrap_or(u32::MAX),
            behind_others: !inner.buffer.is_empty(),
        })
    }

    /// Waits until there may be room.
    pub async fn room_made(&self) {
        self.room.notified().await;
    }

    /// Puts leased tasks into the buffer. Gives them back if the pool has closed meanwhile.
    pub fn admit(&self, tasks: Vec<Leased>, ttl: Millis) -> Vec<Leased> {
        let now = Instant::now();
        let wake = {
            let mut inner = self.lock();
            if inner.closed {
                if planted(Bug::LoseLateGrant) {
                    return vec![];
                }
                return tasks;
            }
            let idle = inner.running.len() - inner.busy;
            let wake = idle.min(tasks.len());
            inner.buffer.extend(tasks.into_iter().map(|leased| {
                // The lease was granted at `expires - ttl` by the store's clock: only spans are
                // compared, so the two clocks need not agree.
                let left = leased.times_out.map(|at| Duration::from(at.since(leased.expires - ttl)));
                Buffered { deadline: left.and_then(|left| now.checked_add(left)), leased, since: now }
            }));
            wake
        };
        for _ in 0..wake {
            self.work.notify_one();
        }
        vec![]
    }

    /// Takes out what has waited for too long.
    pub fn shed(&self) -> Vec<Leased> {
        let now = Instant::now();
        let mut inner = self.lock();
        let stale = |task: &Buffered| now.duration_since(task.since) >= LONGEST_IN_BUFFER;
        let count = inner.buffer.iter().take_while(|task| stale(task)).count();
        inner.buffer.drain(..count).map(|task| task.leased).collect()
    }

    /// Keeps the leases of these attempts alive, and of no others that are through: their outcomes have to wait.
    pub fn keep(&self, unreported: Vec<Held>) {
        self.lock().unreported = unreported;
    }

    /// Everything that is held: what runs, what waits, and what is through but could not be handed in.
    pub fn held(&self) -> Vec<Held> {
        let inner = self.lock();
        let running =
            inner.running.iter().flatten().filter(|run| run.stop != Some(Stop::Lost)).map(|run| run.held);
        let waiting = inner.buffer.iter().map(|task| task.leased.held());
        running.chain(waiting).chain(inner.unreported.iter().copied()).collect()
    }

    /// Ends attempts whose lease is gone. Running ones are told by their token; says how many were
    /// dropped from the buffer.
    pub fn lose(&self, lost: &HashSet<Held>) -> usize {
        let (tokens, dropped, wake) = {
            let mut inner = self.lock();
            let before = inner.buffer.len();
            inner.buffer.retain(|task| !lost.contains(&task.leased.held()));
            inner.unreported.retain(|held| !lost.contains(held));
            let dropped = before - inner.buffer.len();
            let mut tokens = vec![];
            for run in inner.running.iter_mut().flatten().filter(|run| lost.contains(&run.held)) {
                run.stop = Some(Stop::Lost);
                tokens.push(run.token.clone());
            }
            (tokens, dropped, inner.wakes_dispatcher())
        };
        tokens.iter().for_each(CancellationToken::cancel);
        if wake {
            self.room.notify_one();
        }
        dropped
    }

    /// Why the pool fired the token of a worker's attempt, if it did.
    pub fn stop_of(&self, worker: usize) -> Option<Stop> {
        self.lock().running[worker].as_ref().and_then(|run| run.stop)
    }

    /// Lets no worker start another task, and hands out what was waiting.
    pub fn close(&self) -> Vec<Leased> {
        let waiting = {
            let mut inner = self.lock();
            inner.closed = true;
            inner.buffer.drain(..).map(|task| task.leased).collect()
        };
        self.work.notify_waiters();
        waiting
    }

    /// Fires the token of everything that runs.
    pub fn cancel_running(&self) {
        let tokens: Vec<_> = {
            let mut inner = self.lock();
            let running = inner.running.iter_mut().flatten();
            running
                .map(|run| {
                    run.stop.get_or_insert(Stop::Shutdown);
                    run.token.clone()
                })
                .collect()
        };
        tokens.iter().for_each(CancellationToken::cancel);
    }

    /// How many run, and how many wait in the buffer.
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.busy, inner.buffer.len())
    }

    /// Running attempts by limit key, in order.
    pub fn by_key(&self) -> Vec<(LimitKey, u32)> {
        self.lock().keys.iter().map(|(key, count)| (key.clone(), *count)).collect()
    }
}
