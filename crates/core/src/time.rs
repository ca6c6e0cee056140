//! Points and spans of time, in milliseconds. The clock itself lives in the stores.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time: milliseconds since the Unix epoch, by the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A point so far away that it never comes.
    pub const FAR: Timestamp = Timestamp(i64::MAX);

    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(ms: i64) -> Self {
        Timestamp(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How long it is from `earlier` to here; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).max(0) as u64)
    }
}

impl Add<Millis> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Millis) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }
}

impl Sub<Millis> for Timestamp {
    type Output = Timestamp;
    fn sub(self, span: Millis) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(span.0).unwrap_or(i64::MAX)))
    }
}

/// A span of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// From whole seconds.
    pub const fn secs(n: u64) -> Self {
        Millis(n * 1000)
    }

    /// From whole minutes.
    pub const fn mins(n: u64) -> Self {
        Millis(n * 60_000)
    }

    /// From whole hours.
    pub const fn hours(n: u64) -> Self {
        Millis(n * 3_600_000)
    }
}

impl From<Millis> for Duration {
    fn from(span: Millis) -> Duration {
        Duration::from_millis(span.0)
    }
}

impl From<Duration> for Millis {
    fn from(span: Duration) -> Millis {
        Millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::human::format_span(*self))
    }
}

impl fmt::Debug for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Spans are written as people write them (`"5m"`); a bare number reads as seconds.
impl Serialize for Millis {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Spans;
        impl serde::de::Visitor<'_> for Spans {
            type Value = Millis;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a span of time such as \"30s\", \"5m\" or a number of seconds")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Millis, E> {
                crate::human::parse_span(text).map_err(E::custom)
            }
            fn visit_u64<E: serde::de::Error>(self, secs: u64) -> Result<Millis, E> {
                secs.checked_mul(1000).map(Millis).ok_or_else(|| E::custom("span too long"))
            }
            fn visit_i64<E: serde::de::Error>(self, secs: i64) -> Result<Millis, E> {
                u64::try_from(secs)
                    .map_err(|_| E::custom("a span cannot be negative"))
                    .and_then(|s| self.visit_u64(s))
            }
            fn visit_f64<E: serde::de::Error>(self, secs: f64) -> Result<Millis, E> {
                if secs.is_finite() && (0.0..1e12).contains(&secs) {
                    Ok(Millis((secs * 1000.0).round() as u64))
                } else {
                    Err(E::custom("a span must be a positive number of seconds"))
                }
            }
        }
        input.deserialize_any(Spans)
    }
}
