//! What an answer says that is none: `application/problem+json` (RFC 9457), everywhere the same.

use serde::{Deserialize, Serialize};

/// Why a request was not carried out. Nothing has changed then, unless the code is `outcome_unknown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Always `about:blank`: the code tells the kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// The status.
    pub status: u16,
    /// A stable word for programs.
    pub code: String,
    /// What went wrong and what to do, for people.
    pub detail: String,
    /// Every field that is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Field>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The request's id, as in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// One thing that is wrong with a request, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Field {
    /// A JSON pointer into the body, or the name of a parameter or header.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}
