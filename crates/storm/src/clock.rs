//! The one clock of a storm. All processes of a machine share it, so that what a handler in a process of its own
//! noted can be put in order with what the storm saw.

use orchestrator_history::Tick;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the machine's monotonic clock.
pub fn now() -> Tick {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
