//! Lists jobs, page by page.

use crate::app::{App, Shared};
use crate::openapi::answers::{BadRequest, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{OriginalUri, RawQuery, State};
use axum::http::Uri;
use axum::http::header::LINK;
use axum::response::{IntoResponse, Response};
use orchestrator_api::jobs::JobPage;
use orchestrator_core::schema::Name;
use orchestrator_core::{JobId, JobState, Json as Document, TaskState, Timestamp};
use orchestrator_store::{JobFilter, LineFilter, Page};
use std::str::FromStr;
use utoipa::ToSchema;

/// How many jobs a page has unless it is asked for more or fewer.
const USUAL: u32 = 50;
/// The most.
const MOST: u32 = 500;

/// Which end of the list comes first.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum Order {
    Newest,
    Oldest,
}

impl FromStr for Order {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "newest" => Ok(Order::Newest),
            "oldest" => Ok(Order::Oldest),
            _ => Err("is newest or oldest"),
        }
    }
}

/// Lists jobs
///
/// The newest first unless `order` says otherwise. Every filter that is given must hold. `context.NAME=VALUE` asks for those
/// whose context has the field with the value, as often as needed; the value is JSON, or else a text.
#[utoipa::path(
    get, path = "/jobs", operation_id = "list_jobs", tag = tag::JOBS,
    params(
        ("state" = Option<Vec<JobState>>, Query, description = "Only in one of these states, parted by commas.", style = Form, explode = false),
        ("flow" = Option<Name>, Query, description = "Only of this flow."),
        ("queue" = Option<Name>, Query, description = "Only with a task of this queue."),
        ("handler" = Option<Name>, Query, description = "Only with a task of this handler."),
        ("task_state" = Option<TaskState>, Query, description = "Only with a task in this state."),
        ("recoverable" = Option<bool>, Query, description = "Only those that ended badly and may be recovered."),
        ("created_from" = Option<Timestamp>, Query, description = "Only those that were taken in at this moment or later."),
        ("created_before" = Option<Timestamp>, Query, description = "Only those that were taken in before this moment."),
        ("order" = inline(Option<Order>), Query, description = "Which end comes first."),
        ("limit" = Option<u32>, Query, description = "How many at most, 50 unless given.", minimum = 1, maximum = 500),
        ("cursor" = Option<JobId>, Query, description = "The `next` of the page before."),
    ),
    responses(
        (status = 200, description = "A page.", body = JobPage,
            headers(("Link" = String, description = "The next page, as `rel=\"next\"`, if there may be one."))),
        BadRequest, Unavailable,
    ),
)]
pub async fn list(
    State(app): State<Shared>,
    OriginalUri(uri): OriginalUri,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let filter = filter(&mut parameters);
    let limit: u32 = parameters.one("limit").unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        parameters.wrong("limit", format!("from 1 to {MOST}"));
    }
    let after: Option<JobId> = parameters.one("cursor");
    if let Some(prefix) = parameters.one::<String>("id_prefix") {
        return by_prefix(&app, parameters, query.as_deref(), prefix, limit).await;
    }
    parameters.done()?;
    let jobs = app.engine.store().list(filter, Page { after, limit }).await?;
    let next = (jobs.len() == limit as usize).then(|| jobs.last().map(|job| job.id)).flatten();
    let link = next.map(|next| [(LINK, format!("<{}>; rel=\"next\"", next_page(&uri, next)))]);
    Ok((link, Json(JobPage { jobs, next })).into_response())
}

/// Jobs whose id starts with a text, the newest first: for ids that people shorten. There are no pages of them, and no other
/// filters beside it.
async fn by_prefix(
    app: &App,
    mut parameters: Parameters,
    query: Option<&str>,
    prefix: String,
    limit: u32,
) -> Result<Response, Problem> {
    let given = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    if given.into_iter().any(|(name, _)| !matches!(&*name, "id_prefix" | "limit")) {
        parameters.wrong("id_prefix", "takes only limit beside it");
    }
    let prefix = prefix.to_ascii_lowercase();
    if prefix.len() > 36 || !prefix.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        parameters.wrong("id_prefix", "is not the start of an id");
    }
    parameters.done()?;
    let store = app.engine.store();
    let mut jobs = vec![];
    for id in store.ids(prefix, limit).await? {
        // One that was removed meanwhile is left out.
        jobs.extend(store.job(id).await?);
    }
    Ok(Json(JobPage { jobs, next: None }).into_response())
}

fn filter(parameters: &mut Parameters) -> JobFilter {
    let context = parameters.behind("context.");
    JobFilter {
        line: LineFilter { queue: parameters.name("queue"), handler: parameters.name("handler") },
        task: parameters.one::<TaskState>("task_state"),
        states: parameters.list("state"),
        flow: parameters.name("flow"),
        recoverable: parameters.one("recoverable").unwrap_or(false),
        created_from: parameters.one("created_from"),
        created_before: parameters.one("created_before"),
        context: context.into_iter().map(|(field, value)| (field.into(), value_of(value))).collect(),
        newest_first: matches!(parameters.one("order"), None | Some(Order::Newest)),
    }
}

/// A value as people write it in a query: JSON where it is JSON, else a text.
fn value_of(text: String) -> Document {
    Document::parse(text.as_str()).unwrap_or_else(|_| serde_json::Value::from(text).into())
}

/// The same query from another cursor on.
fn next_page(uri: &Uri, next: JobId) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if name != "cursor" {
            query.append_pair(&name, &value);
        }
    }
    query.append_pair("cursor", &next.to_string());
    format!("{}?{}", uri.path(), query.finish())
}
