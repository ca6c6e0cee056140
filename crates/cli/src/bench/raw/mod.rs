//! The ceilings: the bare database, writing the same rows with nothing around it.

pub mod postgres;
pub mod sqlite;

use super::place::Place;
use super::report::Report;
use super::{LoadArgs, SendArgs};
use crate::error::CliResult;
use crate::output::Output;
use std::time::{Duration, Instant};

/// A bare database.
pub enum Bare {
    /// A file.
    Sqlite(sqlite::Bare),
    /// A schema of a PostgreSQL database.
    Postgres(postgres::Bare),
}

impl Bare {
    /// Enqueues all, then leases and acknowledges in batches, a commit each. Answers with the time of both parts.
    pub async fn cycle(&self, jobs: u64, send: &SendArgs) -> CliResult<(Duration, Duration)> {
        match self {
            Bare::Sqlite(bare) => bare.cycle(jobs, send),
            Bare::Postgres(bare) => bare.cycle(jobs, send).await,
        }
    }

    async fn inserts(&self, load: &LoadArgs) -> CliResult<Duration> {
        match self {
            Bare::Sqlite(bare) => bare.inserts(load).await,
            Bare::Postgres(bare) => bare.inserts(load).await,
        }
    }
}

/// Measures both ceilings.
pub async fn run(load: &LoadArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<()> {
    cycle(load.jobs, &load.send, place, out, report).await?;
    inserts(load, place, out, report).await?;
    Ok(())
}

/// Enqueue all, then lease and acknowledge in batches, a commit each. Answers with jobs per second over the whole
/// cycle.
pub async fn cycle(
    jobs: u64,
    send: &SendArgs,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<f64> {
    out.note("raw: enqueue, lease and acknowledge on the bare database ...");
    let (enqueue, process) = place.bare("raw-cycle").await?.cycle(jobs, send).await?;
    report.rate("raw submit", jobs, enqueue);
    report.rate("raw process", jobs, process);
    Ok(report.rate("raw whole", jobs, enqueue + process))
}

/// The cycle over and over, in one table, for so long. Answers with jobs per second.
pub async fn soak(
    load: &LoadArgs,
    time: Duration,
    place: &Place,
    out: &Output,
    report: &mut Report,
) -> CliResult<f64> {
    out.note(format!("raw: the cycle over and over for {} s ...", time.as_secs()));
    let bare = place.bare("raw-soak").await?;
    let start = Instant::now();
    let mut jobs = 0;
    while start.elapsed() < time {
        bare.cycle(load.jobs, &load.send).await?;
        jobs += load.jobs;
    }
    Ok(report.rate(format!("raw soak of {} s", time.as_secs()), jobs, start.elapsed()))
}

/// Many callers, one insert per call. Answers with inserts per second.
pub async fn inserts(load: &LoadArgs, place: &Place, out: &Output, report: &mut Report) -> CliResult<f64> {
    out.note("raw: one insert per call with group commit ...");
    let took = place.bare("raw-inserts").await?.inserts(load).await?;
    let jobs = load.jobs / load.callers * load.callers;
    Ok(report.rate(format!("raw {} callers", load.callers), jobs, took))
}
