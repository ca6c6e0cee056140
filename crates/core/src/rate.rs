//! Token buckets, kept as one number.
//!
//! A bucket of `burst` tokens that refills at `count` per `per` is the same thing as a *theoretical
//! arrival time* (the generic cell rate algorithm): each start moves it forward by one interval,
//! and a start may run at most `burst - 1` intervals ahead of the clock. One integer per key is
//! exact, cheap to store, and cannot drift.

use crate::planted::{Bug, planted};
use crate::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// So many starts per span, with room for a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many starts ...
    pub count: u32,
    /// ... per this span.
    pub per: Millis,
    /// How many may start at once after a rest; at least 1.
    pub burst: u32,
}

impl Rate {
    /// A rate without a burst.
    pub fn new(count: u32, per: Millis) -> Self {
        Rate { count: count.max(1), per: Millis(per.0.max(1)), burst: 1 }
    }

    /// The same rate with another burst.
    pub fn with_burst(self, burst: u32) -> Self {
        Rate { burst: burst.max(1), ..self }
    }

    /// The time between two starts, in microseconds, rounded up so that the rate is never exceeded.
    fn interval(&self) -> i64 {
        let micros = i64::try_from(self.per.0.max(1)).unwrap_or(i64::MAX).saturating_mul(1000);
        let count = i64::from(self.count.max(1));
        (micros / count + i64::from(micros % count != 0)).max(1)
    }
}

/// The state of one bucket: its theoretical arrival time in microseconds. Zero is a full bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bucket(pub i64);

impl Bucket {
    /// When the next start is allowed; a moment that is not later than `now` means at once.
    pub fn ready_at(self, rate: &Rate) -> Timestamp {
        let ahead = rate.interval().saturating_mul(i64::from(rate.burst.max(1)) - 1);
        let micros = self.0.saturating_sub(ahead);
        Timestamp::from_millis(micros.div_euclid(1000) + i64::from(micros.rem_euclid(1000) != 0))
    }

    /// Whether a start is allowed at `now`.
    pub fn allows(self, rate: &Rate, now: Timestamp) -> bool {
        self.ready_at(rate) <= now
    }

    /// The bucket after one start at `now`.
    pub fn after_start(self, rate: &Rate, now: Timestamp) -> Bucket {
        if planted(Bug::BucketNeverEmpties) {
            return self;
        }
        Bucket(self.0.max(now.as_millis().saturating_mul(1000)).saturating_add(rate.interval()))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per)?;
        if self.burst > 1 { write!(f, " burst {}", self.burst) } else { Ok(()) }
    }
}

/// A text that is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a rate; write it as 10/s, 100/1m or 5/1s burst 20")]
pub struct BadRate(String);

impl FromStr for Rate {
    type Err = BadRate;
    fn from_str(text: &str) -> Result<Self, BadRate> {
        let bad = || BadRate(text.to_owned());
        let (rate, burst) = match text.split_once("burst") {
            Some((rate, burst)) => (rate.trim(), burst.trim().parse::<u32>().map_err(|_| bad())?),
            None => (text.trim(), 1),
        };
        let (count, per) = rate.split_once('/').ok_or_else(bad)?;
        let count: u32 = count.trim().parse().map_err(|_| bad())?;
        let per = per.trim();
        let per = match per.as_bytes().first() {
            Some(b'0'..=b'9') => crate::human::parse_span(per),
            _ => crate::human::parse_span(&format!("1{per}")),
        };
        match per {
            Ok(per) if count > 0 && per.0 > 0 && burst > 0 => Ok(Rate { count, per, burst }),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_read_and_write() {
        for (text, shown) in [("10/s", "10/1s"), ("100/1m", "100/1m"), ("5/1s burst 20", "5/1s burst 20")] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), shown);
        }
        for text in ["", "10", "0/s", "ten/s", "5/0s", "5/s burst 0", "5/fortnight"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_burst_then_a_steady_pace() {
        let rate = Rate::new(2, Millis::secs(1)).with_burst(3);
        let mut bucket = Bucket::default();
        let mut now = Timestamp::from_millis(1_000_000);
        let mut starts = vec![];
        while starts.len() < 6 {
            if bucket.allows(&rate, now) {
                starts.push(now.as_millis() - 1_000_000);
                bucket = bucket.after_start(&rate, now);
            } else {
                now = bucket.ready_at(&rate);
            }
        }
        assert_eq!(starts, [0, 0, 0, 500, 1000, 1500]);
    }

    proptest! {
        /// Invariant 6: starts in any window never exceed rate times window plus burst.
        #[test]
        fn no_window_holds_more_than_rate_plus_burst(
            count in 1u32..50, per in 1u64..5000, burst in 1u32..20,
            steps in proptest::collection::vec(0i64..400, 1..200),
        ) {
            let rate = Rate { count, per: Millis(per), burst };
            let mut bucket = Bucket::default();
            let mut now = Timestamp::from_millis(1_700_000_000_000);
            let mut starts: Vec<i64> = vec![];
            for step in steps {
                now = Timestamp::from_millis(now.as_millis() + step);
                while bucket.allows(&rate, now) {
                    bucket = bucket.after_start(&rate, now);
                    starts.push(now.as_millis());
                }
            }
            for (i, from) in starts.iter().enumerate() {
                for (j, to) in starts.iter().enumerate().skip(i) {
                    let most = (to - from) as f64 * f64::from(count) / per as f64 + f64::from(burst);
                    prop_assert!((j - i + 1) as f64 <= most + 1e-6, "{} starts in {} ms", j - i + 1, to - from);
                }
            }
        }
    }
}
