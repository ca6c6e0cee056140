//! The store's clock: virtual time, and how far off it is set.

use orchestrator_core::Timestamp;
use orchestrator_store::Clock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tokio::time::Instant;

/// When every run starts.
const EPOCH: i64 = 1_700_000_000_000;

/// A clock that goes with the runtime's virtual time, and can be set.
pub struct SimClock {
    start: Instant,
    offset: AtomicI64,
    /// The farthest that it was ever set ahead.
    most: AtomicI64,
}

impl SimClock {
    /// A clock that starts now; to be made inside the runtime.
    pub fn starting_now() -> Self {
        SimClock { start: Instant::now(), offset: AtomicI64::new(0), most: AtomicI64::new(0) }
    }

    /// Virtual milliseconds since the start of the run. This never jumps.
    pub fn ticks(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// Sets the clock by a span.
    pub fn jump(&self, by: i64) {
        let offset = self.offset.fetch_add(by, Relaxed) + by;
        self.most.fetch_max(offset, Relaxed);
    }

    /// Sets the clock right: to where it would be without the jumps back.
    pub fn heal(&self) {
        self.offset.store(self.most.load(Relaxed), Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(EPOCH + self.ticks() as i64 + self.offset.load(Relaxed))
    }
}
