//! A queue under load: the parts that the scenarios are made of.

use super::Keys;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use orchestrator_core::{Json, Key, NewJob, TaskSpec, WorkerId};
use orchestrator_engine::{Engine, EngineConfig, Waited};
use orchestrator_store::Submitted;
use orchestrator_store_sqlite::{Options, SqliteStore};
use orchestrator_worker::pool::{Pool, PoolConfig};
use orchestrator_worker::{Registry, handler_fn};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Submits that are under way at once when a load is sent in batches.
const IN_FLIGHT: usize = 4;

/// A JSON payload of about `size` bytes.
pub fn payload(size: u64) -> String {
    let head = r#"{"kind":"noop","data":""#;
    let fill = (size as usize).saturating_sub(head.len() + 2);
    format!("{head}{}\"}}", "x".repeat(fill))
}

/// A store with an engine on it.
pub struct Bench {
    /// The engine.
    pub engine: Engine,
    spec: Arc<TaskSpec>,
    payload: Json,
    keys: Keys,
    next: AtomicU64,
}

impl Bench {
    /// Opens a file.
    pub fn open(path: &Path, payload_size: u64, keys: Keys) -> CliResult<Bench> {
        let store = SqliteStore::open(path, Options::default()).map_err(failed)?;
        Ok(Bench {
            engine: Engine::new(store, EngineConfig::default()),
            spec: Arc::new(TaskSpec::new("noop")),
            payload: Json::trusted(payload(payload_size)),
            keys,
            next: AtomicU64::new(0),
        })
    }

    /// The next job of the load.
    pub fn job(&self) -> NewJob {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let job = NewJob::with_spec(self.spec.clone()).payload(self.payload.clone());
        match self.keys {
            Keys::None => job,
            Keys::Sequential => job.key(Key::new(format!("document-{n:012}"))),
            // An odd factor visits every number once, in no order that an index would like.
            Keys::Random => job.key(Key::new(format!("{:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)))),
        }
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
        let left = Arc::new(AtomicU64::new(jobs));
        let done = Arc::new(Notify::new());
        let mut config = PoolConfig::new(WorkerId::new("bench"));
        config.max_workers = workers as usize;
        config.on_settled = Some({
            let (left, done) = (left.clone(), done.clone());
            Arc::new(move |_| {
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    done.notify_one();
                }
            })
        });
        let start = Instant::now();
        let pool = Pool::start(self.engine.source(), noop(), config);
        done.notified().await;
        let took = start.elapsed();
        pool.stop().await;
        Ok(took)
    }

    /// Submits one job at a time and waits for its end, with idle workers.
    pub async fn one_by_one(&self, times: u32, workers: u64) -> CliResult<Vec<Duration>> {
        let mut config = PoolConfig::new(WorkerId::new("bench"));
        config.max_workers = workers as usize;
        let pool = Pool::start(self.engine.source(), noop(), config);
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

fn noop() -> Registry {
    Registry::new()
        .with("noop", handler_fn(|_| async { orchestrator_core::Outcome::Completed(Json::null()) }))
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
