//! Keys that make a submit safe to repeat, and the windows in which they hold.

use crate::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The longest key, in bytes.
pub const MAX_KEY_LEN: usize = 512;

/// An idempotency key as the caller gives it. It is unique per tenant and flow and, if it has a
/// window, per window.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The caller's own id for the work (seed systems call it `artifact_id`).
    pub text: Arc<str>,
    /// How long the key holds; without a window it holds for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Millis>,
    /// Whether the flow made it from the input. Inputs that make the same key are then the same work, though
    /// they differ (a URL with and without tracking parameters); with a caller's own key that is a mistake.
    #[serde(default)]
    pub derived: bool,
}

impl Key {
    /// A key that holds for ever.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Key { text: text.into(), window: None, derived: false }
    }

    /// A key that holds for the window in which it is submitted.
    pub fn within(text: impl Into<Arc<str>>, window: Millis) -> Self {
        Key { text: text.into(), window: Some(window), derived: false }
    }

    /// The window that `now` falls into.
    pub fn bucket(&self, now: Timestamp) -> i64 {
        self.window.map_or(NO_WINDOW, |window| bucket(window, now))
    }
}

/// The bucket of keys without a window.
pub const NO_WINDOW: i64 = -1;

/// Windows are half-open buckets counted from the epoch: `floor(now / window)`. They fit any
/// length, also one that does not divide a day.
pub fn bucket(window: Millis, now: Timestamp) -> i64 {
    now.as_millis().max(0) / i64::try_from(window.0.max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_is_half_open() {
        let key = Key::within("x", Millis::hours(5));
        let start = Timestamp::from_millis(1000 * 5 * 3_600_000);
        assert_eq!(key.bucket(start), 1000);
        assert_eq!(key.bucket(start + Millis::hours(5) - Millis(1)), 1000);
        assert_eq!(key.bucket(start + Millis::hours(5)), 1001);
        assert_eq!(Key::new("x").bucket(start), NO_WINDOW);
    }

    proptest! {
        #[test]
        fn every_moment_is_in_the_bucket_that_holds_it(window in 1u64..1 << 40, now in 0i64..1 << 45) {
            let n = bucket(Millis(window), Timestamp::from_millis(now));
            prop_assert!(n * window as i64 <= now && now < (n + 1) * window as i64);
        }
    }
}
