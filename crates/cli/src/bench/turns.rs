//! What is compared takes turns, so that each has its share of what else goes on in the machine and of what a load leaves
//! behind.

use super::SendArgs;
use super::load::Bench;
use super::raw::Bare;
use super::report::Report;
use crate::error::CliResult;
use orchestrator_core::Millis;
use orchestrator_engine::Retention;
use std::time::Duration;

/// So often all of them have their turn.
const ROUNDS: u64 = 4;

/// Something that takes jobs in and ends them.
pub enum Side<'a> {
    /// The bare database.
    Bare(&'a Bare),
    /// A store, with so many workers.
    Store(&'a Bench, u64),
    /// The same while what has ended is being removed.
    Forgetting(&'a Bench, u64),
}

/// How long jobs took.
#[derive(Default)]
pub struct Took {
    /// How many they were.
    pub jobs: u64,
    /// The time until all were taken in.
    pub submit: Duration,
    /// The time until all had ended.
    pub process: Duration,
}

impl Side<'_> {
    /// Submits so many, then runs them all.
    pub async fn cycle(&self, jobs: u64, send: &SendArgs) -> CliResult<Took> {
        let (submit, process) = match self {
            Side::Bare(bare) => bare.cycle(jobs, send).await?,
            Side::Store(bench, workers) => bench.cycle(jobs, send.batch, *workers).await?,
            Side::Forgetting(bench, workers) => {
                let retention = bench.engine.start_retention(nothing_stays());
                let took = bench.cycle(jobs, send.batch, *workers).await?;
                if let Some(retention) = retention {
                    retention.stop().await;
                }
                took
            }
        };
        Ok(Took { jobs, submit, process })
    }
}

/// A retention that always has something to do.
pub fn nothing_stays() -> Retention {
    Retention { completed: Some(Millis(0)), every: Millis(10), ..Retention::default() }
}

impl Took {
    /// Both times.
    pub fn whole(&self) -> Duration {
        self.submit + self.process
    }

    /// Reports it. Answers with jobs per second over both.
    pub fn tell(&self, name: &str, report: &mut Report) -> f64 {
        report.rate(format!("{name} submit"), self.jobs, self.submit);
        report.rate(format!("{name} process"), self.jobs, self.process);
        report.rate(format!("{name} whole"), self.jobs, self.whole())
    }
}

/// Runs so many jobs on each side, a part of them at a time; every other round goes backwards.
pub async fn in_turn<const N: usize>(sides: [(Side<'_>, u64); N], send: &SendArgs) -> CliResult<[Took; N]> {
    let mut took = std::array::from_fn(|_| Took::default());
    for round in 0..ROUNDS {
        for turn in 0..N {
            let side = if round % 2 == 0 { turn } else { N - 1 - turn };
            let ((side, jobs), sum): (_, &mut Took) = (&sides[side], &mut took[side]);
            // Whatever does not divide falls to the last.
            let part = if round + 1 == ROUNDS { jobs - sum.jobs } else { jobs / ROUNDS };
            let more = side.cycle(part, send).await?;
            sum.jobs += more.jobs;
            sum.submit += more.submit;
            sum.process += more.process;
        }
    }
    Ok(took)
}
