//! Two processes that come to one job at the same moment. Which of them is first is settled by a third, who holds the
//! row that both want.

use orchestrator_core::flow::{Flow, Task};
use orchestrator_core::{
    JobId, JobState, Json, LimitKey, LimitRule, Limits, Millis, NewJob, Outcome, Rate, TaskState, WorkerId,
};
use orchestrator_store::{
    Catalog, Command, Controlled, Held, LeaseAsk, LimitChange, RuleOrigin, Settled, Settlement, Store,
    Submitted, SweepAsk,
};
use orchestrator_store_postgres::{Options, PostgresStore};
use pg_harness::Server;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Waits until so many sessions of the database wait for a lock.
async fn wait_for_waiters(client: &Client, number: i64) {
    let sql = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < number {
        tokio::task::yield_now().await;
    }
}

fn ask() -> LeaseAsk {
    LeaseAsk {
        worker: WorkerId::new("w"),
        queues: vec!["default".into()],
        handlers: vec!["noop".into()],
        slots: 5,
        ttl: Millis::secs(60),
        hold: Millis(0),
    }
}

fn completed(held: Held) -> Settlement {
    Settlement { held, outcome: Outcome::Completed(Json::null()), jitter: 0.0 }
}

/// A job of a queue gets a head when it is paused. Who ends its attempt just then must notice.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_ends_while_its_job_is_paused_ends_the_job() {
    let url = Server::shared().database();
    let store: Arc<PostgresStore> = PostgresStore::open(Options::new(&url)).await.unwrap();
    let submitted = store.submit(vec![NewJob::new("noop")]).await.unwrap();
    let Submitted::Created { id, .. } = submitted[0] else { panic!("{submitted:?}") };
    let leased = store.lease(ask()).await.unwrap().tasks.remove(0);

    let holder = connect(&url).await;
    holder.batch_execute("BEGIN; SELECT FROM orchestrator.leases FOR UPDATE").await.unwrap();
    let looker = connect(&url).await;
    let pausing = tokio::spawn({
        let store = store.clone();
        async move { store.control(vec![Command::Pause(id).into()]).await.unwrap() }
    });
    wait_for_waiters(&looker, 1).await;
    let settling = tokio::spawn({
        let store = store.clone();
        async move { store.settle(vec![completed(leased.held())]).await.unwrap() }
    });
    wait_for_waiters(&looker, 2).await;
    holder.batch_execute("COMMIT").await.unwrap();

    assert_eq!(pausing.await.unwrap(), [Controlled::Done(JobState::Pausing)]);
    let settled = settling.await.unwrap();
    assert!(matches!(settled[0], Settled::Applied { job_ended: true, .. }), "{settled:?}");
    let job = store.job(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.tasks[0].state), (JobState::Completed, TaskState::Completed));
}

/// Two jobs under a limit of one. Answers with the parked one, and with what the other holds.
async fn one_leased_one_parked(store: &PostgresStore) -> (JobId, Held) {
    let key = LimitKey::new("host", "narrow").unwrap();
    let rule = Some(LimitRule { concurrency: Some(1), rate: None });
    store
        .set_limits(vec![LimitChange { key: key.clone(), rule, origin: RuleOrigin::Operator }])
        .await
        .unwrap();
    let job = || NewJob::new("noop").limits(Limits::new([key.clone()]).unwrap());
    let submitted = store.submit(vec![job(), job()]).await.unwrap();
    let Submitted::Created { id, .. } = submitted[1] else { panic!("{submitted:?}") };
    let leased = store.lease(ask()).await.unwrap().tasks;
    assert_eq!(leased.len(), 1, "the other is parked");
    (id, leased[0].held())
}

/// A task is looked for in one place after the other. One that goes back to where it was not found before is there all
/// the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_let_into_line_while_it_is_looked_for_is_found() {
    let url = Server::shared().database();
    let store: Arc<PostgresStore> = PostgresStore::open(Options::new(&url)).await.unwrap();
    let (id, _) = one_leased_one_parked(&store).await;

    let mover = connect(&url).await;
    let columns = "line, tier, stamp, task, lane, since, attempt, failures, crashes, checkpoint";
    let sql = format!(
        "BEGIN; SET search_path = orchestrator;
        WITH moved AS (DELETE FROM parked RETURNING {columns}) INSERT INTO ready ({columns}) SELECT * FROM moved"
    );
    mover.batch_execute(&sql).await.unwrap();
    let looker = connect(&url).await;
    let pausing = tokio::spawn({
        let store = store.clone();
        async move { store.control(vec![Command::Pause(id).into()]).await }
    });
    wait_for_waiters(&looker, 1).await;
    mover.batch_execute("COMMIT").await.unwrap();
    assert_eq!(pausing.await.unwrap().unwrap(), [Controlled::Done(JobState::Paused)]);
    assert!(store.job(id).await.unwrap().unwrap().tasks[0].held);
}

/// A place comes free while somebody has the task in hand that waits for it. It is let in all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_parked_task_that_could_not_be_woken_is_woken_by_the_next_sweep() {
    let url = Server::shared().database();
    let store: Arc<PostgresStore> = PostgresStore::open(Options::new(&url)).await.unwrap();
    let (id, held) = one_leased_one_parked(&store).await;
    let holder = connect(&url).await;
    holder.batch_execute("BEGIN; SELECT FROM orchestrator.parked FOR UPDATE").await.unwrap();
    let settled = store.settle(vec![completed(held)]).await.unwrap();
    assert!(matches!(settled[0], Settled::Applied { job_ended: true, .. }), "{settled:?}");
    holder.batch_execute("COMMIT").await.unwrap();
    assert!(store.lease(ask()).await.unwrap().tasks.is_empty(), "it was passed over");
    store.expired(SweepAsk { limit: 10, jitter: 0.0 }).await.unwrap();
    let leased = store.lease(ask()).await.unwrap().tasks;
    assert_eq!(leased.iter().map(|leased| leased.task.job).collect::<Vec<_>>(), [id]);
}

/// A task whose job is in other hands is left in line, and found there again without any news of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_was_passed_over_is_asked_for_again_soon() {
    let url = Server::shared().database();
    let store: Arc<PostgresStore> = PostgresStore::open(Options::new(&url)).await.unwrap();
    let plan = Flow::new("short").task(Task::new("only", "noop")).plan().unwrap();
    store.submit(vec![NewJob::of_flow(Arc::new(plan))]).await.unwrap();

    let holder = connect(&url).await;
    holder.batch_execute("BEGIN; SELECT FROM orchestrator.runs FOR UPDATE").await.unwrap();
    let grant = store.lease(ask()).await.unwrap();
    assert!(grant.tasks.is_empty() && grant.next_at.is_some(), "{grant:?}");
    holder.batch_execute("COMMIT").await.unwrap();

    // It would wait for an hour if it had taken the line for empty.
    let patient = LeaseAsk { hold: Millis::mins(60), ..ask() };
    let grant = tokio::time::timeout(Duration::from_secs(60), store.lease(patient)).await.unwrap().unwrap();
    assert_eq!(grant.tasks.len(), 1);
}

/// A lease that looked at a limit, and then waits for the locks that a rate of another line needs, must not go by what it
/// saw before.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_taken_while_another_line_is_looked_at_is_not_given_twice() {
    let url = Server::shared().database();
    let store: Arc<PostgresStore> = PostgresStore::open(Options::new(&url)).await.unwrap();
    let rule = |key: &str, rule: LimitRule| LimitChange {
        key: key.parse().unwrap(),
        rule: Some(rule),
        origin: RuleOrigin::Operator,
    };
    let rate = LimitRule { concurrency: None, rate: Some(Rate::new(1, Millis::mins(1))) };
    store.set_limits(vec![rule("host:narrow", LimitRule::at_most(1)), rule("api:slow", rate)]).await.unwrap();
    let under = |key: &str| Limits::new([key.parse::<LimitKey>().unwrap()]).unwrap();
    // Lines are looked at in the order in which they came.
    let narrow = store.submit(vec![NewJob::new("noop").limits(under("host:narrow"))]).await.unwrap()[0].id();
    let rated = store.submit(vec![NewJob::new("rated").limits(under("api:slow"))]).await.unwrap()[0].id();

    let holder = connect(&url).await;
    holder.batch_execute("BEGIN; SELECT FROM orchestrator.limit_keys FOR UPDATE").await.unwrap();
    let looker = connect(&url).await;
    let leasing = tokio::spawn({
        let store = store.clone();
        let ask = LeaseAsk { handlers: vec!["noop".into(), "rated".into()], ..ask() };
        async move { store.lease(ask).await.unwrap() }
    });
    wait_for_waiters(&looker, 1).await;
    // As another lease would.
    let take = "UPDATE orchestrator.limit_keys SET running = 1 WHERE key = 'host:narrow'; COMMIT";
    holder.batch_execute(take).await.unwrap();

    let leased: Vec<JobId> = leasing.await.unwrap().tasks.iter().map(|leased| leased.task.job).collect();
    assert_eq!(leased, [rated]);
    assert_eq!(store.job(narrow).await.unwrap().unwrap().state, JobState::Pending);
    let limits = store.limits().await.unwrap();
    let running = limits.iter().find(|limit| limit.key.as_str() == "host:narrow").map(|limit| limit.running);
    assert_eq!(running, Some(1));
}
