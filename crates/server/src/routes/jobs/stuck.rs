//! Live jobs that do not move, and why they do not.

use crate::app::Shared;
use crate::openapi::answers::{BadRequest, Unavailable};
use crate::openapi::tag;
use crate::parameters::Parameters;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{RawQuery, State};
use orchestrator_core::Millis;
use orchestrator_engine::StuckJob;
use serde::Serialize;
use utoipa::ToSchema;

/// How long nothing must have moved, unless it is said.
const USUAL_SPAN: Millis = Millis::mins(10);
/// How many jobs are told unless more or fewer are asked for.
const USUAL: usize = 100;
/// The most.
const MOST: usize = 500;

/// The jobs, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct StuckJobs {
    jobs: Vec<StuckJob>,
}

/// Lists stuck jobs
///
/// Live jobs of which nothing has moved for a while, the oldest first, each with what it waits for.
#[utoipa::path(
    get, path = "/jobs/stuck", operation_id = "list_stuck_jobs", tag = tag::JOBS,
    params(
        ("older_than" = Option<Millis>, Query, description = "How long nothing has moved, 10m unless given."),
        ("limit" = Option<u32>, Query, description = "How many, 100 unless given.", minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "The jobs.", body = StuckJobs), BadRequest, Unavailable),
)]
pub async fn list(State(app): State<Shared>, RawQuery(query): RawQuery) -> Result<Json<StuckJobs>, Problem> {
    let mut parameters = Parameters::of(query.as_deref());
    let older_than = parameters.one("older_than").unwrap_or(USUAL_SPAN);
    if older_than.0 / 1000 > Millis::MAX_SECONDS {
        parameters.wrong("older_than", "is longer than thirty years");
    }
    let limit = parameters.one("limit").unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        parameters.wrong("limit", format!("from 1 to {MOST}"));
    }
    parameters.done()?;
    Ok(Json(StuckJobs { jobs: app.engine.stuck(older_than, limit).await? }))
}
