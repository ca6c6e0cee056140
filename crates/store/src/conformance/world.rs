//! A fresh store on a clock that the test moves, with short words for what examples do to it.

use super::Fixture;
use crate::clock::ManualClock;
use crate::contract::{Catalog, Store};
use crate::journal::{EventId, JournalEvent};
use crate::retention::*;
use crate::verbs::*;
use crate::views::*;
use orchestrator_core::retry::RetryPolicy;
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{
    ErrorClass, Failure, JobId, Json, LimitKey, LimitRule, Limits, Meta, Millis, NewJob, Outcome, TaskSpec,
    TaskState, Timestamp, WorkerId,
};
use std::sync::Arc;

/// When every test starts: at a full hour, so that windows are easy to reckon.
pub(super) const START: Timestamp = Timestamp::from_millis(1_699_999_200_000);
/// The handler of most examples.
pub(super) const HANDLER: &str = "work";
/// How long leases hold in examples.
pub(super) const TTL: Millis = Millis::secs(30);
/// The most rows that a test reads at once.
pub(super) const ALL: u32 = 100_000;

pub(super) struct World {
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
}

impl World {
    pub async fn new(fixture: &dyn Fixture) -> World {
        let clock = Arc::new(ManualClock::new(START));
        World { store: fixture.fresh(clock.clone()).await, clock }
    }

    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    pub fn advance(&self, span: Millis) {
        self.clock.advance(span);
    }

    /// Submits one job.
    pub async fn submit(&self, job: NewJob) -> Submitted {
        let answers = self.store.submit(vec![job]).await.expect("submit");
        assert_eq!(answers.len(), 1, "one answer per job");
        answers.into_iter().next().expect("one answer")
    }

    /// Submits one job that must be new.
    pub async fn add(&self, job: NewJob) -> JobId {
        match self.submit(job).await {
            Submitted::Created { id, .. } => id,
            other => panic!("the job should be new, but the answer was {other:?}"),
        }
    }

    /// Asks for tasks of the examples' line.
    pub async fn grant(&self, slots: u32) -> LeaseGrant {
        let grant = self.store.lease(ask(slots)).await.expect("lease");
        assert!(grant.tasks.len() <= slots as usize, "{} tasks for {slots} slots", grant.tasks.len());
        grant
    }

    /// Leases at most so many tasks of the examples' line.
    pub async fn lease(&self, slots: u32) -> Vec<Leased> {
        self.grant(slots).await.tasks
    }

    /// Leases one task of the examples' line, which must be there.
    pub async fn lease_one(&self) -> Leased {
        self.lease(1).await.pop().expect("a task should be ready")
    }

    /// Leases tasks one by one, completes each, and says which jobs they were.
    pub async fn work_off(&self, most: usize) -> Vec<JobId> {
        let mut served = vec![];
        while served.len() < most {
            let Some(leased) = self.lease(1).await.pop() else { break };
            self.complete(&leased).await;
            served.push(leased.task.job);
        }
        served
    }
    pub async fn settle(&self, held: Held, outcome: Outcome) -> Settled {
        let batch = vec![Settlement { held, outcome, jitter: 0.0 }];
        let answers = self.store.settle(batch).await.expect("settle");
        assert_eq!(answers.len(), 1, "one answer per settlement");
        answers[0]
    }

    /// Completes an attempt that must hold its lease.
    pub async fn complete(&self, leased: &Leased) {
        let answer = self.settle(leased.held(), done()).await;
        assert_eq!(answer.state(), Some(TaskState::Completed), "completing {:?}", leased.held());
    }

    /// Fails a job for good.
    pub async fn fail(&self, leased: &Leased) {
        let answer = self.settle(leased.held(), failed(ErrorClass::Permanent)).await;
        assert_eq!(answer.state(), Some(TaskState::Failed), "failing {:?}", leased.held());
    }

    pub async fn extend(&self, held: Held, ttl: Millis) -> Beat {
        let beats = self.store.extend(vec![held], ttl).await.expect("extend");
        assert_eq!(beats.len(), 1, "one answer per lease");
        beats[0]
    }

    pub async fn sweep(&self, limit: u32) -> Swept {
        self.store.expired(SweepAsk { limit, jitter: 0.0 }).await.expect("expired")
    }

    pub async fn control(&self, command: Command) -> Controlled {
        self.wish(command.into()).await
    }

    /// Asks for something that may depend on a state.
    pub async fn wish(&self, wish: Wish) -> Controlled {
        let answers = self.store.control(vec![wish]).await.expect("control");
        assert_eq!(answers.len(), 1, "one answer per command");
        answers.into_iter().next().expect("one answer")
    }

    /// Removes a job that has ended.
    pub async fn forget(&self, id: JobId) -> Forgot {
        let ended = self.job(id).await.ended.expect("the job should have ended");
        self.forget_end(id, ended).await
    }

    /// Removes a job if this was its end.
    pub async fn forget_end(&self, job: JobId, ended: Timestamp) -> Forgot {
        let answers = self.store.forget(vec![Forget { job, ended }]).await.expect("forget");
        assert_eq!(answers.len(), 1, "one answer per job");
        answers[0]
    }

    /// The jobs that may go.
    pub async fn removable(&self, bygone: Bygone) -> Vec<JobId> {
        let ask = RemovableAsk { bygone, after: None, limit: ALL, look: ALL };
        let page = self.store.removable(ask).await.expect("removable");
        assert_eq!(page.next, None, "nothing bounded the look");
        page.jobs.into_iter().map(|job| job.job).collect()
    }

    /// Writes or strikes a rule as an operator.
    pub async fn limit(&self, name: &str, rule: Option<LimitRule>) {
        self.set_limit(name, rule, RuleOrigin::Operator).await;
    }

    pub async fn set_limit(&self, name: &str, rule: Option<LimitRule>, origin: RuleOrigin) {
        let change = LimitChange { key: key(name), rule, origin };
        self.store.set_limits(vec![change]).await.expect("set_limits");
    }

    /// Pauses a queue.
    pub async fn pause_queue(&self, queue: &str) {
        self.store
            .set_queues(vec![QueueChange { queue: queue.into(), paused: true }])
            .await
            .expect("set_queues");
    }

    /// Lets a queue go on.
    pub async fn resume_queue(&self, queue: &str) {
        self.store
            .set_queues(vec![QueueChange { queue: queue.into(), paused: false }])
            .await
            .expect("set_queues");
    }

    /// The ids of the jobs that a filter takes.
    pub async fn listed(&self, filter: JobFilter) -> Vec<JobId> {
        let jobs = self.store.list(filter, everything()).await.expect("list");
        jobs.into_iter().map(|job| job.id).collect()
    }

    /// A job that must exist.
    pub async fn job(&self, id: JobId) -> JobView {
        let job = self.store.job(id).await.expect("job");
        job.unwrap_or_else(|| panic!("job {id} should exist"))
    }

    /// The first task of a job that must exist.
    pub async fn task(&self, id: JobId) -> TaskView {
        self.job(id).await.tasks.swap_remove(0)
    }

    /// Every dead letter.
    pub async fn dead(&self) -> Vec<DeadLetter> {
        self.store.dead_letters(LineFilter::default(), None, ALL).await.expect("dead_letters")
    }

    pub async fn state(&self, id: JobId) -> TaskState {
        self.job(id).await.task().state
    }

    /// Every job in order of submission.
    pub async fn jobs(&self) -> Vec<JobView> {
        self.store.list(JobFilter::default(), everything()).await.expect("list")
    }

    /// The counts of the examples' line.
    pub async fn line(&self) -> LineStats {
        let lines = self.store.stats().await.expect("stats").lines;
        let ours = lines.into_iter().find(|line| &*line.handler == HANDLER && &*line.queue == DEFAULT_QUEUE);
        ours.expect("the line had work, so it should be counted")
    }

    /// How many hold a slot of a key.
    pub async fn running(&self, name: &str) -> u32 {
        let limits = self.store.limits().await.expect("limits");
        limits.iter().find(|limit| limit.key == key(name)).map_or(0, |limit| limit.running)
    }
}

/// The rules of the examples' tasks: retries wait 1 s, 2 s, 4 s without jitter.
pub(super) fn spec() -> TaskSpec {
    TaskSpec::new(HANDLER).with_retry(RetryPolicy { jitter_percent: 0, ..RetryPolicy::default() })
}

/// A job for the examples' handler.
pub(super) fn job() -> NewJob {
    NewJob::with_spec(Arc::new(spec()))
}

pub(super) fn ask(slots: u32) -> LeaseAsk {
    ask_for(&[DEFAULT_QUEUE], &[HANDLER], slots)
}

pub(super) fn ask_for(queues: &[&str], handlers: &[&str], slots: u32) -> LeaseAsk {
    LeaseAsk {
        worker: WorkerId::new("w1"),
        queues: queues.iter().map(|name| Arc::from(*name)).collect(),
        handlers: handlers.iter().map(|name| Arc::from(*name)).collect(),
        slots,
        ttl: TTL,
        hold: Millis(0),
    }
}

pub(super) fn key(text: &str) -> LimitKey {
    text.parse().expect("a limit key")
}

pub(super) fn limits(keys: &[&str]) -> Limits {
    Limits::new(keys.iter().map(|text| key(text))).expect("few limit keys")
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).expect("valid JSON")
}

/// What a job carries along, with this context.
pub(super) fn with_context(context: &str) -> Meta {
    Meta { context: Some(json(context)), ..Meta::default() }
}

pub(super) fn done() -> Outcome {
    Outcome::Completed(json("{\"ok\":true}"))
}

pub(super) fn failed(class: ErrorClass) -> Outcome {
    Outcome::Failed(Failure::new(class, format!("a {class} error")))
}

/// The first page, long enough for everything.
pub(super) fn everything() -> Page {
    Page { after: None, limit: ALL }
}

/// The whole journal, by two pages, so that every look at it crosses a boundary.
pub(super) async fn journal(catalog: &dyn Catalog) -> Vec<JournalEvent> {
    let first = catalog.journal(EventId::START, 5).await.expect("journal");
    let rest = catalog.journal(first.next, ALL).await.expect("journal");
    first.events.into_iter().chain(rest.events).collect()
}
