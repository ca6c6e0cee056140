//! The pure domain of orchestrator.
//!
//! Everything here is a value or a function of its arguments: no IO, no clock, no randomness, no
//! async runtime. Time comes in as a [`Timestamp`], randomness as a `jitter` in `[0, 1)`. Stores
//! and the engine ask this crate *what* should happen and then make it durable.

mod bounds;
pub mod decide;
pub mod event;
pub mod flow;
pub mod human;
pub mod id;
pub mod idempotency;
pub mod job;
pub mod json;
pub mod limit;
pub mod order;
pub mod outcome;
pub mod planted;
pub mod rate;
pub mod retry;
#[cfg(feature = "schema")]
pub mod schema;
pub mod spec;
pub mod state;
pub mod time;
pub mod trace;
pub mod url;

pub use decide::{Counters, DeadReason, Decision, Next, decide};
pub use event::{Event, JobEvent, TaskEvent};
pub use id::{JobId, TaskId, WorkerId};
pub use idempotency::Key;
pub use job::{Document, FieldError, Meta, NewJob, Work};
pub use json::Json;
pub use limit::{BadLimit, LimitBook, LimitKey, LimitRule, Limits};
pub use order::Priority;
pub use outcome::{ErrorClass, Failure, Outcome};
pub use rate::Rate;
pub use retry::RetryPolicy;
pub use spec::TaskSpec;
pub use state::{JobState, TaskState};
pub use time::{Millis, Timestamp};
pub use trace::TraceContext;
