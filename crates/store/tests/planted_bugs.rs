//! The suite finds bugs: each one planted here must be caught by the examples and by the random
//! sequences.

use async_trait::async_trait;
use orchestrator_core::{JobId, LimitRule, Millis, NewJob, Outcome, Timestamp};
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::model::ModelStore;
use orchestrator_store::*;
use std::sync::Arc;
use tokio::sync::watch;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    None,
    IgnoresKeys,
    TakesAnyPayload,
    ForgetsDelays,
    DropsTheFence,
    LosesStaleRecords,
    LeavesASlotEmpty,
    HandsOutWorstFirst,
    GivesNoHint,
    AllowsOneTooMany,
    ConfigBeatsOperator,
    ExtendsTooLong,
    RetriesFinalErrors,
    LosesCheckpoints,
    SweepsOnlyOnce,
    SweepsTooMany,
    AcksCancelWithoutDoing,
    RetriesWithoutAsking,
    HidesDeadLetters,
    SkipsTheFirstOfAPage,
    LosesEvents,
    ForgetsOnReopen,
}

const BUGS: [Bug; 21] = [
    Bug::IgnoresKeys,
    Bug::TakesAnyPayload,
    Bug::ForgetsDelays,
    Bug::DropsTheFence,
    Bug::LosesStaleRecords,
    Bug::LeavesASlotEmpty,
    Bug::HandsOutWorstFirst,
    Bug::GivesNoHint,
    Bug::AllowsOneTooMany,
    Bug::ConfigBeatsOperator,
    Bug::ExtendsTooLong,
    Bug::RetriesFinalErrors,
    Bug::LosesCheckpoints,
    Bug::SweepsOnlyOnce,
    Bug::SweepsTooMany,
    Bug::AcksCancelWithoutDoing,
    Bug::RetriesWithoutAsking,
    Bug::HidesDeadLetters,
    Bug::SkipsTheFirstOfAPage,
    Bug::LosesEvents,
    Bug::ForgetsOnReopen,
];

struct Broken {
    inner: ModelStore,
    bug: Bug,
}

#[async_trait]
impl Store for Broken {
    async fn submit(&self, mut jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        for job in &mut jobs {
            match self.bug {
                Bug::IgnoresKeys => job.key = None,
                Bug::ForgetsDelays => job.run_at = None,
                _ => {}
            }
        }
        let mut answers = self.inner.submit(jobs).await?;
        for answer in &mut answers {
            if let (Bug::TakesAnyPayload, Submitted::Conflict { id }) = (self.bug, answer.clone()) {
                *answer = Submitted::Existing { id, state: orchestrator_core::JobState::Pending };
            }
        }
        Ok(answers)
    }

    async fn lease(&self, mut ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        if self.bug == Bug::LeavesASlotEmpty && ask.slots > 1 {
            ask.slots -= 1;
        }
        let mut grant = self.inner.lease(ask).await?;
        match self.bug {
            Bug::HandsOutWorstFirst => grant.tasks.reverse(),
            Bug::GivesNoHint => grant.next_at = None,
            _ => {}
        }
        Ok(grant)
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        let ttl = if self.bug == Bug::ExtendsTooLong { Millis(ttl.0 + 1) } else { ttl };
        self.inner.extend(held, ttl).await
    }

    async fn settle(&self, mut batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        for settlement in &mut batch {
            match (self.bug, &mut settlement.outcome) {
                (Bug::DropsTheFence, _) => {
                    if let Some(job) = self.inner.job(settlement.held.task.job).await? {
                        settlement.held.attempt = job.task.counters.attempt;
                    }
                }
                (Bug::RetriesFinalErrors, Outcome::Failed(failure)) => {
                    failure.class = orchestrator_core::ErrorClass::Transient;
                }
                (Bug::LosesCheckpoints, Outcome::Continue(leg)) => leg.checkpoint = Default::default(),
                _ => {}
            }
        }
        self.inner.settle(batch).await
    }

    async fn expired(&self, mut ask: SweepAsk) -> StoreResult<Swept> {
        if self.bug == Bug::SweepsTooMany {
            ask.limit += 1;
        }
        let mut swept = self.inner.expired(ask).await?;
        if self.bug == Bug::SweepsOnlyOnce {
            swept.more = false;
        }
        Ok(swept)
    }

    async fn control(&self, commands: Vec<Command>) -> StoreResult<Vec<Controlled>> {
        let mut answers = vec![];
        for command in commands {
            let job = match command {
                Command::Retry(id) | Command::Cancel(id) => self.inner.job(id).await?,
            };
            answers.push(match (self.bug, command, job) {
                (Bug::AcksCancelWithoutDoing, Command::Cancel(_), Some(job)) if !job.state.is_terminal() => {
                    Controlled::Done(orchestrator_core::JobState::Cancelled)
                }
                (Bug::RetriesWithoutAsking, Command::Retry(_), Some(job)) => Controlled::Done(job.state),
                _ => self.inner.control(vec![command]).await?.remove(0),
            });
        }
        Ok(answers)
    }

    async fn set_limits(&self, mut changes: Vec<LimitChange>) -> StoreResult<()> {
        for change in &mut changes {
            match (self.bug, &mut change.rule) {
                (Bug::AllowsOneTooMany, Some(LimitRule { concurrency: Some(cap), .. })) => *cap += 1,
                (Bug::ConfigBeatsOperator, _) => change.origin = RuleOrigin::Operator,
                _ => {}
            }
        }
        self.inner.set_limits(changes).await
    }
}

impl Broken {
    fn show(&self, mut job: JobView) -> JobView {
        if self.bug == Bug::LosesStaleRecords {
            job.history.retain(|record| record.how != AttemptEnd::Stale);
        }
        job
    }
}

#[async_trait]
impl Catalog for Broken {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        Ok(self.inner.job(id).await?.map(|job| self.show(job)))
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        let jobs = self.inner.list(filter, page).await?;
        let skip = usize::from(self.bug == Bug::SkipsTheFirstOfAPage);
        Ok(jobs.into_iter().skip(skip).map(|job| self.show(job)).collect())
    }

    async fn stats(&self) -> StoreResult<Stats> {
        self.inner.stats().await
    }

    async fn dead_letters(&self, filter: LineFilter, page: Page) -> StoreResult<Vec<DeadLetter>> {
        let mut dead = self.inner.dead_letters(filter, page).await?;
        if self.bug == Bug::HidesDeadLetters {
            dead.pop();
        }
        Ok(dead)
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.inner.limits().await
    }

    async fn journal(&self, after: i64, limit: u32) -> StoreResult<Vec<JournalEntry>> {
        let mut entries = self.inner.journal(after, limit).await?;
        if self.bug == Bug::LosesEvents {
            for entry in entries.iter_mut().filter(|entry| entry.events.len() > 1) {
                entry.events.pop();
            }
        }
        Ok(entries)
    }
}

#[async_trait]
impl Fixture for Bug {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        Arc::new(Broken { inner: ModelStore::new(clock), bug: *self })
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        Some(if *self == Bug::ForgetsOnReopen { self.fresh(clock).await } else { store })
    }
}

#[tokio::test]
async fn the_wrapper_itself_is_sound() {
    conformance::examples(&Bug::None).await;
    conformance::random_sequences(&Bug::None, 5, 50, 1).await;
}

/// Whether a part of the suite panics.
async fn panics(part: impl Future<Output = ()> + 'static) -> bool {
    let local = tokio::task::LocalSet::new();
    let run = local.spawn_local(part);
    local.run_until(run).await.is_err_and(|error| error.is_panic())
}

#[tokio::test]
async fn the_examples_catch_every_bug() {
    for bug in BUGS {
        let caught = panics(async move { conformance::examples(&bug).await }).await;
        assert!(caught, "the examples did not notice: {bug:?}");
    }
}

#[tokio::test]
async fn the_random_sequences_catch_every_bug() {
    for bug in BUGS {
        let caught = panics(async move { conformance::random_sequences(&bug, 60, 50, 1).await }).await;
        assert!(caught, "the sequences did not notice: {bug:?}");
    }
}
