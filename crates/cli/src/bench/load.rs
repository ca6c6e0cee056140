//! A store under load: the parts that the scenarios are made of.

use super::place::Place;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use orchestrator_core::{NewJob, WorkerId};
use orchestrator_engine::{Engine, EngineConfig, Waited};
use orchestrator_store::{Settled, Submitted};
use orchestrator_worker::pool::{OnSettled, Pool, PoolConfig};
use orchestrator_worker::{Registry, WorkSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Submits that are under way at once when a load is sent in batches.
const IN_FLIGHT: usize = 4;
/// A pool that settles nothing for so long will not come to an end.
const STUCK: Duration = Duration::from_secs(60);
/// The largest output of a task: room for the list of the largest fan-out.
const MAX_OUTPUT: usize = 16 << 20;

/// Makes the `n`-th job of a load.
pub type MakeJob = Box<dyn Fn(u64) -> NewJob + Send + Sync>;

/// A store with an engine on it, and the load for it.
pub struct Bench {
    /// The engine.
    pub engine: Engine,
    source: Arc<dyn WorkSource>,
    handlers: Registry,
    make: MakeJob,
    next: AtomicU64,
}

impl Bench {
    /// Opens a new store.
    pub async fn open(place: &Place, name: &str, handlers: Registry, make: MakeJob) -> CliResult<Bench> {
        let engine = Engine::new(place.store(name).await?, EngineConfig::default());
        let source = engine.source();
        Ok(Bench::new(engine, source, handlers, make))
    }

    /// An engine, and where the tasks of its jobs are handed out.
    pub fn new(engine: Engine, source: Arc<dyn WorkSource>, handlers: Registry, make: MakeJob) -> Bench {
        Bench { engine, source, handlers, make, next: AtomicU64::new(0) }
    }

    /// The next job of the load.
    pub fn job(&self) -> NewJob {
        (self.make)(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Submits `jobs` jobs in batches, changed by `with`.
    pub async fn submit(&self, jobs: u64, batch: u64, with: fn(NewJob) -> NewJob) -> CliResult<Duration> {
        let start = Instant::now();
        let mut under_way = tokio::task::JoinSet::new();
        let mut sent = 0;
        while sent < jobs {
            let size = batch.min(jobs - sent);
            let group: Vec<NewJob> = (0..size).map(|_| with(self.job())).collect();
            sent += size;
            let engine = self.engine.clone();
            under_way.spawn(async move { engine.submit(group).await });
            if under_way.len() == IN_FLIGHT {
                joined(under_way.join_next().await)?;
            }
        }
        while let Some(answer) = under_way.join_next().await {
            joined(Some(answer))?;
        }
        Ok(start.elapsed())
    }

    /// Submits one job per call from many callers.
    pub async fn submit_by_callers(self: &Arc<Self>, callers: u64, each: u64) -> CliResult<Duration> {
        let start = Instant::now();
        let mut under_way = tokio::task::JoinSet::new();
        for _ in 0..callers {
            let bench = self.clone();
            under_way.spawn(async move {
                for _ in 0..each {
                    let job = bench.job();
                    bench.engine.submit(vec![job]).await?;
                }
                Ok(vec![])
            });
        }
        while let Some(answer) = under_way.join_next().await {
            joined(Some(answer))?;
        }
        Ok(start.elapsed())
    }

    /// Runs `jobs` jobs to their end on a pool of workers.
    pub async fn process(&self, jobs: u64, workers: u64) -> CliResult<Duration> {
        self.process_with(jobs, vec![pool_config(workers)]).await
    }

    /// Runs `jobs` jobs to their end on pools side by side.
    pub async fn process_with(&self, jobs: u64, pools: Vec<PoolConfig>) -> CliResult<Duration> {
        let left = Arc::new(AtomicU64::new(jobs));
        let done = Arc::new(Notify::new());
        let on_settled: OnSettled = {
            let (left, done) = (left.clone(), done.clone());
            Arc::new(move |report| {
                let ended = matches!(report.settled, Settled::Applied { job_ended: true, .. });
                if ended && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    done.notify_one();
                }
            })
        };
        let start = Instant::now();
        let started = |config| {
            let config = PoolConfig { on_settled: Some(on_settled.clone()), ..config };
            Pool::start(self.source.clone(), self.handlers.clone(), config)
        };
        let pools: Vec<Pool> = pools.into_iter().map(started).collect();
        until_done(&pools, &done).await?;
        let took = start.elapsed();
        for pool in pools {
            pool.stop().await;
        }
        Ok(took)
    }

    /// Submits so many, then runs them all. Answers with the time of both parts.
    pub async fn cycle(&self, jobs: u64, batch: u64, workers: u64) -> CliResult<(Duration, Duration)> {
        Ok((self.submit(jobs, batch, |job| job).await?, self.process(jobs, workers).await?))
    }

    /// Submits one job at a time and waits for its end, with idle workers.
    pub async fn one_by_one(&self, times: u32, workers: u64) -> CliResult<Vec<Duration>> {
        let pool = Pool::start(self.source.clone(), self.handlers.clone(), pool_config(workers));
        let mut samples = vec![];
        for _ in 0..times {
            let job = self.job();
            let start = Instant::now();
            let submitted = self.engine.submit(vec![job]).await.map_err(failed)?;
            let ended =
                self.engine.wait(submitted[0].id(), Some(Duration::from_secs(30))).await.map_err(failed)?;
            if !matches!(ended, Waited::Ended(_)) {
                return Err(CliError::new(Exit::TimedOut, "bench", "a job did not end within 30 s"));
            }
            samples.push(start.elapsed());
        }
        pool.stop().await;
        Ok(samples)
    }
}

/// A pool of so many workers.
pub fn pool_config(workers: u64) -> PoolConfig {
    let config = PoolConfig::new(WorkerId::new("bench"));
    PoolConfig { max_workers: workers as usize, max_output: MAX_OUTPUT, ..config }
}

/// Waits for the last job, but not for ever: a load that stands still is an error to be seen.
async fn until_done(pools: &[Pool], done: &Notify) -> CliResult<()> {
    let settled = || pools.iter().map(|pool| pool.stats().settled()).sum::<u64>();
    let mut before = settled();
    while tokio::time::timeout(STUCK, done.notified()).await.is_err() {
        let settled = settled();
        if settled == before {
            let message = format!("no task ended within {} s", STUCK.as_secs());
            return Err(CliError::new(Exit::TimedOut, "bench", message));
        }
        before = settled;
    }
    Ok(())
}

type Answer = Result<Vec<Submitted>, orchestrator_engine::SubmitError>;

fn joined(answer: Option<Result<Answer, tokio::task::JoinError>>) -> CliResult<()> {
    match answer {
        Some(Ok(Err(error))) => Err(failed(error)),
        Some(Err(error)) => Err(failed(error)),
        Some(Ok(Ok(_))) | None => Ok(()),
    }
}

/// A benchmark that cannot go on.
pub fn failed(error: impl std::error::Error) -> CliError {
    CliError::new(Exit::Error, "bench", format!("the benchmark failed: {error}"))
}
