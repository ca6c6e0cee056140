//! Jobs: take in, list, look at, steer.

mod batch;
mod create;
mod list;
mod look;
mod multipart;
mod old;
mod steer;
mod stuck;
mod tasks;

use crate::app::Shared;
use axum::extract::DefaultBodyLimit;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

pub fn routes(max_document: usize) -> OpenApiRouter<Shared> {
    let jobs = routes!(create::create, list::list).layer(DefaultBodyLimit::max(max_document));
    let batch = routes!(batch::create).layer(DefaultBodyLimit::max(max_document));
    OpenApiRouter::new()
        .routes(jobs)
        .routes(batch)
        .routes(routes!(batch::control))
        .routes(routes!(stuck::list))
        .routes(routes!(old::removable))
        .routes(routes!(old::forget))
        .routes(routes!(look::job, steer::delete))
        .routes(routes!(look::progress))
        .routes(routes!(look::wait))
        .routes(routes!(look::document))
        .routes(routes!(steer::pause))
        .routes(routes!(steer::resume))
        .routes(routes!(steer::cancel))
        .routes(routes!(steer::recover))
        .routes(routes!(steer::retry))
        .routes(routes!(steer::rerun))
        .routes(routes!(tasks::list))
        .routes(routes!(tasks::one))
        .routes(routes!(tasks::items))
}
