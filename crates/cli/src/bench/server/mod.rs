//! `bench server`: what a server process takes in and hands out over HTTP, beside a bare endpoint that stores as durably.

pub mod bare;
mod callers;
mod remote;

use super::SendArgs;
use super::child::Server;
use super::place::Place;
use super::queue::payload;
use super::report::Report;
use crate::error::CliResult;
use crate::output::Output;
use clap::{Args, ValueEnum};
use std::time::Duration;

/// What is compared takes turns so often.
const ROUNDS: u64 = 4;

/// Arguments of `bench server`.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// How jobs are sent.
    #[command(flatten)]
    pub send: SendArgs,
    /// Connections that are kept open, each with one request at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub connections: u64,
    /// How long requests are sent to each side
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SCENARIO")]
    pub only: Vec<Scenario>,
    /// How many jobs remote workers run
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub jobs: u64,
    /// How many tasks a message between worker and server holds at most
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub tasks: u64,
    /// Leave the bare endpoint out
    #[arg(long)]
    pub no_raw: bool,
}

/// What `bench server` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Jobs that are sent one by one, each on disk before its answer.
    Post,
    /// Jobs that are sent in batches, leased, run and settled by workers in another process.
    Remote,
}

/// Runs what is asked for.
pub async fn run(args: &ServerArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    let wanted = |scenario| args.only.is_empty() || args.only.contains(&scenario);
    if wanted(Scenario::Post) {
        post(args, place, out, report).await?;
    }
    if wanted(Scenario::Remote) {
        remote::run(args, place, out, report).await?;
    }
    Ok(())
}

/// One job per request, from many connections, in turn with the bare endpoint.
async fn post(args: &ServerArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    out.note(format!("POST /jobs from {} connections ...", args.connections));
    let ours = Server::serve(place, "post").await?;
    // The bare endpoint stores in a file on the same disk.
    let scratch = Place::dir(&args.send.dir)?;
    let bare = match args.no_raw {
        true => None,
        false => Some(Server::start(["bench", "endpoint", &scratch.db("endpoint")?]).await?),
    };
    let body = format!(r#"{{"handler":"noop","payload":{}}}"#, payload(args.send.payload));
    let time = Duration::from_secs(args.seconds) / ROUNDS as u32;
    let (mut samples, mut took) = (vec![], Duration::ZERO);
    let (mut bare_requests, mut bare_took) = (0, Duration::ZERO);
    for _ in 0..ROUNDS {
        let seen = callers::post(ours.address, "/jobs", &body, args.connections, time).await?;
        took += seen.took;
        samples.extend(seen.samples);
        if let Some(bare) = &bare {
            let seen = callers::post(bare.address, "/jobs", &body, args.connections, time).await?;
            bare_requests += seen.samples.len() as u64;
            bare_took += seen.took;
        }
    }
    let rate =
        report.rate(format!("POST /jobs, {} connections", args.connections), samples.len() as u64, took);
    report.latency("POST /jobs", samples);
    if let Some(bare) = bare {
        let ceiling = report.rate("bare endpoint", bare_requests, bare_took);
        report.ratio("POST /jobs / bare endpoint", rate, ceiling);
        bare.end().await?;
    }
    ours.end().await?;
    scratch.clean().await
}
