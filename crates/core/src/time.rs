//! Points and spans of time, in milliseconds. The clock itself lives in the stores.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A point in time: milliseconds since the Unix epoch, by the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
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

    /// The day that it belongs to by UTC, counted from that of the Unix epoch.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(24 * 60 * 60 * 1000)
    }

    /// The beginning of a day, counted as [`Timestamp::day`] does.
    pub const fn of_day(day: i64) -> Self {
        Timestamp(day.saturating_mul(24 * 60 * 60 * 1000))
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

/// As `2026-11-15T06:00:00.25Z`. A moment that has no such form, after the year 9999, is shown as its milliseconds.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => moment.fmt(f),
            Err(_) => self.0.fmt(f),
        }
    }
}

/// A text that is no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a moment; write it as 2026-11-15T06:00:00Z")]
pub struct BadMoment(String);

impl FromStr for Timestamp {
    type Err = BadMoment;
    fn from_str(text: &str) -> Result<Self, BadMoment> {
        let moment: jiff::Timestamp = text.parse().map_err(|_| BadMoment(text.chars().take(60).collect()))?;
        Ok(Timestamp(moment.as_millisecond()))
    }
}

/// Moments are written as people write them where people may read them, and as milliseconds elsewhere.
impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        if out.is_human_readable() && jiff::Timestamp::from_millisecond(self.0).is_ok() {
            out.collect_str(self)
        } else {
            out.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Moments {
            /// Whether people may have written it: then only what has no form as a text is a number.
            written: bool,
        }
        impl serde::de::Visitor<'_> for Moments {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a moment such as \"2026-11-15T06:00:00Z\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: serde::de::Error>(self, millis: i64) -> Result<Timestamp, E> {
                if self.written && jiff::Timestamp::from_millisecond(millis).is_ok() {
                    return Err(E::invalid_type(serde::de::Unexpected::Signed(millis), &self));
                }
                Ok(Timestamp(millis))
            }
            fn visit_u64<E: serde::de::Error>(self, millis: u64) -> Result<Timestamp, E> {
                i64::try_from(millis).map_err(E::custom).and_then(|millis| self.visit_i64(millis))
            }
        }
        if input.is_human_readable() {
            input.deserialize_any(Moments { written: true })
        } else {
            input.deserialize_i64(Moments { written: false })
        }
    }
}

/// A span of time in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl Millis {
    /// The longest span that is read from a bare number of seconds: some thirty years.
    pub const MAX_SECONDS: u64 = 1_000_000_000;

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

impl FromStr for Millis {
    type Err = crate::human::HumanError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        crate::human::parse_span(text)
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
                if secs > Millis::MAX_SECONDS {
                    return Err(E::custom("span too long"));
                }
                Ok(Millis(secs * 1000))
            }
            fn visit_i64<E: serde::de::Error>(self, secs: i64) -> Result<Millis, E> {
                u64::try_from(secs)
                    .map_err(|_| E::custom("a span cannot be negative"))
                    .and_then(|s| self.visit_u64(s))
            }
            fn visit_f64<E: serde::de::Error>(self, secs: f64) -> Result<Millis, E> {
                if (0.0..=Millis::MAX_SECONDS as f64).contains(&secs) {
                    Ok(Millis((secs * 1000.0).round() as u64))
                } else {
                    Err(E::custom("a span is a positive number of seconds, at most thirty years"))
                }
            }
        }
        input.deserialize_any(Spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds_of_some_years_at_most() {
        let read = |text: &str| serde_json::from_str::<Millis>(text).ok();
        assert_eq!((read("30"), read("0.25")), (Some(Millis::secs(30)), Some(Millis(250))));
        assert_eq!(read("1000000000"), Some(Millis::secs(Millis::MAX_SECONDS)));
        for text in ["1000000001", "1e300", "-1", "-0.5", "18446744073709551615"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
