//! Takes connections and serves them, until the server is to stop: then nothing new is taken, and what is under way may
//! finish.

use crate::body;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// So much is kept in memory of what a client sends, or does not take, before it has to wait.
const BUFFER: usize = 64 << 10;
/// After an error of the listener, such as no descriptors left, the next try waits so long.
const BREATH: Duration = Duration::from_millis(100);

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything that was under way has finished.
    Whole,
    /// The grace was over before.
    Cut,
}

/// How long a client may take to say what it wants. Then it is cut off.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the headers of a request, also of the next one on a connection.
    pub headers: Duration,
    /// For its body.
    pub body: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { headers: Duration::from_secs(15), body: body::Patience::default().0 }
    }
}

/// Serves until `stopping` fires, then waits for what is under way, at most `grace`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stopping: CancellationToken,
    grace: Duration,
) -> Drained {
    serve_with(listener, router, stopping, grace, Patience::default()).await
}

/// The same with another patience.
pub async fn serve_with(
    listener: TcpListener,
    router: Router,
    stopping: CancellationToken,
    grace: Duration,
    patience: Patience,
) -> Drained {
    let router = router.layer(Extension(body::Patience(patience.body)));
    let under_way = GracefulShutdown::new();
    loop {
        let stream = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            stream = listener.accept() => stream,
        };
        match stream {
            Ok((stream, _)) => take(stream, &router, &under_way, patience),
            Err(error) => rest(&error).await,
        }
    }
    drop(listener);
    match timeout(grace, under_way.shutdown()).await {
        Ok(()) => Drained::Whole,
        Err(_) => Drained::Cut,
    }
}

fn take(stream: TcpStream, router: &Router, under_way: &GracefulShutdown, patience: Patience) {
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.headers)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let connection = under_way.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended early");
        }
    });
}

/// A connection that broke before it was taken says nothing about the next. Else something is short, which passes.
async fn rest(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::warn!(%error, "cannot take a connection, trying again");
    sleep(BREATH).await;
}
