//! From where on lines are read.
//!
//! Tasks leave a line at its front, and their rows stay in the index as dead entries until nobody's snapshot can see
//! them: for hours, if somebody keeps a transaction open. A lease that began at the front would step over all of them.
//! So each process remembers the stamp that it got to, and begins there. That is a guess, because tasks may come back to
//! an earlier place: this process lowers the mark when it puts one there, but others do so, too. Therefore a lease looks
//! from the very front as long as that is quickly done; only when it takes long, as often as a twentieth of the time
//! allows.

use orchestrator_core::{Millis, Timestamp};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// A look that took no longer can be had at any time.
const CHEAP: Millis = Millis(2);
/// Of the time, so much at most goes into longer looks: one part of this many.
const SHARE: u64 = 20;

/// A line and a tier.
type Lane = (i32, u8);

/// The marks of all lines.
#[derive(Debug, Default)]
pub struct Marks(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    marks: FxHashMap<Lane, i64>,
    /// The earliest places that tasks were put to since the last lease began, which may not have seen them.
    since: FxHashMap<Lane, i64>,
    /// Whether tasks may have been put anywhere since then.
    anywhere: bool,
    /// No look from the front before this moment.
    next_look: Option<Timestamp>,
}

/// From where a lease reads.
#[derive(Clone, Debug)]
pub struct Start {
    marks: FxHashMap<Lane, i64>,
    began: Option<Timestamp>,
}

impl Start {
    /// The stamp from which a line and tier is read.
    pub fn of(&self, line: i32, tier: u8) -> i64 {
        self.marks.get(&(line, tier)).copied().unwrap_or(i64::MIN)
    }

    /// Whether every line is read from its front.
    pub fn is_front(&self) -> bool {
        self.marks.is_empty()
    }
}

impl Marks {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a lease begins now. Leases of a process begin one after the other.
    pub fn start(&self, now: Timestamp) -> Start {
        let mut inner = self.inner();
        inner.since.clear();
        inner.anywhere = false;
        if inner.next_look.is_none_or(|due| due <= now) {
            return front(now);
        }
        Start { marks: inner.marks.clone(), began: None }
    }

    /// The first tasks were found.
    pub fn looked(&self, start: &mut Start, now: Timestamp) {
        if let Some(began) = start.began.take() {
            let took = now.since(began);
            self.inner().next_look = (took > CHEAP).then(|| now + Millis(took.0 * SHARE));
        }
    }

    /// Whether a look from the front may be had again already.
    pub fn may_look(&self, now: Timestamp) -> bool {
        self.inner().next_look.is_none_or(|from| from <= now)
    }

    /// The last lease got to here, and what it took is gone for good.
    pub fn raise(&self, reached: &[(Lane, i64)]) {
        let mut inner = self.inner();
        if inner.anywhere {
            return;
        }
        for (lane, stamp) in reached {
            let mark = inner.since.get(lane).map_or(*stamp, |since| *since.min(stamp));
            inner.marks.insert(*lane, mark);
        }
    }

    /// Tasks stand at these places now.
    pub fn lower(&self, places: impl Iterator<Item = (Lane, i64)>) {
        let mut inner = self.inner();
        for (lane, stamp) in places {
            let since = inner.since.entry(lane).or_insert(stamp);
            *since = stamp.min(*since);
            if let Some(mark) = inner.marks.get_mut(&lane) {
                *mark = stamp.min(*mark);
            }
        }
    }

    /// Tasks may stand at any place again.
    pub fn forget(&self) {
        let mut inner = self.inner();
        inner.anywhere = true;
        inner.marks.clear();
    }
}

/// The very front of every line.
pub fn front(now: Timestamp) -> Start {
    Start { marks: FxHashMap::default(), began: Some(now) }
}
