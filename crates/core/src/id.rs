//! Typed ids. A raw number or string never crosses an interface as "some id".

use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use uuid::Uuid;

/// Identifies one job, for ever. A UUID of version 7: sortable by creation time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(Uuid);

impl JobId {
    /// Builds the id from the creation time and the 74 bits that a version 7 UUID leaves free.
    /// What a store puts into those bits (random bits, a counter, both) is its own affair.
    pub fn from_parts(created: Timestamp, free_bits: u128) -> Self {
        let time = (created.as_millis() as u128 & 0xFFFF_FFFF_FFFF) << 80;
        let high = (free_bits >> 62 & 0xFFF) << 64;
        let low = free_bits & 0x3FFF_FFFF_FFFF_FFFF;
        JobId(Uuid::from_u128(time | 0x7 << 76 | high | 0b10 << 62 | low))
    }

    /// The creation time that the id carries.
    pub fn created(self) -> Timestamp {
        Timestamp::from_millis((self.0.as_u128() >> 80) as i64)
    }

    /// The 74 bits given to [`JobId::from_parts`].
    pub fn free_bits(self) -> u128 {
        let raw = self.0.as_u128();
        (raw >> 64 & 0xFFF) << 62 | raw & 0x3FFF_FFFF_FFFF_FFFF
    }

    /// The id as a UUID.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for JobId {
    fn from(id: Uuid) -> Self {
        JobId(id)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no id.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0:?} is not a job id (expected a UUID such as 019a8f00-0000-7000-8000-000000000001)")]
pub struct BadId(String);

impl FromStr for JobId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        Uuid::try_parse(text).map(JobId).map_err(|_| BadId(text.to_owned()))
    }
}

/// One task of a job: the job and the task's index in it. Written as `019a8f00-0000-7000-8000-000000000001/0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// The job the task belongs to.
    pub job: JobId,
    /// The task's place in the job; a job of one task has only index 0.
    pub index: u32,
}

impl TaskId {
    /// The only task of a job that has one.
    pub fn only(job: JobId) -> Self {
        TaskId { job, index: 0 }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.job, self.index)
    }
}

/// A text that is no id of a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of a task (expected a job id, a slash and an index)")]
pub struct BadTaskId(String);

impl FromStr for TaskId {
    type Err = BadTaskId;
    fn from_str(text: &str) -> Result<Self, BadTaskId> {
        let bad = || BadTaskId(text.chars().take(60).collect());
        let (job, index) = text.split_once('/').ok_or_else(bad)?;
        Ok(TaskId { job: job.parse().map_err(|_| bad())?, index: index.parse().map_err(|_| bad())? })
    }
}

impl Serialize for TaskId {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(input)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name under which a worker process holds leases.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// Names a worker.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        WorkerId(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<WorkerId> for Arc<str> {
    fn from(id: WorkerId) -> Arc<str> {
        id.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_gives_back_its_parts(ms in 0i64..1 << 48, bits in 0u128..1 << 74) {
            let id = JobId::from_parts(Timestamp::from_millis(ms), bits);
            prop_assert_eq!(id.created().as_millis(), ms);
            prop_assert_eq!(id.free_bits(), bits);
            prop_assert_eq!(id.as_uuid().get_version_num(), 7);
            prop_assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
        }
    }

    #[test]
    fn a_bad_id_says_what_it_saw() {
        let error = "42".parse::<JobId>().unwrap_err().to_string();
        assert!(error.contains("\"42\" is not a job id"), "{error}");
    }
}
