//! When a failed attempt is tried again.

use crate::planted::{Bug, planted};
use crate::time::Millis;
use serde::{Deserialize, Serialize};

/// Exponential backoff with jitter. `max_retries = 3` means at most four attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RetryPolicy {
    /// How often a failed attempt is repeated.
    pub max_retries: u32,
    /// The wait after the first failure.
    pub initial: Millis,
    /// What each further wait is multiplied by.
    pub base: u32,
    /// No wait is longer, save one that the other side asked for.
    pub max: Millis,
    /// How much of a wait is random, in percent: 50 spreads a wait of 8 s over 4 to 8 s.
    pub jitter_percent: u8,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            max_retries: 3,
            initial: Millis::secs(1),
            base: 2,
            max: Millis::secs(60),
            jitter_percent: 50,
        }
    }
}

impl RetryPolicy {
    /// The default policy with another number of retries.
    pub fn with_retries(max_retries: u32) -> Self {
        RetryPolicy { max_retries, ..RetryPolicy::default() }
    }

    /// How long to wait after the `failures`-th failure (counted from 1). `jitter` is in `[0, 1)`.
    /// Never shorter than `retry_after`, so that the other side's word is kept.
    pub fn delay(&self, failures: u32, jitter: f64, retry_after: Option<Millis>) -> Millis {
        let factor = u64::from(self.base).saturating_pow(failures.saturating_sub(1));
        let full = self.initial.0.saturating_mul(factor).min(self.max.0);
        let random_part = full as f64 * f64::from(self.jitter_percent.min(100)) / 100.0;
        let wait = full - (random_part * jitter.clamp(0.0, 1.0)) as u64;
        if planted(Bug::RetryTooEarly) {
            return Millis(wait);
        }
        Millis(wait.max(retry_after.map_or(0, |span| span.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_double_up_to_the_cap() {
        let policy = RetryPolicy { jitter_percent: 0, ..RetryPolicy::default() };
        let waits: Vec<_> = (1..=8).map(|n| policy.delay(n, 0.0, None).0 / 1000).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn the_other_side_is_never_asked_too_early() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.delay(1, 0.9, Some(Millis::secs(120))), Millis::secs(120));
    }

    proptest! {
        #[test]
        fn a_wait_stays_in_its_band(failures in 1u32..1000, jitter in 0.0f64..1.0, percent in 0u8..=100) {
            let policy = RetryPolicy { jitter_percent: percent, ..RetryPolicy::default() };
            let full = policy.delay(failures, 0.0, None).0;
            let wait = policy.delay(failures, jitter, None).0;
            prop_assert!(wait <= full && full <= policy.max.0);
            prop_assert!(wait as f64 >= full as f64 * (1.0 - f64::from(percent) / 100.0) - 1.0);
        }
    }
}
