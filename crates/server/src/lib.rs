//! The HTTP server: REST over the engine, and what is needed to run it as a service.
//!
//! It knows the engine and the store contract, never a backend. A request becomes a core type at the edge (`routes`), is carried out by
//! the engine, and is answered with the store's own views or with a [`Problem`]. Nothing is answered before it is durable.

mod app;
mod body;
mod etag;
mod events;
mod meters;
mod observe;
mod openapi;
mod parameters;
mod path;
mod probe;
mod problem;
mod request_id;
mod routes;
mod serve;

pub use app::{App, Shared};
pub use meters::{METERS, writable};
pub use observe::{Observed, Place, Scrape, observed};
pub use openapi::document as openapi;
pub use problem::Problem;
pub use routes::{metrics_page, router, side};
pub use serve::{Drained, Patience, serve, serve_with};
