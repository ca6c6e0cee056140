//! Columns of rows, by name, as the types that views are made of.

use super::{Read, unreadable};
use orchestrator_core::{Counters, Json, Limits, Timestamp};
use std::sync::Arc;
use tokio_postgres::Row;

/// Reads columns.
pub trait Columns {
    /// A text.
    fn text(&self, name: &str) -> Read<Arc<str>>;
    /// A text that may be absent.
    fn maybe_text(&self, name: &str) -> Read<Option<Arc<str>>>;
    /// A moment.
    fn moment(&self, name: &str) -> Read<Timestamp>;
    /// A moment that may be absent.
    fn maybe_moment(&self, name: &str) -> Read<Option<Timestamp>>;
    /// A JSON text that may be absent.
    fn json(&self, name: &str) -> Read<Option<Json>>;
    /// A number that stands for a state or a tier.
    fn small(&self, name: &str) -> Read<u8>;
    /// A count or a position.
    fn count(&self, name: &str) -> Read<u32>;
    /// Attempt, failures and crashes.
    fn counters(&self) -> Read<Counters>;
    /// The limit keys of a lane.
    fn limits(&self) -> Read<Limits>;
}

impl Columns for Row {
    fn text(&self, name: &str) -> Read<Arc<str>> {
        Ok(self.try_get::<_, &str>(name)?.into())
    }

    fn maybe_text(&self, name: &str) -> Read<Option<Arc<str>>> {
        Ok(self.try_get::<_, Option<&str>>(name)?.map(Into::into))
    }

    fn moment(&self, name: &str) -> Read<Timestamp> {
        Ok(Timestamp::from_millis(self.try_get(name)?))
    }

    fn maybe_moment(&self, name: &str) -> Read<Option<Timestamp>> {
        Ok(self.try_get::<_, Option<i64>>(name)?.map(Timestamp::from_millis))
    }

    fn json(&self, name: &str) -> Read<Option<Json>> {
        Ok(self.try_get::<_, Option<&str>>(name)?.map(Json::trusted))
    }

    fn small(&self, name: &str) -> Read<u8> {
        let value: i16 = self.try_get(name)?;
        u8::try_from(value).map_err(|_| unreadable(format!("{name} {value}")))
    }

    fn count(&self, name: &str) -> Read<u32> {
        let value: i32 = self.try_get(name)?;
        u32::try_from(value).map_err(|_| unreadable(format!("{name} {value}")))
    }

    fn counters(&self) -> Read<Counters> {
        Ok(Counters {
            attempt: self.count("attempt")?,
            failures: self.count("failures")?,
            crashes: self.count("crashes")?,
        })
    }

    fn limits(&self) -> Read<Limits> {
        let text: &str = self.try_get("limits")?;
        serde_json::from_str(text).map_err(|_| unreadable(format!("the limits {text:?}")))
    }
}
