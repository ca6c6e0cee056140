//! The queue inside a program of your own: a handler, ten jobs, a retry and a graceful end.
//!
//! `cargo run -p embed-example` works in a scratch file. Name a file to keep the jobs, and run it
//! twice: the second run finds every job done already.

#![expect(clippy::print_stdout, reason = "a program for people")]

use orchestrator_core::{Failure, Json, Key, Millis, NewJob, RetryPolicy, TaskSpec, WorkerId};
use orchestrator_engine::{Engine, EngineConfig};
use orchestrator_store_sqlite::{Options, SqliteStore};
use orchestrator_worker::{Pool, PoolConfig, Registry, Work, typed};
use serde_json::{Value, json};
use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};

/// Runs one attempt. A lost worker means another attempt, so outside effects must bear repetition.
async fn square(n: u64, work: Work) -> Result<Value, Failure> {
    if n == 7 && work.attempt() == 1 {
        return Err(Failure::transient("seven wants a second try"));
    }
    tokio::time::sleep(Duration::from_millis(20 * n)).await;
    Ok(json!({ "square": n * n }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let path = std::env::args_os().nth(1).map_or_else(|| scratch.path().join("queue.db"), PathBuf::from);

    // The store keeps the jobs, the engine takes them in, the sweeper finds what was lost.
    let store = SqliteStore::open(&path, Options::default())?;
    let engine = Engine::new(store.clone(), EngineConfig::default());
    let sweeper = engine.start_sweeper();

    // The pool leases tasks and runs them: at most four at once here.
    let registry = Registry::new().with("square", typed(square));
    let worker = WorkerId::new(format!("embed-{}", std::process::id()));
    let config = PoolConfig { max_workers: 4, ..PoolConfig::new(worker) };
    let pool = Pool::start(engine.source(), registry, config);

    // Ten jobs that share their rules. The key makes each submit safe to repeat.
    let retry = RetryPolicy { initial: Millis(50), ..RetryPolicy::with_retries(2) };
    let spec = Arc::new(TaskSpec::new("square").with_retry(retry));
    let job = |n: u64| {
        let key = Key::new(format!("square-{n}"));
        NewJob::with_spec(spec.clone()).key(key).payload(Json::from(json!(n)))
    };
    // All or none are taken in, and they are on disk when this answers.
    let submitted = engine.submit((1..=10).map(job).collect()).await?;

    for answer in &submitted {
        let waited = engine.wait(answer.id(), Some(Duration::from_secs(10))).await?;
        let job = waited.job();
        let (key, tries) = (job.key.as_deref().unwrap_or("-"), job.task().counters.attempt);
        let output = job.task().output.clone().unwrap_or_default();
        println!("{key:<10}  {}  tries {tries}  {output}", job.state);
    }

    // What still runs may finish; the rest would go back into line at no cost.
    let summary = pool.shutdown(Millis::secs(5)).await;
    sweeper.stop().await;
    store.close();
    println!("stopped: {} finished meanwhile, {} given back", summary.finished, summary.released);
    Ok(())
}
