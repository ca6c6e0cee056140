//! Counts.

use crate::app::Shared;
use crate::openapi::answers::{BadRequest, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{RawQuery, State};
use orchestrator_api::stats::Daily;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many days are told unless more or fewer are asked for.
const USUAL: u32 = 7;
/// The most.
const MOST: u32 = 366;

pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(daily))
}

/// Counts jobs by day
///
/// The newest day first, by UTC. Days on which nothing happened are left out.
#[utoipa::path(
    get, path = "/stats/daily", operation_id = "count_by_day", tag = tag::SERVER,
    params(("days" = Option<u32>, Query, description = "How many days back, 7 unless given.", minimum = 1, maximum = 366)),
    responses((status = 200, description = "The days.", body = Daily), BadRequest, Unavailable),
)]
async fn daily(State(app): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<Daily>, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let days: u32 = parameters.one("days").unwrap_or(USUAL);
    if !(1..=MOST).contains(&days) {
        parameters.wrong("days", format!("from 1 to {MOST}"));
    }
    parameters.done()?;
    Ok(Json(Daily { days: app.engine.store().daily(days).await? }))
}
