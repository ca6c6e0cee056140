//! How a task is to be run: the part of it that many tasks share.

use crate::retry::RetryPolicy;
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The longest name of a queue, handler or tenant, in bytes.
pub const MAX_NAME: usize = 128;

/// The queue of tasks that name none.
pub const DEFAULT_QUEUE: &str = "default";

/// The rules under which a task runs. Stores keep each distinct spec once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TaskSpec {
    /// The line from which workers take it.
    pub queue: Arc<str>,
    /// The code that runs it.
    pub handler: Arc<str>,
    /// How failures are retried.
    pub retry: RetryPolicy,
    /// The longest that one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// How often the worker may vanish under it before it is put aside as a poison.
    pub max_crashes: u32,
}

impl TaskSpec {
    /// The default rules for a handler.
    pub fn new(handler: impl Into<Arc<str>>) -> Self {
        TaskSpec {
            queue: DEFAULT_QUEUE.into(),
            handler: handler.into(),
            retry: RetryPolicy::default(),
            timeout: Some(Millis::secs(300)),
            max_crashes: 3,
        }
    }

    /// The same rules on another queue.
    pub fn on_queue(mut self, queue: impl Into<Arc<str>>) -> Self {
        self.queue = queue.into();
        self
    }

    /// The same rules with another retry policy.
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The same rules with another limit on one attempt's time; `None` for no limit.
    pub fn with_timeout(mut self, timeout: Option<Millis>) -> Self {
        self.timeout = timeout;
        self
    }
}

/// Whether `name` may name a queue, handler or tenant: letters, digits and `._-/`, not empty.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/'))
}
