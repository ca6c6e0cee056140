//! What came of an attempt.

use crate::json::Json;
use crate::limit::Limits;
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of error ended an attempt. The class decides whether a retry makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The attempt took longer than it may.
    Timeout,
    /// No answer: connection refused or cut, name not resolved, TLS trouble.
    Network,
    /// The other side asked to slow down (429).
    RateLimited,
    /// The other side is out of order for now (502, 503, 504).
    Unavailable,
    /// The handler itself said that it may work later.
    Transient,
    /// The input is wrong; it will not get better.
    Validation,
    /// What was asked for does not exist (404).
    NotFound,
    /// The handler itself said that it is final.
    Permanent,
    /// A defect in the handler: it panicked, broke its protocol or is not known here.
    Defect,
}

impl ErrorClass {
    /// Whether another attempt may end better.
    pub const fn is_retryable(self) -> bool {
        use ErrorClass::*;
        match self {
            Timeout | Network | RateLimited | Unavailable | Transient => true,
            Validation | NotFound | Permanent | Defect => false,
        }
    }

    /// Every class.
    pub const ALL: [ErrorClass; 9] = [
        ErrorClass::Timeout,
        ErrorClass::Network,
        ErrorClass::RateLimited,
        ErrorClass::Unavailable,
        ErrorClass::Transient,
        ErrorClass::Validation,
        ErrorClass::NotFound,
        ErrorClass::Permanent,
        ErrorClass::Defect,
    ];

    /// The class that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        ErrorClass::ALL.into_iter().find(|class| class.as_str() == word)
    }

    /// The class of an HTTP status that is no success.
    pub const fn of_http_status(status: u16) -> ErrorClass {
        match status {
            408 => ErrorClass::Timeout,
            429 => ErrorClass::RateLimited,
            502..=504 => ErrorClass::Unavailable,
            400 | 413 | 415 | 422 => ErrorClass::Validation,
            404 | 410 => ErrorClass::NotFound,
            _ => ErrorClass::Permanent,
        }
    }

    /// The word for the class in every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorClass::Timeout => "timeout",
            ErrorClass::Network => "network",
            ErrorClass::RateLimited => "rate_limited",
            ErrorClass::Unavailable => "unavailable",
            ErrorClass::Transient => "transient",
            ErrorClass::Validation => "validation",
            ErrorClass::NotFound => "not_found",
            ErrorClass::Permanent => "permanent",
            ErrorClass::Defect => "defect",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A failed attempt: what went wrong, and when it may be worth trying again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Failure {
    /// What kind of error.
    pub class: ErrorClass,
    /// For people: what happened and what to do.
    pub message: String,
    /// The earliest moment, from now, that the other side wants to be asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Millis>,
}

/// The longest error message that is kept; the rest is cut off.
pub const MAX_MESSAGE: usize = 4096;

impl Failure {
    /// A failure of a class. The message is cut at [`MAX_MESSAGE`] bytes.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        // PostgreSQL has no character zero, and an error must not be lost over it.
        let mut message = message.into().replace('\0', "\u{fffd}");
        if message.len() > MAX_MESSAGE {
            let cut = (0..=MAX_MESSAGE - 4).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
            message.truncate(cut);
            message.push_str(" ...");
        }
        Failure { class, message, retry_after: None }
    }

    /// A failure that may pass.
    pub fn transient(message: impl Into<String>) -> Self {
        Failure::new(ErrorClass::Transient, message)
    }

    /// A failure that will not pass.
    pub fn permanent(message: impl Into<String>) -> Self {
        Failure::new(ErrorClass::Permanent, message)
    }

    /// Not before this span has passed.
    pub fn retry_after(mut self, span: Millis) -> Self {
        self.retry_after = Some(span);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Done, with a result.
    Completed(Json),
    /// There was nothing to do, with the reason or a result.
    Skipped(Json),
    /// An error.
    Failed(Failure),
    /// Given back unharmed, as in a graceful shutdown: costs nothing, keeps its place.
    Released,
    /// One leg is done, go on with another: what was learned is kept for the next attempt, and
    /// the next leg runs under its own limits. Costs nothing, keeps its place.
    Continue(Leg),
    /// The lease ran out without a word from the worker. Only a store says this.
    Lost,
}

/// The next leg of a task that goes on after [`Outcome::Continue`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Leg {
    /// Handed to the next attempt as it is.
    pub checkpoint: Json,
    /// The limits under which the next leg runs.
    pub limits: Limits,
    /// How long to wait before it.
    pub delay: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_http() {
        for (status, retryable) in [
            (429, true),
            (502, true),
            (503, true),
            (504, true),
            (408, true),
            (404, false),
            (400, false),
            (500, false),
            (401, false),
        ] {
            assert_eq!(ErrorClass::of_http_status(status).is_retryable(), retryable, "{status}");
        }
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let failure = Failure::transient("é".repeat(4000));
        assert!(failure.message.len() <= MAX_MESSAGE);
        assert!(failure.message.ends_with(" ..."));
        assert_eq!(Failure::transient("a\0b").message, "a\u{fffd}b");
    }
}
