//! Limits: what there is, and changes while work runs.

use crate::app::Shared;
use crate::body::{JsonBody, read};
use crate::openapi::answers::{BadBody, BadRequest, NotFound, Unavailable};
use crate::openapi::tag;
use crate::path::Path;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use orchestrator_api::limits::{LimitChangeFields, LimitChanges, LimitList};
use orchestrator_core::{FieldError, LimitKey, LimitRule};
use orchestrator_store::{LimitChange, LimitView, RuleOrigin};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most changes of one request.
const MOST_CHANGES: usize = 1000;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list, change_many)).routes(routes!(one, set, strike))
}

/// Lists limits
///
/// Every rule, and every key in use.
#[utoipa::path(
    get, path = "/limits", operation_id = "list_limits", tag = tag::LIMITS,
    responses((status = 200, description = "The limits, in order of their keys.", body = LimitList), Unavailable),
)]
async fn list(State(app): State<Shared>) -> Result<Json<LimitList>, Problem> {
    Ok(Json(LimitList { limits: app.engine.store().limits().await? }))
}

/// Changes several limits
///
/// Writes and strikes rules, all of them together.
#[utoipa::path(
    patch, path = "/limits", operation_id = "change_limits", tag = tag::LIMITS,
    request_body(content = LimitChanges, example = json!({ "changes": [{ "key": "host:example.org", "rule": { "concurrency": 2 } }] })),
    responses((status = 204, description = "They hold for the next lease on."), BadBody, Unavailable),
)]
async fn change_many(State(app): State<Shared>, JsonBody(body): JsonBody) -> Result<StatusCode, Problem> {
    let LimitChanges { changes } = read(&body)?;
    if changes.len() > MOST_CHANGES {
        let message = format!("at most {MOST_CHANGES}, not {}", changes.len());
        return Err(Problem::fields(&[FieldError::new("changes", message)]));
    }
    let change = |LimitChangeFields { key, rule }| LimitChange { key, rule, origin: RuleOrigin::Operator };
    app.engine.store().set_limits(changes.into_iter().map(change).collect()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Shows a limit
///
/// The rule and the use of one key. A key that nobody uses and that has no rule of its own is under the default of its kind.
#[utoipa::path(
    get, path = "/limits/{key}", operation_id = "get_limit", tag = tag::LIMITS,
    params(("key" = LimitKey, Path, description = "The key, or the default of a kind such as `host:*`.")),
    responses((status = 200, description = "The limit.", body = LimitView), BadRequest, Unavailable),
)]
async fn one(State(app): State<Shared>, Path(text): Path<String>) -> Result<Json<LimitView>, Problem> {
    look(&app, &key(&text)?).await
}

/// Sets a limit
///
/// The rule holds from the next lease on; what runs may finish.
#[utoipa::path(
    put, path = "/limits/{key}", operation_id = "set_limit", tag = tag::LIMITS,
    params(("key" = LimitKey, Path, description = "The key, or the default of a kind such as `host:*`.")),
    request_body(content = LimitRule, example = json!({ "concurrency": 4, "rate": { "count": 10, "per": "1s", "burst": 20 } })),
    responses((status = 200, description = "The limit as it is now.", body = LimitView), BadBody, Unavailable),
)]
async fn set(
    State(app): State<Shared>,
    Path(text): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<LimitView>, Problem> {
    let key = key(&text)?;
    let rule: LimitRule = read(&body)?;
    change(&app, &key, Some(rule)).await?;
    look(&app, &key).await
}

/// Strikes a limit
///
/// The default of its kind holds for the key again.
#[utoipa::path(
    delete, path = "/limits/{key}", operation_id = "strike_limit", tag = tag::LIMITS,
    params(("key" = LimitKey, Path, description = "The key, or the default of a kind such as `host:*`.")),
    responses((status = 204, description = "It has no rule of its own any more."), BadRequest, NotFound, Unavailable),
)]
async fn strike(State(app): State<Shared>, Path(text): Path<String>) -> Result<StatusCode, Problem> {
    let key = key(&text)?;
    let has_rule =
        app.engine.store().limits().await?.iter().any(|view| view.key == key && view.origin.is_some());
    if !has_rule {
        return Err(Problem::new(StatusCode::NOT_FOUND, "no_limit", format!("{key} has no rule of its own")));
    }
    change(&app, &key, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn change(app: &Shared, key: &LimitKey, rule: Option<LimitRule>) -> Result<(), Problem> {
    let change = LimitChange { key: key.clone(), rule, origin: RuleOrigin::Operator };
    Ok(app.engine.store().set_limits(vec![change]).await?)
}

/// A key that nobody uses and that has no rule of its own is under the default of its kind.
async fn look(app: &Shared, key: &LimitKey) -> Result<Json<LimitView>, Problem> {
    let views = app.engine.store().limits().await?;
    let of = |key: &LimitKey| views.iter().find(|view| view.key == *key);
    let default = || of(&key.default_key()).map(|view| view.rule).unwrap_or_default();
    let view = of(key).cloned();
    Ok(Json(view.unwrap_or_else(|| LimitView {
        key: key.clone(),
        rule: default(),
        origin: None,
        running: 0,
    })))
}

fn key(text: &str) -> Result<LimitKey, Problem> {
    text.parse().map_err(|error: orchestrator_core::BadLimit| Problem::parameter("key", error.to_string()))
}
