//! A source that fails for a while, or will not take an outcome.

use crate::world::{Fault, Faulty, World, jobs, plan, workers};
use async_trait::async_trait;
use orchestrator_core::{ErrorClass, JobState, Json, Millis, Outcome};
use orchestrator_store::{AttemptEnd, Beat, Held, LeaseAsk, Leased, Settled, Settlement, StoreError};
use orchestrator_worker::{Pool, Registry, SourceError, WorkSource, handler_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

fn echo() -> Registry {
    Registry::new().with("echo", handler_fn(|work| async move { Outcome::Completed(work.leased.payload) }))
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_when_the_source_heals() {
    let world = World::new();
    let source = Faulty::new(world.engine.source());
    plan(&source.script.lease, Fault::Before, 6);
    plan(&source.script.settle, Fault::Before, 6);
    let pool = Pool::start(source.clone(), echo(), workers(4));
    for id in world.submit_all(jobs("echo", 20)).await {
        let job = world.end(id).await;
        assert_eq!((job.state, job.task().counters.attempt), (JobState::Completed, 1));
    }
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.settled()), (20, 20), "each outcome once, none lost");
    assert!(world.ms() > 2000, "it did not hammer: {}", world.ms());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_got_lost_is_asked_for_again_without_harm() {
    let world = World::new();
    let source = Faulty::new(world.engine.source());
    plan(&source.script.settle, Fault::After, 1);
    let pool = Pool::start(source, echo(), workers(1));
    let id = world.submit_all(jobs("echo", 1)).await[0];
    let job = world.end(id).await;
    assert_eq!((job.state, job.task().counters.attempt), (JobState::Completed, 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((pool.stats().stale, pool.stats().completed), (1, 0));
    assert_eq!(world.job(id).await.state, JobState::Completed);
}

/// Cannot store the result `13`, as a store may be unable to hold a result that is too big.
struct Picky(Arc<dyn WorkSource>);

#[async_trait]
impl WorkSource for Picky {
    async fn lease(
        &self,
        ask: LeaseAsk,
        wait: Duration,
        stop: &CancellationToken,
    ) -> Result<Vec<Leased>, SourceError> {
        self.0.lease(ask, wait, stop).await
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> Result<Vec<Beat>, SourceError> {
        self.0.extend(held, ttl).await
    }

    async fn lost(&self, held: Vec<Held>) -> Result<Vec<Held>, SourceError> {
        self.0.lost(held).await
    }

    fn revoked(&self) -> watch::Receiver<u64> {
        self.0.revoked()
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, SourceError> {
        let bad = Outcome::Completed(Json::trusted("13"));
        if batch.iter().any(|settlement| settlement.outcome == bad) {
            return Err(StoreError::Invalid("13 is unlucky".to_owned()).into());
        }
        self.0.settle(batch).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_stored_fails_its_job_and_no_other() {
    let world = World::new();
    let pool = Pool::start(Arc::new(Picky(world.engine.source())), echo(), workers(4));
    let ids = world.submit_all(jobs("echo", 20)).await;
    for (n, id) in ids.iter().enumerate() {
        let job = world.end(*id).await;
        let expected = if n == 13 { JobState::Failed } else { JobState::Completed };
        assert_eq!(job.state, expected, "{n}");
    }
    let bad = world.job(ids[13]).await;
    assert_eq!(bad.task().history[0].how, AttemptEnd::Failed(ErrorClass::Defect));
    assert!(bad.task().history[0].message.contains("13 is unlucky"), "{:?}", bad.task().history);
    assert_eq!((pool.stats().completed, pool.stats().failed, pool.stats().refused), (19, 1, 0));
}
