//! The graceful end: nothing is lost, nothing costs an attempt.

use crate::world::{Fault, Faulty, World, jobs, plan, settle_down, spec, workers};
use orchestrator_core::{Counters, Json, Millis, NewJob, Outcome, TaskState};
use orchestrator_worker::{Pool, Registry, Summary, handler_fn};
use std::time::Duration;
use tokio::time::sleep;

/// Sleeps for as many seconds as the payload says.
fn sleeper() -> Registry {
    let handler = handler_fn(|work| async move {
        sleep(Duration::from_secs(work.leased.payload.read().unwrap())).await;
        Outcome::Completed(Json::null())
    });
    Registry::new().with("sleeper", handler)
}

fn nap(secs: u64) -> NewJob {
    NewJob::with_spec(spec("sleeper").into()).payload(Json::of(&secs).unwrap())
}

const UNHARMED: Counters = Counters { attempt: 1, failures: 0, crashes: 0 };

#[tokio::test(start_paused = true)]
async fn what_ends_within_the_grace_counts_and_the_rest_goes_back_unharmed() {
    let world = World::new();
    let pool = world.pool(sleeper(), workers(2));
    let ids = world.submit_all(vec![nap(5), nap(1000), nap(7)]).await;
    settle_down().await;
    let summary = pool.shutdown(Millis::secs(10)).await;
    assert_eq!(summary, Summary { finished: 1, released: 1, unreported: 0 });
    assert!((12_000..12_100).contains(&world.ms()), "grace and a moment to clean up: {}", world.ms());
    assert_eq!(world.job(ids[0]).await.task().state, TaskState::Completed);
    let given_back = world.job(ids[1]).await.task().clone();
    assert_eq!((given_back.state, given_back.counters), (TaskState::Queued, UNHARMED));
    assert_eq!(world.job(ids[2]).await.task().counters.attempt, 0, "nothing new was started");
    // A second pool takes it from there.
    let _next = world.pool(sleeper(), workers(2));
    assert_eq!(world.end(ids[1]).await.task().counters, Counters { attempt: 2, ..UNHARMED });
}

#[tokio::test(start_paused = true)]
async fn an_idle_pool_ends_at_once() {
    let world = World::new();
    let pool = world.pool(sleeper(), workers(2));
    sleep(Duration::from_secs(3)).await;
    assert_eq!(pool.stop().await, Summary::default());
    assert_eq!(pool.stop().await, Summary::default(), "again is no harm");
    assert_eq!(world.ms(), 3000);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_heeds_its_token_ends_the_pool_at_once() {
    let world = World::new();
    let polite = handler_fn(|work| async move {
        work.cancelled.cancelled().await;
        Outcome::Released
    });
    let pool = world.pool(Registry::new().with("polite", polite), workers(2));
    let ids = world.submit_all(jobs("polite", 2)).await;
    settle_down().await;
    assert_eq!(pool.shutdown(Millis(0)).await, Summary { finished: 0, released: 2, unreported: 0 });
    assert_eq!(world.ms(), 1);
    assert_eq!(world.job(ids[1]).await.task().counters, UNHARMED);
}

#[tokio::test(start_paused = true)]
async fn a_second_word_cuts_the_grace_short() {
    let world = World::new();
    let pool = world.pool(sleeper(), workers(1));
    world.submit(nap(1000)).await;
    settle_down().await;
    let impatient = async {
        sleep(Duration::from_secs(3)).await;
        pool.shutdown(Millis(0)).await
    };
    let (first, second) = tokio::join!(pool.shutdown(Millis::secs(600)), impatient);
    assert_eq!(first, second);
    assert_eq!(first.released, 1);
    assert!((5000..5100).contains(&world.ms()), "{}", world.ms());
}

#[tokio::test(start_paused = true)]
async fn waiting_tasks_go_back_at_once_while_others_still_run() {
    let world = World::new();
    let pool = world.pool(sleeper(), workers(2));
    // Fast ones first, so that the next are leased ahead.
    for id in world.submit_all((0..90).map(|_| nap(0)).collect()).await {
        world.end(id).await;
    }
    let ids = world.submit_all((0..30).map(|_| nap(20)).collect()).await;
    settle_down().await;
    assert!(pool.stats().buffered > 0);
    let look = async {
        settle_down().await;
        let mut states = vec![];
        for id in &ids {
            let task = world.job(*id).await.task().clone();
            assert_eq!((task.counters.failures, task.counters.crashes), (0, 0));
            states.push(task.state);
        }
        states
    };
    let (summary, states) = tokio::join!(pool.shutdown(Millis::secs(60)), look);
    assert_eq!(states.iter().filter(|state| **state == TaskState::Running).count(), 2);
    assert_eq!(states.iter().filter(|state| **state == TaskState::Queued).count(), 28);
    assert_eq!((summary.finished, summary.unreported), (2, 0));
    assert!(summary.released > 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_granted_while_the_pool_stops_goes_back() {
    let world = World::new();
    let source = Faulty::new(world.engine.source());
    plan(&source.script.lease, Fault::Late(Duration::from_secs(4)), 1);
    let id = world.submit(nap(1)).await;
    let pool = Pool::start(source, sleeper(), workers(2));
    settle_down().await;
    assert_eq!(world.job(id).await.task().state, TaskState::Running, "granted, but the answer is on its way");
    let summary = pool.shutdown(Millis::secs(10)).await;
    assert_eq!(summary, Summary { finished: 0, released: 1, unreported: 0 });
    let task = world.job(id).await.task().clone();
    assert_eq!((task.state, task.counters), (TaskState::Queued, UNHARMED));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_dropped_gives_its_tasks_back() {
    let world = World::new();
    let pool = world.pool(sleeper(), workers(1));
    let id = world.submit(nap(1000)).await;
    settle_down().await;
    drop(pool);
    sleep(Duration::from_secs(3)).await;
    let task = world.job(id).await.task().clone();
    assert_eq!((task.state, task.counters), (TaskState::Queued, UNHARMED));
}

#[tokio::test(start_paused = true)]
async fn a_dead_source_does_not_hold_the_end_up_for_ever() {
    let world = World::new();
    let source = Faulty::new(world.engine.source());
    plan(&source.script.settle, Fault::Before, 100_000);
    let pool = Pool::start(source, sleeper(), workers(1));
    world.submit(nap(1)).await;
    sleep(Duration::from_secs(2)).await;
    let summary = pool.shutdown(Millis::secs(5)).await;
    assert_eq!(summary, Summary { finished: 0, released: 0, unreported: 1 });
    assert!(world.ms() < 30_000, "{}", world.ms());
}
