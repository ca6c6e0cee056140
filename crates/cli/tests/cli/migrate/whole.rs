//! A file with everything in flight, and what comes of it on the server.

use super::*;
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::retry::RetryPolicy;
use orchestrator_core::{
    Document, ErrorClass, Event, Failure, JobId, JobState, Json, Key, LimitKey, LimitRule, Limits, Meta,
    Millis, NewJob, Outcome, Rate, TaskSpec, TaskState, Timestamp, WorkerId,
};
use orchestrator_store::{
    Command, EventId, JobFilter, LeaseAsk, Leased, LimitChange, ManualClock, Page, QueueChange, RuleOrigin,
    Settlement, Store, Submitted, SweepAsk, WorkerNote, conformance,
};
use orchestrator_store_postgres::PostgresStore;
use orchestrator_store_sqlite::SqliteStore;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const START: Timestamp = Timestamp::from_millis(1_699_999_200_000);
const TTL: Millis = Millis::secs(30);
const ALL: u32 = 10_000;

/// A store and its clock.
struct World {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

fn file(path: &Path, clock: &Arc<ManualClock>) -> Arc<dyn Store> {
    let options = orchestrator_store_sqlite::Options { clock: clock.clone(), ..Default::default() };
    SqliteStore::open(path, options).unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn limits(keys: &[&str]) -> Limits {
    Limits::new(keys.iter().map(|key| key.parse::<LimitKey>().unwrap())).unwrap()
}

fn job() -> NewJob {
    let retry = RetryPolicy { jitter_percent: 0, ..RetryPolicy::default() };
    NewJob::with_spec(Arc::new(TaskSpec::new("work").with_retry(retry)))
}

fn plan(flow: Flow) -> Arc<Plan> {
    Arc::new(flow.plan().unwrap())
}

fn chain() -> Arc<Plan> {
    let first = Task::new("a", "work").with(serde_json::json!({ "of": "{{ input.n }}" }));
    plan(Flow::new("chain").task(first).task(Task::new("b", "work").needs(["a"])))
}

fn list() -> Arc<Plan> {
    let each = Task::new("each", "work").for_each("{{ input }}").concurrency(2);
    plan(Flow::new("list").task(each).task(Task::new("join", "work").needs(["each"])))
}

fn broken() -> Outcome {
    Outcome::Failed(Failure::new(ErrorClass::Permanent, "it broke badly"))
}

impl World {
    async fn add(&self, job: NewJob) -> JobId {
        match self.store.submit(vec![job]).await.unwrap()[0] {
            Submitted::Created { id, .. } => id,
            ref other => panic!("the job should be new: {other:?}"),
        }
    }

    async fn lease(&self, slots: u32) -> Vec<Leased> {
        let ask = LeaseAsk {
            worker: WorkerId::new("w1"),
            queues: vec!["default".into()],
            handlers: vec!["work".into()],
            slots,
            ttl: TTL,
            hold: Millis(0),
        };
        self.store.lease(ask).await.unwrap().tasks
    }

    async fn settle(&self, leased: &Leased, outcome: Outcome) {
        let batch = vec![Settlement { held: leased.held(), outcome, jitter: 0.0 }];
        let settled = self.store.settle(batch).await.unwrap();
        assert!(settled[0].state().is_some(), "the attempt holds its lease: {leased:?}");
    }

    /// Runs the next task to an end.
    async fn run(&self, outcome: Outcome) -> JobId {
        let leased = self.lease(1).await.pop().expect("a task");
        self.settle(&leased, outcome).await;
        leased.task.job
    }

    async fn done(&self) -> JobId {
        self.run(Outcome::Completed(json("7"))).await
    }

    async fn limit(&self, key: &str, rule: LimitRule, origin: RuleOrigin) {
        let change = LimitChange { key: key.parse().unwrap(), rule: Some(rule), origin };
        self.store.set_limits(vec![change]).await.unwrap();
    }
}

/// Jobs in every situation, and one that a worker holds.
async fn everything(world: &World) -> (Leased, JobId) {
    world.limit("host:a", LimitRule::at_most(1), RuleOrigin::Operator).await;
    world.limit("host:*", LimitRule::at_most(4), RuleOrigin::Config).await;
    let rate = LimitRule { concurrency: None, rate: Some(Rate::new(1, Millis::secs(60))) };
    world.limit("rate:slow", rate, RuleOrigin::Operator).await;

    let keyed = world.add(job().key(Key::new("for-ever")).payload(json("{\"x\":1}"))).await;
    assert_eq!(world.done().await, keyed);
    world.add(job().key(Key::new("again"))).await;
    world.run(broken()).await;
    world.add(job().key(Key::new("again")).tenant("lab")).await;
    let repeated = world.add(job().key(Key::new("again"))).await;
    world.control(Command::Pause(repeated)).await;
    world.done().await;
    world.add(job()).await;
    let retried = Failure::new(ErrorClass::Network, "cut off");
    world.run(Outcome::Failed(retried)).await;

    let failing = world.add(NewJob::of_flow(chain()).payload(json("{\"n\":2}"))).await;
    assert_eq!(world.run(broken()).await, failing);
    let paused = world.add(NewJob::of_flow(chain()).payload(json("{\"n\":1}"))).await;
    world.done().await;
    world.control(Command::Pause(paused)).await;
    let listed = world.add(NewJob::of_flow(list()).payload(json("[1,2,3,4,5]"))).await;
    world.done().await;
    world.done().await;
    let mut held = world.lease(1).await;
    assert_eq!(held[0].task.job, listed);

    let mut window = Key::new("daily");
    window.window = Some(Millis::hours(24));
    world.add(job().key(window).run_at(START + Millis::hours(1))).await;
    world.add(job().after(paused)).await;
    world.store.submit(vec![job().limits(limits(&["host:a", "host:b"])); 30]).await.unwrap();
    world.store.submit(vec![job().limits(limits(&["rate:slow"])); 2]).await.unwrap();
    held.extend(world.lease(9).await);
    let cancelled = world.add(job()).await;
    world.control(Command::Cancel(cancelled)).await;
    let meta =
        Meta { context: Some(json(r#"{ "order": 1.50 }"#)), user: Some("ann".into()), ..Meta::default() };
    let document = Document::new("scan.pdf", "application/pdf", [0, 255, 7]);
    world.add(job().meta(meta).document(document)).await;
    let closed = QueueChange { queue: "closed".into(), paused: true };
    world.store.set_queues(vec![closed]).await.unwrap();
    let note = WorkerNote {
        name: WorkerId::new("w"),
        host: "here".into(),
        version: "1".into(),
        queues: vec!["default".into()],
        handlers: vec!["work".into()],
        slots: 4,
        gone: false,
    };
    world.store.register(vec![note]).await.unwrap();
    world.clock.advance(Millis(5));
    (held.remove(0), keyed)
}

impl World {
    async fn control(&self, command: Command) {
        let answer = self.store.control(vec![command.into()]).await.unwrap();
        assert!(matches!(answer[0], orchestrator_store::Controlled::Done(_)), "{answer:?}");
    }

    /// Everybody's ids, in order.
    async fn ids(&self) -> Vec<JobId> {
        let page = Page { after: None, limit: ALL };
        let jobs = self.store.list(JobFilter::default(), page).await.unwrap();
        jobs.iter().map(|job| job.id).collect()
    }
}

#[test]
fn everything_comes_over_and_runs_to_its_end() {
    let place = Place::new();
    let (url, name) = database();
    let clock = Arc::new(ManualClock::new(START));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (held, keyed) = runtime.block_on(async {
        let world = World { store: file(&place.path(FILE), &clock), clock: clock.clone() };
        let kept = everything(&world).await;
        world.store.close().await;
        kept
    });
    // What to compare with: the same file, under another name.
    std::fs::copy(place.path(FILE), place.path("before.db")).unwrap();
    let summary = place.json(&["migrate", "copy", "--from", FILE, "--to", &url]);
    assert_eq!(summary["tables"]["leases"], 4, "{summary}");
    assert!(summary["tables"]["parked"].as_u64().unwrap() > 20, "{summary}");
    runtime.block_on(async {
        let before = World { store: file(&place.path("before.db"), &clock), clock: clock.clone() };
        let options = orchestrator_store_postgres::Options {
            clock: Some(clock.clone()),
            ..orchestrator_store_postgres::Options::new(url.as_str())
        };
        let world = World { store: PostgresStore::open(options).await.unwrap(), clock: clock.clone() };
        conformance::compare(&*world.store, &*before.store).await.unwrap_or_else(|what| panic!("{what}"));
        let ids = before.ids().await;
        assert_eq!(world.ids().await, ids, "ids are for ever");
        let journal = before.store.journal(EventId::START, ALL).await.unwrap();
        assert_eq!(world.store.journal(EventId::START, ALL).await.unwrap(), journal);
        assert!(world.store.held(vec![held.held()]).await.unwrap()[0], "leases are as they were");

        let same = world.store.submit(vec![job().key(Key::new("for-ever")).payload(json("{\"x\":1}"))]).await;
        assert_eq!(same.unwrap(), [Submitted::Existing { id: keyed, state: JobState::Completed }]);
        run_to_the_end(&world).await;
        each_completed_once(&world).await;
        assert_eq!(world.ids().await, ids, "nothing was added");
    });
    let held = "SELECT count(*) FROM orchestrator.limit_keys WHERE running <> 0";
    assert_eq!(sql(&name, held), "0", "all slots are free");
}

/// Resumes what is paused, takes dead letters up again, and works until nothing is left.
async fn run_to_the_end(world: &World) {
    for id in world.ids().await {
        match world.store.job(id).await.unwrap().unwrap().state {
            JobState::Paused => world.control(Command::Resume(id)).await,
            // One of them has a newer job with its key, which stands for it.
            JobState::Failed => drop(world.store.control(vec![Command::Retry(id).into()]).await.unwrap()),
            _ => {}
        }
    }
    for _ in 0..200 {
        world.clock.advance(Millis::secs(61));
        world.store.expired(SweepAsk { limit: 99, jitter: 0.0 }).await.unwrap();
        for leased in world.lease(99).await {
            world.settle(&leased, Outcome::Completed(json("7"))).await;
        }
    }
}

async fn each_completed_once(world: &World) {
    let mut completions: BTreeMap<_, u32> = BTreeMap::new();
    for told in world.store.journal(EventId::START, ALL).await.unwrap().events {
        if let Event::Task(event) = told.event
            && event.state == TaskState::Completed
        {
            *completions.entry(event.task).or_default() += 1;
        }
    }
    assert!(completions.values().all(|n| *n == 1), "{completions:?}");
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    for id in world.ids().await {
        let state = world.store.job(id).await.unwrap().unwrap().state;
        *ends.entry(state.to_string()).or_default() += 1;
    }
    let (cancelled, failed) = (ends.remove("cancelled"), ends.remove("failed"));
    assert_eq!((cancelled, failed), (Some(1), Some(1)), "the rest completed: {ends:?}");
    assert_eq!(ends.keys().collect::<Vec<_>>(), ["completed"]);
}
