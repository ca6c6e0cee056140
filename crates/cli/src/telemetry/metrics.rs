//! The metrics of this process: the recorder, the page, and the port of their own on which they may be shown.

use crate::output::Output;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use orchestrator_engine::Facts;
use orchestrator_server::{Scrape, Shared, writable};
use orchestrator_store::Store;
use orchestrator_store::meter::{Kind, Meter};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::interval;

/// Histograms are put in order so often, also while nobody looks at them: else what is recorded would pile up.
const UPKEEP: Duration = Duration::from_secs(5);

/// Every metric that there is.
pub fn all() -> impl Iterator<Item = &'static Meter> {
    let tables =
        [orchestrator_store::meter::METERS, orchestrator_worker::METERS, orchestrator_server::METERS];
    tables.into_iter().chain(orchestrator_engine::METERS.iter().copied()).flatten()
}

/// The recorder of this process.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts to record, before anything is opened that wants to; to be called inside a Tokio runtime.
    pub fn start(out: Output) -> Option<Metrics> {
        let mut builder = PrometheusBuilder::new();
        for meter in all() {
            if let Kind::Histogram(scale) = meter.kind {
                let name = Matcher::Full(meter.name.to_owned());
                builder = match builder.set_buckets_for_metric(name, scale.buckets()) {
                    Ok(builder) => builder,
                    Err(error) => return refused(out, &error.to_string()),
                };
            }
        }
        let handle = match builder.install_recorder() {
            Ok(handle) => handle,
            Err(error) => return refused(out, &error.to_string()),
        };
        all().for_each(Meter::describe);
        let upkeep = handle.clone();
        tokio::spawn(async move {
            let mut turns = interval(UPKEEP);
            loop {
                turns.tick().await;
                upkeep.run_upkeep();
            }
        });
        Some(Metrics(handle))
    }

    /// The page: what this process recorded, and the facts of a store and of a server where there are such.
    pub fn page(&self, store: Option<Arc<dyn Store>>, server: Option<Shared>) -> Scrape {
        let facts = store.map(|store| Arc::new(Facts::new(store)));
        let handle = self.0.clone();
        Arc::new(move || {
            let (facts, server, handle) = (facts.clone(), server.clone(), handle.clone());
            Box::pin(async move {
                let facts = async {
                    if let Some(facts) = facts {
                        facts.refresh().await;
                    }
                };
                let probe = async {
                    if let Some(server) = server {
                        writable(server.probe.look().await.trouble.is_none());
                    }
                };
                // At once: a store that is away takes its time to say so.
                tokio::join!(facts, probe);
                handle.render()
            })
        })
    }
}

fn refused(out: Output, error: &str) -> Option<Metrics> {
    out.note(format!("no metrics are recorded: {error}"));
    None
}

/// Binds the port of the metrics, if one is wanted. One that cannot be had stops nothing: work goes on.
pub async fn listen(address: &str, out: Output) -> Option<TcpListener> {
    if address.is_empty() {
        return None;
    }
    match TcpListener::bind(address).await {
        Ok(listener) => {
            if let Ok(bound) = listener.local_addr() {
                out.note(format!("metrics on http://{bound}/metrics"));
            }
            Some(listener)
        }
        Err(error) => {
            tracing::warn!(%error, address, "no metrics on a port of their own");
            out.note(format!("no metrics on {address}: {error}"));
            None
        }
    }
}
