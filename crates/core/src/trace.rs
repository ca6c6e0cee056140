//! The place of a piece of work in a trace, as W3C's `traceparent` writes it.
//!
//! A job carries the place of the request that submitted it ([`crate::Meta::traceparent`]); each of its attempts is a child of
//! that. Ids are made elsewhere: randomness is an argument here.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::str::FromStr;

/// One span of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace, which all that follows from one cause shares.
    pub trace: NonZeroU128,
    /// The span.
    pub span: NonZeroU64,
    /// Whether the spans of the trace are kept.
    pub sampled: bool,
}

impl TraceContext {
    /// The first span of a trace. Ids are never zero, so a random zero becomes one.
    pub fn root(trace: u128, span: u64, sampled: bool) -> Self {
        TraceContext {
            trace: NonZeroU128::new(trace).unwrap_or(NonZeroU128::MIN),
            span: NonZeroU64::new(span).unwrap_or(NonZeroU64::MIN),
            sampled,
        }
    }

    /// A span that this one brought about.
    pub fn child(self, span: u64) -> Self {
        TraceContext { span: NonZeroU64::new(span).unwrap_or(NonZeroU64::MIN), ..self }
    }

    /// The trace as 32 hexadecimal digits.
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The span as 16 hexadecimal digits.
    pub fn span_id(self) -> String {
        format!("{:016x}", self.span)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// A text that is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no traceparent (expected such as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01)")]
pub struct BadTrace;

impl FromStr for TraceContext {
    type Err = BadTrace;
    fn from_str(text: &str) -> Result<Self, BadTrace> {
        let mut parts = text.split('-');
        let mut part = |length: usize| {
            let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            parts.next().filter(|part| part.len() == length && part.bytes().all(digit)).ok_or(BadTrace)
        };
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        // A later version may say more behind what every version says; ff is none.
        if version == "ff" || (version == "00" && parts.next().is_some()) {
            return Err(BadTrace);
        }
        let trace = u128::from_str_radix(trace, 16).ok().and_then(NonZeroU128::new).ok_or(BadTrace)?;
        let span = u64::from_str_radix(span, 16).ok().and_then(NonZeroU64::new).ok_or(BadTrace)?;
        let flags = u8::from_str_radix(flags, 16).map_err(|_| BadTrace)?;
        Ok(TraceContext { trace, span, sampled: flags & 1 == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn reads_back_what_it_writes() {
        let context: TraceContext = GIVEN.parse().unwrap();
        assert_eq!(context.to_string(), GIVEN);
        assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        let child = context.child(7);
        assert_eq!((child.trace, child.span_id()), (context.trace, "0000000000000007".to_owned()));
        assert_eq!(TraceContext::root(0, 0, false).to_string().parse(), Ok(TraceContext::root(1, 1, false)));
    }

    #[test]
    fn later_versions_may_say_more() {
        let later = format!("01{}-more", &GIVEN[2..]);
        assert_eq!(later.parse(), GIVEN.parse::<TraceContext>());
    }

    #[test]
    fn what_is_none_is_refused() {
        let bad = [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ];
        for text in bad {
            assert_eq!(text.parse::<TraceContext>(), Err(BadTrace), "{text}");
        }
    }
}
