//! The ceiling of a durable endpoint: axum, a JSON body, one row in SQLite with group commit, and nothing else.

use super::super::raw::sqlite::{Insert, writer};
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::Output;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

#[derive(Deserialize)]
struct Job {
    handler: String,
    payload: serde_json::Value,
}

#[derive(Serialize)]
struct Created {
    id: i64,
    state: &'static str,
}

/// Serves until it is killed. Its first line tells the address.
pub async fn serve(file: &Path, out: &Output) -> CliResult {
    let failed = |error: std::io::Error| CliError::new(Exit::Error, "bench", error.to_string());
    let (mailbox, _writer) = writer(file)?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    super::super::child::tell_address(out, address);
    let router = Router::new().route("/jobs", post(create)).with_state(mailbox);
    let stopping = tokio_util::sync::CancellationToken::new();
    orchestrator_server::serve(listener, router, stopping, std::time::Duration::ZERO).await;
    Ok(Exit::Ok)
}

async fn create(
    State(mailbox): State<mpsc::UnboundedSender<Insert>>,
    Json(job): Json<Job>,
) -> Result<(StatusCode, Json<Created>), StatusCode> {
    std::hint::black_box(&job.handler);
    let (reply, stored) = oneshot::channel();
    let lost = |_| StatusCode::SERVICE_UNAVAILABLE;
    mailbox.send((job.payload.to_string(), reply)).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let id = stored.await.map_err(lost)?;
    Ok((StatusCode::CREATED, Json(Created { id, state: "queued" })))
}
