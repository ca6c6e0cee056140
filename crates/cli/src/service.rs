//! The server as a process: the store, the engine with all that sweeps and removes, workers where they are wanted, and an
//! end in order.

use crate::descriptors;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::Output;
use crate::reload::{self, Live, Reloader};
use crate::session::{Missing, Session};
use crate::signals::{Asked, Signals};
use crate::telemetry::metrics::{self, Metrics};
use crate::telemetry::traces;
use crate::workers;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_engine::Measured;
use orchestrator_server::{App, Drained, Observed, observed, router, serve, side};
use orchestrator_worker::Pool;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What a server is to do beside its API.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Whether tasks are run here.
    pub workers: bool,
    /// Whether the metrics have a port of their own, too.
    pub metrics_port: bool,
    /// Whether others may reach it although nobody has to show a key.
    pub allow_unauthenticated: bool,
}

/// Serves until a signal comes. `ready` is told the address once it listens.
pub async fn run(session: &Session, service: Service, ready: impl FnOnce(Output, SocketAddr)) -> CliResult {
    let mut signals = Signals::of_service()?;
    descriptors::raise();
    let out = session.out;
    let listener = listen(session, service.allow_unauthenticated).await?;
    let address =
        listener.local_addr().map_err(|error| CliError::new(Exit::Error, "io", error.to_string()))?;
    // Before anything is opened that records.
    let metrics = session.config.server.metrics.0.then(|| Metrics::start(out)).flatten();
    let store = session.open(Missing::Create).await?;
    let store = if metrics.is_some() { Measured::wrap(store) } else { store };
    workers::write_limits(session, &*store).await?;
    let engine = session.engine(store.clone());
    let sweeper = engine.start_sweeper();
    let retainer = engine.start_retention(session.retention());
    let pool = service.workers.then(|| {
        Pool::start(
            engine.source(),
            session.registry(),
            workers::pool_config(session, vec![DEFAULT_QUEUE.into()]),
        )
    });
    let stopping = CancellationToken::new();
    let intake = reload::new_jobs(session);
    let max_body = usize::try_from(session.config.server.max_body.0).unwrap_or(usize::MAX);
    let max_document = usize::try_from(session.config.server.max_document.0).unwrap_or(usize::MAX);
    let app = App::new(engine.clone(), intake, max_body, stopping.clone());
    let scrape = metrics.map(|metrics| metrics.page(Some(store.clone()), Some(app.clone())));
    let drain = Duration::from(session.config.server.drain);
    if let Some(scrape) = scrape.clone().filter(|_| service.metrics_port)
        && let Some(listener) = metrics::listen(&session.config.server.metrics_listen, out).await
    {
        tokio::spawn(serve(listener, side(app.clone(), scrape), stopping.clone(), drain));
    }
    let sample = traces::are_kept().then(|| f64::from(session.config.traces.sample) / 100.0);
    let router = observed(router(app.clone(), max_document), Observed { scrape, sample });
    let serving = tokio::spawn(serve(listener, router, stopping.clone(), drain));
    tracing::info!(%address, "serving");
    out.note(format!("listening on http://{address}"));
    ready(out, address);
    let mut live = Live { engine: Some(engine.clone()), retainer, app: Some(app) };
    let mut reloader = Reloader::new(session);
    let signal = loop {
        match signals.asked().await {
            Asked::End(signal) => break signal,
            Asked::Reload => reloader.reload(session, &mut live).await,
        }
    };
    out.note(format!("stopping: what is under way may take up to {} to finish", session.config.server.drain));
    stopping.cancel();
    let drained = tokio::select! {
        drained = serving => drained.ok(),
        _ = signals.next() => None,
    };
    if drained != Some(Drained::Whole) {
        out.note("some requests were cut off");
    }
    if let Some(pool) = &pool {
        workers::stop(pool, session.config.queue.grace, &mut signals, |text| out.note(text)).await;
    }
    sweeper.stop().await;
    if let Some(retainer) = live.retainer {
        retainer.stop().await;
    }
    store.close().await;
    Ok(signal.exit())
}

/// Binds the address of the configuration. One that others can reach needs a word that this is meant, as long as nobody
/// has to show a key.
async fn listen(session: &Session, allow_unauthenticated: bool) -> CliResult<TcpListener> {
    let address = &session.config.server.listen;
    let failed = |error: std::io::Error| {
        CliError::new(Exit::Error, "listen", format!("cannot listen on {address}: {error}"))
            .hint("another program may have the port: choose one with --listen, such as 127.0.0.1:8001")
    };
    let listener = TcpListener::bind(address.as_str()).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    if !bound.ip().is_loopback() && !allow_unauthenticated {
        let message = format!("{address} can be reached by others, and nobody would have to show a key");
        return Err(CliError::new(Exit::Usage, "unauthenticated", message)
            .hint("listen on 127.0.0.1, or say --allow-unauthenticated where something in front of it checks who comes"));
    }
    Ok(listener)
}
