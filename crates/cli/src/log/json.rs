//! The log as JSON: one flat object per line, whatever the values hold. What the spans around a line know (the request, the
//! job, the attempt) stands beside its own fields.

use super::Stderr;
use crate::telemetry::spans::{Gathered, Visitor};
use serde_json::{Map, Value};
use std::io::Write;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// What every line has first.
const FIRST: [&str; 4] = ["timestamp", "level", "target", "message"];
/// What only a trace needs of a span.
const NOT_LOGGED: [&str; 2] = ["span_id", "parent_id"];

/// Makes lines, and hands them to a writer.
pub struct JsonLog<W>(pub W);

/// Writes a line to stderr.
pub fn to_stderr(line: &str) {
    // Nobody may be reading; there is nowhere else to say it.
    let _ = Stderr.write_all(line.as_bytes());
}

impl<S: Subscriber + for<'a> LookupSpan<'a>, W: Fn(&str) + 'static> Layer<S> for JsonLog<W> {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Map::new();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(gathered) = span.extensions().get::<Gathered>() {
                // From the innermost span outwards: what is nearer to the line wins.
                for (name, value) in &gathered.fields {
                    fields.entry(name.as_str()).or_insert_with(|| value.clone());
                }
            }
        }
        event.record(&mut Visitor(&mut fields));
        (self.0)(&line(event.metadata().level().as_str(), event.metadata().target(), fields));
    }
}

/// What people would be told, as lines of the log.
pub fn notes(text: &str) -> String {
    let plain = console::strip_ansi_codes(text);
    let words = plain.lines().map(str::trim).filter(|text| !text.is_empty());
    let fields = |text: &str| Map::from_iter([("message".to_owned(), Value::from(text))]);
    words.map(|text| line("INFO", "orchestrator", fields(text))).collect()
}

fn line(level: &str, target: &str, mut fields: Map<String, Value>) -> String {
    let message = fields.remove("message").unwrap_or_else(|| Value::from(""));
    let first = [Value::from(format!("{:.6}", jiff::Timestamp::now())), level.into(), target.into(), message];
    let mut text = String::with_capacity(256);
    let pairs = FIRST.into_iter().zip(&first);
    let rest = fields.iter().map(|(name, value)| (name.as_str(), value));
    let rest = rest.filter(|(name, _)| !FIRST.contains(name) && !NOT_LOGGED.contains(name));
    for (name, value) in pairs.chain(rest) {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(&value.to_string());
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::filter::{Spans, Wanted};
    use crate::telemetry::spans::Gather;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn a_warning_says_whose_it_is_at_every_level() {
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let written = lines.clone();
        let write = move |line: &str| written.lock().unwrap().push(serde_json::from_str(line).unwrap());
        let wanted = Wanted { events: EnvFilter::new("warn"), spans: true };
        let log = tracing_subscriber::registry()
            .with(Gather.with_filter(Spans))
            .with(JsonLog(write).with_filter(wanted));
        tracing::subscriber::with_default(log, || {
            let outer = tracing::info_span!("request", request_id = "r", job = "outer").entered();
            let inner = tracing::info_span!("attempt", job = "j", correlation_id = tracing::field::Empty);
            inner.record("correlation_id", "c");
            inner.in_scope(|| tracing::warn!(job = %"own", "trouble {}", 7));
            tracing::info!("not at this level");
            drop(outer);
            tracing::warn!("outside");
        });
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        let field = |name: &str| lines[0][name].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            ["request_id", "job", "correlation_id", "message"].map(field),
            ["r", "own", "c", "trouble 7"]
        );
        assert!(lines[1].get("request_id").is_none());
    }

    #[test]
    fn a_line_is_one_line_whatever_it_holds() {
        let wild = "a\r\n\u{1b}[31m\"b\"\u{0}";
        let fields = Map::from_iter([
            ("message".to_owned(), Value::from(wild)),
            ("job".to_owned(), Value::from("j")),
            ("level".to_owned(), Value::from("a field of ours must not stand twice")),
        ]);
        let text = line("INFO", "orchestrator", fields);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert!(text.starts_with("{\"timestamp\":\"20"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\r'));
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&read["message"], &read["level"], &read["job"]),
            (&wild.into(), &"INFO".into(), &"j".into())
        );
    }
}
