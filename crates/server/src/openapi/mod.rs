//! The description of the API, made from the code: OpenAPI 3.1.
//!
//! A route exists only through its description, since routers are [`OpenApiRouter`]s that take handlers with [`routes!`]. A new one goes so:
//!
//! ```ignore
//! pub fn routes() -> OpenApiRouter<Shared> {
//!     // Handlers of one path stand together, one per method.
//!     OpenApiRouter::new().routes(routes!(one, strike)).routes(routes!(list))
//! }
//!
//! /// The summary is the first paragraph.
//! ///
//! /// What follows is the description.
//! #[utoipa::path(
//!     get, path = "/things/{id}", operation_id = "get_thing", tag = tag::THINGS,
//!     params(("id" = JobId, Path, description = "Which one.")),
//!     responses((status = 200, description = "The thing.", body = Thing), BadRequest, NotFound, Unavailable),
//! )]
//! async fn one(State(app): State<Shared>, Path(id): Path<String>) -> Result<Json<Thing>, Problem> { .. }
//! ```
//!
//! - `Thing` derives `utoipa::ToSchema` behind the feature `schema` of its crate; the doc comments of its fields are what people read.
//! - [`answers`] names what a request can be refused with; each stands for a status, and an operation lists all that it can give.
//! - The id of the request is added to every answer in [`finish`], with what else holds everywhere.
//! - `UPDATE_OPENAPI=1 cargo test -p orchestrator-server openapi` renews the committed document.
//!
//! [`OpenApiRouter`]: utoipa_axum::router::OpenApiRouter
//! [`routes!`]: utoipa_axum::routes

pub mod answers;
mod finish;

use serde_json::Value;
use utoipa::OpenApi;

/// By what the operations are grouped, in the order in which they are shown.
pub mod tag {
    /// Jobs.
    pub const JOBS: &str = "Jobs";
    /// Flows.
    pub const FLOWS: &str = "Flows";
    /// Queues.
    pub const QUEUES: &str = "Queues";
    /// Limits.
    pub const LIMITS: &str = "Limits";
    /// Dead letters.
    pub const DEAD_LETTERS: &str = "Dead letters";
    /// What changes, as it changes.
    pub const EVENTS: &str = "Events";
    /// The protocol of workers.
    pub const WORK: &str = "Workers";
    /// Counts and health.
    pub const SERVER: &str = "Server";
}

/// What stands around the operations.
#[derive(OpenApi)]
#[openapi(
    info(title = "orchestrator", description = include_str!("about.md"), license(name = "MIT", identifier = "MIT")),
    components(schemas(orchestrator_api::problem::Problem)),
    tags(
        (name = tag::JOBS, description = "Submit work, find it again, look at it and steer it."),
        (name = tag::FLOWS, description = "The registry of flows: definitions of jobs of several tasks, by version."),
        (name = tag::QUEUES, description = "What waits in which line; pause a line."),
        (name = tag::LIMITS, description = "How many tasks of a key may run at once, or start in a span."),
        (name = tag::DEAD_LETTERS, description = "Failed tasks that wait for somebody's decision."),
        (name = tag::EVENTS, description = "What changes, as it changes."),
        (name = tag::WORK, description = "The protocol of workers that run elsewhere, in any language: lease, heartbeat, complete."),
        (name = tag::SERVER, description = "Health, counts, and this description."),
    )
)]
struct Frame;

/// Where every router begins.
pub fn frame() -> utoipa::openapi::OpenApi {
    Frame::openapi()
}

/// The document, whole.
pub fn document() -> Value {
    let described = crate::routes::described(0).into_openapi();
    finish::finish(described)
}
