//! What several operations answer. Above all what a request can be refused with: an operation lists those that it can give,
//! and what each looks like is described once.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::IntoResponses;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

/// Each refusal: its name, its status and when it is given.
macro_rules! refusals {
    ($($(#[doc = $doc:literal])+ $name:ident = $status:literal,)+) => {
        $($(#[doc = $doc])+
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                BTreeMap::from([($status.to_string(), RefOr::Ref(Ref::from_response_name(stringify!($name))))])
            }
        })+

        /// All of them: name, status, and when it is given.
        const ALL: &[(&str, u16, &str)] = &[$((stringify!($name), $status, concat!($($doc),+)),)+];
    };
}

refusals! {
    /// The request cannot be read: a parameter, a header or the JSON is broken.
    BadRequest = 400,
    /// What the path names is not there.
    NotFound = 404,
    /// The body did not arrive in time.
    SlowBody = 408,
    /// It makes no sense in the state in which things are.
    Conflict = 409,
    /// Events that came after the one that is named are not kept any more.
    Gone = 410,
    /// The job is not any more as `If-Match` says.
    Changed = 412,
    /// The body is larger than the server takes.
    TooLarge = 413,
    /// The body is of a media type that is not taken here, or packed.
    Unsupported = 415,
    /// The request can be read, and some fields of it are wrong: all of them are told.
    Invalid = 422,
    /// The database cannot serve the request now. Nothing was done, unless the code is `outcome_unknown`.
    Unavailable = 503,
}

/// A body that cannot be taken, for whatever reason.
pub struct BadBody;

impl IntoResponses for BadBody {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let all = [BadRequest::responses(), SlowBody::responses(), TooLarge::responses()];
        let more = [Unsupported::responses(), Invalid::responses()];
        all.into_iter().chain(more).flatten().collect()
    }
}

/// A job that something was done to.
pub struct JobThen;

impl IntoResponses for JobThen {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let job = ContentBuilder::new().schema(Some(Ref::from_schema_name("JobView"))).build();
        let tag = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .description(Some("The tag of the job, for `If-Match`."))
            .build();
        let answer =
            ResponseBuilder::new().description("The job as it is then.").content("application/json", job);
        BTreeMap::from([("200".to_owned(), answer.header("ETag", tag).build().into())])
    }
}

/// What each looks like.
pub fn components() -> Value {
    let component = |(name, status, when): &(&str, u16, &str)| {
        let example = json!({
            "type": "about:blank",
            "title": axum::http::StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason()),
            "status": status,
            "code": code(*status),
            "detail": when.trim(),
            "retryable": *status == 503,
        });
        let content = json!({ "schema": { "$ref": "#/components/schemas/Problem" }, "example": example });
        let mut response =
            json!({ "description": when.trim(), "content": { "application/problem+json": content } });
        if *status == 503 {
            let header = json!({ "description": "After so many seconds it may work.", "schema": { "type": "integer" } });
            response["headers"] = json!({ "Retry-After": header });
        }
        ((*name).to_owned(), response)
    };
    Value::Object(ALL.iter().map(component).collect())
}

/// A code that goes with a status, for the example.
fn code(status: u16) -> &'static str {
    match status {
        400 => "bad_parameter",
        404 => "not_found",
        408 => "slow_body",
        409 => "wrong_state",
        410 => "events_gone",
        412 => "changed",
        413 => "too_large",
        415 => "unsupported_media_type",
        422 => "invalid",
        _ => "store_not_writable",
    }
}
