//! The server on a real store, asked through its router.

mod admin;
mod batch;
mod events;
mod health;
mod hostile;
mod jobs;
mod live;
mod metrics;
mod openapi;
mod schemathesis;
mod traces;
mod venv;
mod wire;
mod work;
mod world;
