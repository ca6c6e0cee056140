//! The protocol of workers that run elsewhere. Every message about an attempt carries its task and its number.

use orchestrator_core::{ErrorClass, Json, Millis, Outcome, TaskId, WorkerId};
use orchestrator_store::{Beat, Held, Leased, Settled};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most tasks that one answer brings, and that one message may be about.
pub const MOST_TASKS: usize = 1000;

/// A worker's wish for tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// Who asks: a name that no other worker has.
    pub worker: WorkerId,
    /// The queues that it serves.
    #[serde(default = "default_queues")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<orchestrator_core::schema::Name>, min_items = 1, max_items = 31))]
    pub queues: Vec<Arc<str>>,
    /// The handlers that it has.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<orchestrator_core::schema::Name>, min_items = 1, max_items = 32))]
    pub handlers: Vec<Arc<str>>,
    /// At most so many tasks.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1000))]
    pub slots: u32,
    /// How long to wait for the first of them, at most a minute.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(schema_with = wait))]
    pub wait: Option<Millis>,
    /// How long the leases hold without a heartbeat, from a second to an hour; 30s unless given.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(schema_with = ttl))]
    pub ttl: Option<Millis>,
}

/// The tasks that a worker got.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LeaseAnswer {
    /// The best first. None where the time was up.
    pub tasks: Vec<Leased>,
}

/// Leases that are to hold on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct HeartbeatRequest {
    /// The attempts.
    #[cfg_attr(feature = "schema", schema(max_items = 1000))]
    pub held: Vec<Held>,
    /// How long they hold from now on, from a second to an hour; 30s unless given.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(schema_with = ttl))]
    pub ttl: Option<Millis>,
}

/// What became of the leases, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HeartbeatAnswer {
    /// Until when each holds; one that is lost was cancelled, ran out or took too long: stop the work.
    pub beats: Vec<Beat>,
}

/// Attempts of which the worker wants to know whether they hold their leases.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LostRequest {
    /// The attempts.
    #[cfg_attr(feature = "schema", schema(max_items = 1000))]
    pub held: Vec<Held>,
}

/// Those that do not.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LostAnswer {
    /// They were cancelled, ran out or took too long: stop the work.
    pub lost: Vec<Held>,
}

/// Ends of attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SettleRequest {
    /// Each attempt and how it ended.
    #[cfg_attr(feature = "schema", schema(max_items = 1000))]
    pub outcomes: Vec<Ended>,
}

/// An attempt and how it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
}

/// What came of the ends, in the order of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SettleAnswer {
    /// Each is durable now.
    pub settled: Vec<Settled>,
}

/// An attempt that ended well.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CompleteRequest {
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
    /// The result.
    #[serde(default)]
    pub output: Json,
}

/// An attempt that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FailRequest {
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
    /// What went wrong, for people.
    pub message: String,
    /// Whether another attempt may end better.
    #[serde(default)]
    pub retryable: Option<bool>,
    /// The kind of error, where it is known more exactly.
    #[serde(default)]
    pub class: Option<ErrorClass>,
    /// Not before this span has passed.
    #[serde(default)]
    pub retry_after: Option<Millis>,
}

/// An attempt that is given back unharmed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
}

fn default_queues() -> Vec<Arc<str>> {
    vec!["default".into()]
}

fn one() -> u32 {
    1
}

#[cfg(feature = "schema")]
fn wait() -> utoipa::openapi::schema::Schema {
    orchestrator_core::schema::span_within("^([0-9]{1,4}ms|[1-5]?[0-9]s|1m)$", 0.0, 60.0)
}

#[cfg(feature = "schema")]
fn ttl() -> utoipa::openapi::schema::Schema {
    orchestrator_core::schema::span_within("^([1-9][0-9]{0,2}s|[1-5]?[1-9]m|1h)$", 1.0, 3600.0)
}
