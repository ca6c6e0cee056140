//! What reaches the log. Its level is a matter of lines: the spans of requests and attempts, which give a line its ids, are
//! seen at every level, or a warning would not say whose it is.

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Filter};

/// Whether it is a span of a request or an attempt.
fn is_ours(what: &Metadata<'_>) -> bool {
    what.is_span() && what.target().starts_with("orchestrator") && *what.level() <= LevelFilter::INFO
}

/// Our spans, and nothing else.
pub struct Spans;

impl<S> Filter<S> for Spans {
    fn enabled(&self, what: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        is_ours(what)
    }

    fn callsite_enabled(&self, what: &'static Metadata<'static>) -> Interest {
        if is_ours(what) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }
}

/// Lines by their level, with our spans or without.
pub struct Wanted {
    /// Which lines.
    pub events: EnvFilter,
    /// Whether our spans are seen at every level.
    pub spans: bool,
}

impl<S: Subscriber> Filter<S> for Wanted {
    fn enabled(&self, what: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        (self.spans && is_ours(what)) || Filter::<S>::enabled(&self.events, what, context)
    }

    fn callsite_enabled(&self, what: &'static Metadata<'static>) -> Interest {
        if self.spans && is_ours(what) {
            return Interest::always();
        }
        Filter::<S>::callsite_enabled(&self.events, what)
    }

    fn event_enabled(&self, event: &Event<'_>, context: &Context<'_, S>) -> bool {
        Filter::<S>::event_enabled(&self.events, event, context)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let events = Filter::<S>::max_level_hint(&self.events)?;
        Some(if self.spans { events.max(LevelFilter::INFO) } else { events })
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        Filter::<S>::on_new_span(&self.events, attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        Filter::<S>::on_record(&self.events, id, values, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        Filter::<S>::on_enter(&self.events, id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        Filter::<S>::on_exit(&self.events, id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        Filter::<S>::on_close(&self.events, id, context);
    }
}
