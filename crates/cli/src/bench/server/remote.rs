//! Workers that work for a server over HTTP, in small batches.

use super::super::Keys;
use super::super::child::Server;
use super::super::load::{Bench, failed, pool_config};
use super::super::place::Place;
use super::super::queue;
use super::super::report::Report;
use super::ServerArgs;
use crate::error::CliResult;
use crate::output::Output;
use orchestrator_client::{Client, RemoteSource, RemoteStore};
use orchestrator_core::WorkerId;
use orchestrator_engine::{Engine, EngineConfig};
use orchestrator_worker::{PoolConfig, Prefetch};
use std::sync::Arc;

/// So many workers at once, each with one message under way at a time: while one is answered, another is written.
const WORKERS: usize = 4;

/// Submits in batches, then leases, runs and settles in batches: all of it over HTTP.
pub async fn run(args: &ServerArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    out.note(format!("{WORKERS} remote workers, at most {} tasks in a message ...", args.tasks));
    let server = Server::serve(place, "remote").await?;
    let client = Client::new(&server.url()).map_err(failed)?;
    let store = RemoteStore::open(client.clone()).await.map_err(failed)?;
    let engine = Engine::new(Arc::new(store), EngineConfig::default());
    let (handlers, make) = queue::load(args.send.payload, Keys::None);
    let bench = Bench::new(engine, Arc::new(RemoteSource::new(client)), handlers, make);
    let submit = bench.submit(args.jobs, args.tasks, |job| job).await?;
    let pools = (0..WORKERS).map(|number| PoolConfig {
        worker: WorkerId::new(format!("bench-{number}")),
        // No message may hold more than it is said to.
        prefetch: Prefetch::OFF,
        ..pool_config(args.tasks)
    });
    let process = bench.process_with(args.jobs, pools.collect()).await?;
    report.rate("submit over HTTP", args.jobs, submit);
    report.task_rate("remote workers", args.jobs, process);
    report.task_rate("remote whole", args.jobs, submit + process);
    server.end().await
}
