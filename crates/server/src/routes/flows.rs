//! The registry of flows.

use crate::app::Shared;
use crate::body::{Body, JsonBody, read};
use crate::openapi::answers::{BadBody, BadRequest, NotFound, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::path::Path;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use orchestrator_api::flows::{
    Applied, AppliedResult, FlowChangeFields, FlowChanges, FlowList, FlowsChanged,
};
use orchestrator_api::problem::Field;
use orchestrator_core::FieldError;
use orchestrator_core::flow::Plan;
use orchestrator_core::schema::Name;
use orchestrator_flowfile::{FlowFile, Format, Report};
use orchestrator_store::{FlowChange, FlowChanged, FlowView};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most changes of one request.
const MOST_CHANGES: usize = 100;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list, apply))
        .routes(routes!(validate))
        .routes(routes!(change))
        .routes(routes!(one, retire))
        .routes(routes!(versions))
}

/// Lists flows
///
/// The current version of every flow.
#[utoipa::path(
    get, path = "/flows", operation_id = "list_flows", tag = tag::FLOWS,
    responses((status = 200, description = "The flows, in order of their names.", body = FlowList), Unavailable),
)]
async fn list(State(app): State<Shared>) -> Result<Json<FlowList>, Problem> {
    Ok(Json(FlowList { flows: app.engine.store().flows(None).await? }))
}

/// Shows a flow
///
/// Its current version, or the one asked for.
#[utoipa::path(
    get, path = "/flows/{name}", operation_id = "get_flow", tag = tag::FLOWS,
    params(
        ("name" = Name, Path, description = "Its name."),
        ("version" = Option<u32>, Query, description = "Which version; the current one unless given."),
    ),
    responses((status = 200, description = "The flow.", body = FlowView), BadRequest, NotFound, Unavailable),
)]
async fn one(
    State(app): State<Shared>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<FlowView>, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let version: Option<u32> = parameters.one("version");
    parameters.done()?;
    app.engine.store().flow(name.as_str().into(), version).await?.map(Json).ok_or_else(|| unknown(&name))
}

/// Lists the versions of a flow
#[utoipa::path(
    get, path = "/flows/{name}/versions", operation_id = "list_flow_versions", tag = tag::FLOWS,
    params(("name" = Name, Path, description = "Its name.")),
    responses((status = 200, description = "Its versions, in order.", body = FlowList), BadRequest, NotFound, Unavailable),
)]
async fn versions(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<FlowList>, Problem> {
    let flows = app.engine.store().flows(Some(name.as_str().into())).await?;
    if flows.is_empty() { Err(unknown(&name)) } else { Ok(Json(FlowList { flows })) }
}

/// Applies a flow
///
/// Makes it the current one of its name. Jobs that run keep the version with which they started.
#[utoipa::path(
    post, path = "/flows", operation_id = "apply_flow", tag = tag::FLOWS,
    request_body(
        description = "The definition.",
        content(
            (ref("#/components/schemas/Flow") = "application/json", example = json!({ "flow": "greet", "tasks": { "hello": { "handler": "sleep", "with": { "for": "1s" } } } })),
            (ref("#/components/schemas/Flow") = "application/yaml"),
            (ref("#/components/schemas/Flow") = "application/toml"),
        ),
    ),
    responses(
        (status = 201, description = "A new version.", body = Applied),
        (status = 200, description = "A version with this content was there, and is the current one now.", body = Applied),
        BadBody, Unavailable,
    ),
)]
async fn apply(State(app): State<Shared>, headers: HeaderMap, Body(body): Body) -> Result<Response, Problem> {
    let plan = Arc::new(plan(&headers, &body)?);
    let (version, result) = match app.engine.apply(plan.clone()).await? {
        FlowChanged::Created(version) => (version, AppliedResult::Created),
        FlowChanged::Restored(version) => (version, AppliedResult::Restored),
        FlowChanged::Unchanged(version) => (version, AppliedResult::Unchanged),
        FlowChanged::Retired | FlowChanged::NotFound => {
            return Err(Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "store",
                "the store answered something else",
            ));
        }
    };
    let status = if result == AppliedResult::Created { StatusCode::CREATED } else { StatusCode::OK };
    let applied = Applied { flow: plan.name().clone(), version, result, hash: plan.hash().clone() };
    Ok((status, Json(applied)).into_response())
}

/// Changes several flows
///
/// All of them together, or none where one is not valid.
#[utoipa::path(
    post, path = "/flows/changes", operation_id = "change_flows", tag = tag::FLOWS,
    request_body(content = FlowChanges, example = json!({ "changes": [{ "retire": "greet" }] })),
    responses((status = 200, description = "What came of each.", body = FlowsChanged), BadBody, Unavailable),
)]
async fn change(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<Json<FlowsChanged>, Problem> {
    let FlowChanges { changes } = read(&body)?;
    let (mut good, mut problems) = (vec![], vec![]);
    if changes.len() > MOST_CHANGES {
        problems.push(FieldError::new("changes", format!("at most {MOST_CHANGES}, not {}", changes.len())));
    }
    for (n, change) in changes.into_iter().enumerate() {
        match change {
            FlowChangeFields::Retire(name) => good.push(FlowChange::Retire(name)),
            FlowChangeFields::Apply(definition) => match Plan::from_text(definition.as_str()) {
                Ok(plan) => good.push(FlowChange::Apply(Arc::new(plan))),
                Err(found) => problems.extend(
                    found
                        .iter()
                        .map(|problem| FieldError::new(format!("changes.{n}.apply"), problem.to_string())),
                ),
            },
        }
    }
    if !problems.is_empty() {
        return Err(Problem::fields(&problems));
    }
    Ok(Json(FlowsChanged { results: app.engine.store().change_flows(good).await? }))
}

/// Checks a flow
///
/// Says everything that is wrong with it, each with line and column. Nothing is kept.
#[utoipa::path(
    post, path = "/flows/validate", operation_id = "validate_flow", tag = tag::FLOWS,
    request_body(
        description = "The definition.",
        content(
            (ref("#/components/schemas/Flow") = "application/json", example = json!({ "flow": "greet", "tasks": { "hello": { "handler": "sleep", "with": { "for": "1s" } } } })),
            (ref("#/components/schemas/Flow") = "application/yaml"),
            (ref("#/components/schemas/Flow") = "application/toml"),
        ),
    ),
    responses((status = 204, description = "Nothing is wrong with it."), BadBody),
)]
async fn validate(headers: HeaderMap, Body(body): Body) -> Result<StatusCode, Problem> {
    plan(&headers, &body)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Retires a flow
///
/// Takes it out of the registry. Its jobs go on.
#[utoipa::path(
    delete, path = "/flows/{name}", operation_id = "retire_flow", tag = tag::FLOWS,
    params(("name" = Name, Path, description = "Its name.")),
    responses((status = 204, description = "It is out of the registry."), BadRequest, NotFound, Unavailable),
)]
async fn retire(State(app): State<Shared>, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    let change = FlowChange::Retire(name.as_str().into());
    match app.engine.store().change_flows(vec![change]).await?.first() {
        Some(FlowChanged::Retired) => Ok(StatusCode::NO_CONTENT),
        _ => Err(unknown(&name)),
    }
}

/// Reads a definition: as JSON, YAML or TOML.
fn plan(headers: &HeaderMap, body: &Bytes) -> Result<Plan, Problem> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = match media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => Format::Json,
        "application/yaml" | "application/x-yaml" | "text/yaml" => Format::Yaml,
        "application/toml" => Format::Toml,
        other => {
            let detail = format!(
                "send the flow as application/json, application/yaml or application/toml, not as {other:?}"
            );
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
        }
    };
    let text = std::str::from_utf8(body)
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "broken_text", "the body is not UTF-8"))?;
    FlowFile::from_text("body", text, format).and_then(|file| file.plan()).map_err(|report| refused(&report))
}

/// Everything that is wrong with a definition, each with its line and column.
fn refused(report: &Report) -> Problem {
    let findings = report.findings();
    let errors = findings.iter().map(|finding| Field {
        pointer: format!("/{}", finding.path.replace(['.', '['], "/").replace(']', "")),
        message: format!("line {}, column {}: {}", finding.line, finding.column, finding.message),
    });
    let detail = match findings {
        [one] => one.to_string(),
        many => format!("{} errors in the flow", many.len()),
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_flow", detail).with_errors(errors.collect())
}

fn unknown(name: &str) -> Problem {
    let shown: String = name.chars().take(60).collect();
    Problem::new(
        StatusCode::NOT_FOUND,
        "no_flow",
        format!("there is no flow {shown:?}, or not in this version: GET /flows lists what there is"),
    )
}
