//! What those types look like on the wire that write themselves as texts or as any JSON. All others derive their schema
//! from their fields; here is what no derive could know.

use crate::id::{JobId, TaskId, WorkerId};
use crate::json::Json;
use crate::limit::{LimitKey, Limits, MAX_KEY_LEN, MAX_KEYS};
use crate::spec::MAX_NAME;
use crate::time::{Millis, Timestamp};
use serde_json::json;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AnyOf, AnyOfBuilder, Array, KnownFormat, Object, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

/// The longest span in seconds, as [`Millis`] reads it.
const LONGEST: f64 = Millis::MAX_SECONDS as f64;
/// A job id, as it stands in a path.
const JOB_ID: &str = "019a8f00-0000-7000-8000-000000000001";

fn text(description: &str, example: &str) -> utoipa::openapi::schema::ObjectBuilder {
    Object::builder()
        .schema_type(SchemaType::Type(Type::String))
        .description(Some(description))
        .examples([json!(example)])
}

impl ToSchema for JobId {}
impl PartialSchema for JobId {
    fn schema() -> RefOr<Schema> {
        let text = text("The id of a job: a UUID of version 7, so ids sort by the time of creation.", JOB_ID);
        text.format(Some(SchemaFormat::Custom("uuid".to_owned()))).into()
    }
}

impl ToSchema for TaskId {}
impl PartialSchema for TaskId {
    fn schema() -> RefOr<Schema> {
        let text = text(
            "The id of a task: that of its job, a slash and its place in the job.",
            &format!("{JOB_ID}/0"),
        );
        text.pattern(Some("^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}/[0-9]{1,9}$")).into()
    }
}

impl ToSchema for WorkerId {}
impl PartialSchema for WorkerId {
    fn schema() -> RefOr<Schema> {
        let text = text("The name of a worker, which no other has.", "downloads-1");
        text.min_length(Some(1)).max_length(Some(200)).pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]+$")).into()
    }
}

/// The name of a queue, a handler, a flow or a tenant, which are plain texts in the code.
pub struct Name;

impl ToSchema for Name {}
impl PartialSchema for Name {
    fn schema() -> RefOr<Schema> {
        let text = text("A name: letters, digits, `.`, `_`, `-` and `/`.", "default");
        text.max_length(Some(MAX_NAME)).pattern(Some("^[A-Za-z0-9._/-]+$")).into()
    }
}

impl ToSchema for Timestamp {}
impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let text = text("A moment, as RFC 3339 writes it.", "2026-11-15T06:00:00.25Z");
        text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).into()
    }
}

impl ToSchema for Millis {
    fn name() -> Cow<'static, str> {
        "Span".into()
    }
}
impl PartialSchema for Millis {
    fn schema() -> RefOr<Schema> {
        span("^[0-9]{1,9}(ms|s|m|h|d)([0-9]{1,9}(ms|s|m|h|d))*$", 0.0, LONGEST).into()
    }
}

/// A span of time that is longer than nothing, for fields where zero makes no sense. It may be null.
pub fn some_span() -> Schema {
    span_within("^[1-9][0-9]{0,8}(ms|s|m|h|d)([0-9]{1,9}(ms|s|m|h|d))*$", 0.001, LONGEST)
}

/// A span of time that is written by a pattern, or told in seconds, of which there are bounds. It may be null.
pub fn span_within(pattern: &str, least: f64, most: f64) -> Schema {
    let null = Object::builder().schema_type(SchemaType::Type(Type::Null));
    Schema::AnyOf(span(pattern, least, most).item(null).build())
}

fn span(pattern: &str, least: f64, most: f64) -> AnyOfBuilder {
    let written = text("As people write it: `500ms`, `30s`, `5m`, `24h`, `7d`, `1h30m`.", "30s");
    let seconds = Object::builder()
        .schema_type(SchemaType::Type(Type::Number))
        .description(Some("In seconds. Answers never hold it so."))
        .minimum(Some(least))
        .maximum(Some(most));
    let spans = AnyOf::builder().description(Some("A span of time."));
    spans.item(written.pattern(Some(pattern))).item(seconds)
}

impl ToSchema for Json {}
impl PartialSchema for Json {
    fn schema() -> RefOr<Schema> {
        let any = Object::builder().schema_type(SchemaType::AnyValue);
        any.description(Some(format!("Any JSON, nested at most {} levels deep.", Json::MAX_DEPTH))).into()
    }
}

impl ToSchema for LimitKey {}
impl PartialSchema for LimitKey {
    fn schema() -> RefOr<Schema> {
        let text = text("What a limit counts by: its kind, a colon and a name.", "host:example.org");
        text.max_length(Some(MAX_KEY_LEN)).pattern(Some(r"^[a-z0-9_-]+:[^\x00-\x1f\x7f-\x9f]+$")).into()
    }
}

impl ToSchema for Limits {}
impl PartialSchema for Limits {
    fn schema() -> RefOr<Schema> {
        let keys = Array::builder().items(LimitKey::schema()).max_items(Some(MAX_KEYS));
        keys.description(Some("The keys under which a task runs, in order.")).into()
    }
}
