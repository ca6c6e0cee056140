//! The span around an attempt: every line that is logged while it runs says whose it is, and where a trace is kept, it is a
//! part of that.

use orchestrator_core::{Outcome, TraceContext};
use orchestrator_store::Leased;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;
use tracing::field::Empty;

/// The span of an attempt that begins. One that is part of a trace is a child of the submit; what the handler sends on as
/// `traceparent` is then the attempt itself.
pub(super) fn begin(leased: &mut Leased, traced: bool) -> Span {
    let span = tracing::info_span!(
        "attempt",
        job = %leased.task.job,
        task = %leased.name,
        attempt = leased.counters.attempt,
        handler = %leased.spec.handler,
        queue = %leased.spec.queue,
        correlation_id = Empty,
        trace_id = Empty,
        span_id = Empty,
        parent_id = Empty,
        outcome = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(id) = &leased.meta.correlation_id {
        span.record("correlation_id", &**id);
    }
    let submit = leased.meta.traceparent.as_ref().and_then(|text| text.parse::<TraceContext>().ok());
    if let Some(submit) = submit {
        span.record("trace_id", submit.trace_id());
        if traced && submit.sampled {
            let own = submit.child(fastrand::u64(..));
            span.record("span_id", own.span_id());
            span.record("parent_id", submit.span_id());
            Arc::make_mut(&mut leased.meta).traceparent = Some(own.to_string().into());
        }
    }
    span.in_scope(|| tracing::debug!("attempt started"));
    span
}

/// The attempt has ended, or was dropped without a word because its lease was lost.
pub(super) fn end(span: &Span, outcome: Option<&Outcome>, took: Duration) {
    let word = match outcome {
        Some(Outcome::Completed(_)) => "completed",
        Some(Outcome::Skipped(_)) => "skipped",
        Some(Outcome::Continue(_)) => "continued",
        Some(Outcome::Released) => "released",
        Some(Outcome::Failed(failure)) => failure.class.as_str(),
        Some(Outcome::Lost) | None => "lost",
    };
    span.record("outcome", word);
    span.in_scope(|| tracing::info!(took_ms = took.as_millis() as u64, "attempt ended"));
}
