//! A job as a form: `job` holds its fields as JSON, `document` a file that is kept with it. Any other part is a field of the
//! job by its name, as JSON or else as text, so that a form of a few words does without JSON.

use crate::body::{Patience, in_time, plain, unreadable};
use crate::problem::Problem;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::StatusCode;
use orchestrator_core::{Document, FieldError};
use orchestrator_engine::JobFields;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What a document is that does not say.
const UNKNOWN: &str = "application/octet-stream";
/// The most parts that are looked at.
const MOST_PARTS: usize = 100;

/// A job as a form. Fields of the job may also be parts of their own.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only described; the parts are read one by one")]
pub struct JobForm {
    /// The fields of the job, as JSON.
    job: Option<JobFields>,
    /// A file that is kept with the job.
    #[schema(value_type = Option<String>, content_media_type = "application/octet-stream")]
    document: Option<Vec<u8>>,
}

/// Reads a form.
pub async fn read(request: Request) -> Result<(JobFields, Option<Document>), Problem> {
    plain(request.headers())?;
    let broken = |status: StatusCode, text: &str| unreadable(status, text);
    let patience = Patience::of(&request);
    let form = Multipart::from_request(request, &()).await;
    let form = form.map_err(|error| broken(error.status(), &error.body_text()))?;
    in_time(patience, parts(form)).await?
}

async fn parts(mut form: Multipart) -> Result<(JobFields, Option<Document>), Problem> {
    let broken =
        |error: axum::extract::multipart::MultipartError| unreadable(error.status(), &error.body_text());
    let (mut fields, mut document) = (Map::new(), None);
    for _ in 0..MOST_PARTS {
        let Some(part) = form.next_field().await.map_err(broken)? else {
            let text = Value::Object(fields).to_string();
            let fields = JobFields::parse(&text).map_err(|problem| Problem::fields(&[problem]))?;
            return Ok((fields, document));
        };
        let name = part.name().unwrap_or_default().to_owned();
        if name == "document" {
            let media_type = part.content_type().unwrap_or(UNKNOWN).to_owned();
            let file_name = part.file_name().filter(|name| !name.is_empty()).unwrap_or("document").to_owned();
            let content = part.bytes().await.map_err(broken)?;
            document = Some(Document::new(file_name, media_type, content.as_ref()));
            continue;
        }
        let text = part.text().await.map_err(broken)?;
        if name != "job" {
            fields.insert(name, serde_json::from_str(&text).unwrap_or(Value::String(text)));
            continue;
        }
        match serde_json::from_str(&text) {
            Ok(Value::Object(given)) => fields.extend(given),
            Ok(_) => return Err(Problem::fields(&[FieldError::new("job", "must be an object")])),
            Err(error) => return Err(Problem::fields(&[FieldError::new("job", error.to_string())])),
        }
    }
    Err(Problem::new(
        StatusCode::BAD_REQUEST,
        "too_many_parts",
        format!("a form has at most {MOST_PARTS} parts"),
    ))
}
