//! Health.

use serde::{Deserialize, Serialize};

/// How the server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Health {
    /// How it is.
    pub status: Status,
    /// The program's version.
    pub version: String,
    /// How long it has been serving, in seconds.
    pub uptime_seconds: u64,
    /// How the store is.
    pub store: StoreHealth,
}

/// How the server is, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It takes work.
    Ok,
    /// It is about to end: what runs may finish, and nothing new is taken in.
    Draining,
    /// It cannot take work now.
    Unavailable,
}

/// How the store is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StoreHealth {
    /// Whether it takes writes.
    pub writable: bool,
    /// How long a small write took, in milliseconds.
    pub write_ms: f64,
    /// A stable word for what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What is wrong and what to do, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
