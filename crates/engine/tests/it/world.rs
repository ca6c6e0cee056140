//! What the tests share: a store whose clock follows the (paused) time of the runtime, an engine
//! on it, and a source that can be told to fail.

use async_trait::async_trait;
use orchestrator_core::{JobId, Json, Millis, NewJob, RetryPolicy, TaskSpec, Timestamp, WorkerId};
use orchestrator_engine::{Engine, EngineConfig, Waited};
use orchestrator_store::model::ModelStore;
use orchestrator_store::{
    Beat, Clock, Held, JobView, LeaseAsk, Leased, Settled, Settlement, Store, StoreError, Submitted,
};
use orchestrator_worker::{Pool, PoolConfig, Registry, SourceError, WorkSource};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The store's clock runs with the runtime's.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000) + Millis::from(self.0.elapsed())
    }
}

pub struct World {
    pub engine: Engine,
    pub started: Instant,
}

impl World {
    pub fn new() -> Self {
        World::with(EngineConfig::default())
    }

    /// An engine that never looks for what other processes did.
    pub fn without_polling() -> Self {
        World::with(EngineConfig { poll_every: Millis::hours(10), ..EngineConfig::default() })
    }

    fn with(config: EngineConfig) -> Self {
        let started = Instant::now();
        let store = Arc::new(ModelStore::new(Arc::new(RuntimeClock(started))));
        let config = EngineConfig { rng: fastrand::Rng::with_seed(7), ..config };
        World { engine: Engine::new(store, config), started }
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        self.engine.store()
    }

    pub fn pool(&self, registry: Registry, config: PoolConfig) -> Pool {
        Pool::start(self.engine.source(), registry, config)
    }

    pub async fn submit(&self, job: NewJob) -> JobId {
        self.submit_all(vec![job]).await[0]
    }

    pub async fn submit_all(&self, jobs: Vec<NewJob>) -> Vec<JobId> {
        self.engine.submit(jobs).await.unwrap().iter().map(Submitted::id).collect()
    }

    /// The job when it has ended.
    pub async fn end(&self, id: JobId) -> JobView {
        match self.engine.wait(id, Some(Duration::from_secs(3600))).await.unwrap() {
            Waited::Ended(job) => job,
            Waited::TimedOut(job) => panic!("did not end: {job:?}"),
        }
    }

    pub async fn job(&self, id: JobId) -> JobView {
        self.store().job(id).await.unwrap().unwrap()
    }

    /// Virtual milliseconds since the start.
    pub fn ms(&self) -> u128 {
        self.started.elapsed().as_millis()
    }
}

/// A pool of so many workers, with a seed of its own.
pub fn workers(count: usize) -> PoolConfig {
    let config = PoolConfig::new(WorkerId::new("pool"));
    PoolConfig { max_workers: count, rng: fastrand::Rng::with_seed(3), ..config }
}

/// A handler's rules without randomness and without a time limit.
pub fn spec(handler: &str) -> TaskSpec {
    let retry = RetryPolicy { jitter_percent: 0, ..RetryPolicy::default() };
    TaskSpec::new(handler).with_retry(retry).with_timeout(None)
}

pub fn jobs(handler: &str, count: usize) -> Vec<NewJob> {
    let spec = Arc::new(spec(handler));
    (0..count).map(|n| NewJob::with_spec(spec.clone()).payload(number(n))).collect()
}

pub fn number(n: usize) -> Json {
    Json::of(&n).unwrap()
}

/// Lets everything run that can run without time passing.
pub async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub fn busy() -> SourceError {
    StoreError::Busy { waited_ms: 1 }.into()
}

/// What a faulty source does with its next call of a verb.
#[derive(Clone, Copy, PartialEq)]
pub enum Fault {
    /// Answers well.
    None,
    /// Fails, and nothing happened.
    Before,
    /// Fails, but it happened.
    After,
    /// Takes this long to answer.
    Late(Duration),
}

/// Faults to come, in order, for each verb; without any left a verb works.
#[derive(Default)]
pub struct Script {
    pub lease: Mutex<VecDeque<Fault>>,
    pub extend: Mutex<VecDeque<Fault>>,
    pub settle: Mutex<VecDeque<Fault>>,
    pub lost: Mutex<VecDeque<Fault>>,
}

/// A source that fails as its script says and notes what it was asked.
pub struct Faulty {
    inner: Arc<dyn WorkSource>,
    pub script: Script,
    pub asked: Mutex<Vec<u32>>,
    pub extended: Mutex<Vec<Vec<Held>>>,
}

impl Faulty {
    pub fn new(inner: Arc<dyn WorkSource>) -> Arc<Self> {
        Arc::new(Faulty {
            inner,
            script: Script::default(),
            asked: Mutex::default(),
            extended: Mutex::default(),
        })
    }
}

pub fn plan(faults: &Mutex<VecDeque<Fault>>, fault: Fault, times: usize) {
    faults.lock().unwrap().extend(std::iter::repeat_n(fault, times));
}

async fn act<T>(
    faults: &Mutex<VecDeque<Fault>>,
    call: impl Future<Output = Result<T, SourceError>>,
) -> Result<T, SourceError> {
    let fault = faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
    if fault == Fault::Before {
        return Err(busy());
    }
    let answer = call.await?;
    match fault {
        Fault::After => Err(busy()),
        Fault::Late(by) => {
            tokio::time::sleep(by).await;
            Ok(answer)
        }
        Fault::None | Fault::Before => Ok(answer),
    }
}

#[async_trait]
impl WorkSource for Faulty {
    async fn lease(
        &self,
        ask: LeaseAsk,
        wait: Duration,
        stop: &CancellationToken,
    ) -> Result<Vec<Leased>, SourceError> {
        self.asked.lock().unwrap().push(ask.slots);
        act(&self.script.lease, self.inner.lease(ask, wait, stop)).await
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> Result<Vec<Beat>, SourceError> {
        self.extended.lock().unwrap().push(held.clone());
        act(&self.script.extend, self.inner.extend(held, ttl)).await
    }

    async fn lost(&self, held: Vec<Held>) -> Result<Vec<Held>, SourceError> {
        act(&self.script.lost, self.inner.lost(held)).await
    }

    fn revoked(&self) -> watch::Receiver<u64> {
        self.inner.revoked()
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, SourceError> {
        act(&self.script.settle, self.inner.settle(batch)).await
    }
}
