//! Keeps the fields of our spans, for the JSON log and the traces.

use serde_json::{Map, Value};
use std::error::Error;
use std::fmt::Debug;
use std::time::SystemTime;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Gathers fields as they come.
pub struct Gather;

/// What is known of a span.
pub struct Gathered {
    /// Its fields.
    pub fields: Map<String, Value>,
    /// When it began.
    pub since: SystemTime,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Gather {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Map::new();
        attributes.record(&mut Visitor(&mut fields));
        span.extensions_mut().insert(Gathered { fields, since: SystemTime::now() });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(gathered) = span.extensions_mut().get_mut::<Gathered>() {
            values.record(&mut Visitor(&mut gathered.fields));
        }
    }
}

/// Writes fields down as JSON.
pub struct Visitor<'a>(pub &'a mut Map<String, Value>);

impl Visitor<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Visitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}").into());
    }
}
