//! `bench events`: how soon an event reaches many listeners of one server, and what they cost it in memory.
//!
//! The server is a process of its own, from the same program, so that its memory is its own. Clients here do as little as they can: a
//! connection each, and a look at the clock for each event.

mod wire;

use super::EventsArgs;
use super::child::Server;
use super::place::Place;
use super::report::Report;
use crate::descriptors;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::output::Output;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// An event that does not arrive for so long is lost.
const PATIENCE: Duration = Duration::from_secs(30);
/// Idle clients are left alone for so long before the memory is looked at.
const SETTLE: Duration = Duration::from_secs(2);
/// Connections that are opened at the same time.
const AT_ONCE: usize = 64;

/// Measures.
pub async fn run(args: &EventsArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    let needed = args.clients + 100;
    if let Some(most) = descriptors::raise().filter(|most| *most < needed) {
        let message = format!("{} clients need {needed} open files, and {most} are allowed", args.clients);
        return Err(CliError::new(Exit::Error, "bench", message).hint("raise the limit with `ulimit -n`"));
    }
    let server = Server::serve(place, "events").await?;
    report.memory_of("memory of the server, nobody listens", server.pid());
    out.note(format!("{} clients connect", args.clients));
    let mut listeners = listen(server.address, args).await?;
    sleep(SETTLE).await;
    report.memory_of(&format!("memory of the server, {} listen", args.clients), server.pid());
    out.note(format!("{} jobs, one every {} ms", args.jobs, args.every));
    let answered = submit(server.address, args).await?;
    let mut samples = Vec::with_capacity(answered.len() * args.clients as usize);
    while let Some(arrived) = listeners.join_next().await {
        let arrived = arrived.map_err(|error| failed(error.to_string()))??;
        samples.extend(arrived.iter().zip(&answered).map(|(at, sent)| at.saturating_duration_since(*sent)));
    }
    report.latency("from the submit's answer to a client", samples);
    report.memory_of("memory of the server, after the events", server.pid());
    server.end().await
}

/// Opens all connections; each gives back when every event arrived.
async fn listen(address: SocketAddr, args: &EventsArgs) -> CliResult<JoinSet<CliResult<Vec<Instant>>>> {
    let (opened, mut all_opened) = watch::channel(0);
    let mut listeners = JoinSet::new();
    let jobs = args.jobs as usize;
    for n in 0..args.clients {
        let opened = opened.clone();
        listeners.spawn(async move {
            let mut events = wire::listen(address).await.map_err(|error| failed(error.to_string()))?;
            opened.send_modify(|n| *n += 1);
            let mut arrived = Vec::with_capacity(jobs);
            while arrived.len() < jobs {
                // The first may have to wait until all others are there.
                let line =
                    timeout(PATIENCE * 10, events.next()).await.map_err(|_| failed("an event is lost"))?;
                line.map_err(|error| failed(error.to_string()))?;
                arrived.push(Instant::now());
            }
            Ok(arrived)
        });
        let enough = (n + 1).saturating_sub(AT_ONCE as u64);
        wait_for(&mut all_opened, enough).await?;
    }
    wait_for(&mut all_opened, args.clients).await?;
    Ok(listeners)
}

async fn wait_for(opened: &mut watch::Receiver<u64>, number: u64) -> CliResult<()> {
    match timeout(PATIENCE, opened.wait_for(|n| *n >= number)).await {
        Ok(Ok(_)) => Ok(()),
        _ => Err(failed("the clients cannot connect")),
    }
}

/// Submits jobs that nobody runs, one after the other, so that each is one event. Gives back when each was answered.
async fn submit(address: SocketAddr, args: &EventsArgs) -> CliResult<Vec<Instant>> {
    let mut line = wire::Line::open(address).await.map_err(|error| failed(error.to_string()))?;
    let mut answered = vec![];
    for _ in 0..args.jobs {
        let status =
            line.post("/jobs", r#"{"handler":"noop"}"#).await.map_err(|error| failed(error.to_string()))?;
        if status != 201 {
            return Err(failed(format!("POST /jobs answered {status}")));
        }
        answered.push(Instant::now());
        sleep(Duration::from_millis(args.every)).await;
    }
    Ok(answered)
}

fn failed(what: impl Into<String>) -> CliError {
    CliError::new(Exit::Error, "bench", what.into())
}
