//! Leases: kept alive by heartbeats, lost, and shared between pools.

use crate::world::{Fault, Faulty, World, jobs, plan, settle_down, spec, workers};
use orchestrator_core::{JobState, Json, Millis, NewJob, Outcome};
use orchestrator_store::{AttemptEnd, Command, Controlled};
use orchestrator_worker::{Pool, PoolConfig, Registry, handler_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::sleep;

fn sleepy(secs: u64) -> Registry {
    let handler = handler_fn(move |_| async move {
        sleep(Duration::from_secs(secs)).await;
        Outcome::Completed(Json::null())
    });
    Registry::new().with("sleepy", handler)
}

fn short_leases(count: usize) -> PoolConfig {
    PoolConfig { lease_ttl: Millis::secs(30), heartbeat: Millis::secs(10), ..workers(count) }
}

#[tokio::test(start_paused = true)]
async fn heartbeats_keep_a_long_task_past_its_ttl() {
    let world = World::new();
    let _sweeper = world.engine.start_sweeper();
    let source = Faulty::new(world.engine.source());
    let _pool = Pool::start(source.clone(), sleepy(300), short_leases(2));
    let ids = world.submit_all(jobs("sleepy", 2)).await;
    for id in ids {
        let job = world.end(id).await;
        assert_eq!((job.state, job.task().counters.attempt), (JobState::Completed, 1));
    }
    let beats = source.extended.lock().unwrap();
    assert_eq!(beats.len(), 29, "one batch per beat");
    assert!(beats.iter().all(|held| held.len() == 2), "every attempt in it");
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_fails_is_repeated_soon() {
    let world = World::new();
    let _sweeper = world.engine.start_sweeper();
    let source = Faulty::new(world.engine.source());
    plan(&source.script.extend, Fault::Before, 4);
    let _pool = Pool::start(source, sleepy(60), short_leases(1));
    let id = world.submit(NewJob::with_spec(spec("sleepy").into())).await;
    assert_eq!(world.end(id).await.task().counters.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_handed_in_keeps_its_lease() {
    let world = World::new();
    let _sweeper = world.engine.start_sweeper();
    let source = Faulty::new(world.engine.source());
    plan(&source.script.settle, Fault::Before, 40);
    let _pool = Pool::start(source, sleepy(1), short_leases(2));
    let ids = world.submit_all(jobs("sleepy", 4)).await;
    for id in ids {
        let job = world.end(id).await;
        assert!(
            job.ended.is_some_and(|ended| ended.since(job.created) > Millis::secs(60)),
            "past two leases"
        );
        assert_eq!((job.state, job.task().counters.attempt), (JobState::Completed, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_cancels_the_handler_and_its_result_is_dropped() {
    let world = World::new();
    let told = Arc::new(AtomicBool::new(false));
    let flag = told.clone();
    let stubborn = handler_fn(move |work| {
        let flag = flag.clone();
        async move {
            work.cancelled.cancelled().await;
            flag.store(true, SeqCst);
            Outcome::Completed(Json::null())
        }
    });
    let pool = world.pool(Registry::new().with("stubborn", stubborn), short_leases(1));
    let id = world.submit(NewJob::with_spec(spec("stubborn").into())).await;
    settle_down().await;
    let answer = world.engine.control(vec![Command::Cancel(id)]).await.unwrap();
    assert_eq!(answer, [Controlled::Done(JobState::Cancelled)]);
    settle_down().await;
    assert!(told.load(SeqCst), "at once, though the next heartbeat is far away");
    let job = world.job(id).await;
    assert_eq!((job.state, &job.task().output), (JobState::Cancelled, &None));
    let stats = pool.stats();
    assert_eq!((stats.lost, stats.completed, stats.stale, stats.running), (1, 0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_late_result_of_a_cut_off_worker_is_stale() {
    let world = World::new();
    let _sweeper = world.engine.start_sweeper();
    let cut_off = Faulty::new(world.engine.source());
    plan(&cut_off.script.extend, Fault::Before, 1000);
    plan(&cut_off.script.lost, Fault::Before, 1000);
    let first = Pool::start(cut_off, sleepy(60), short_leases(1));
    let id = world.submit(NewJob::with_spec(spec("sleepy").into())).await;
    settle_down().await;
    assert_eq!(first.stats().running, 1);
    let second = world.pool(sleepy(600), short_leases(1));
    sleep(Duration::from_secs(40)).await;
    let job = world.job(id).await;
    assert_eq!((job.task().counters.attempt, job.task().counters.crashes), (2, 1));
    let job = world.end(id).await;
    assert_eq!((job.state, job.task().counters.attempt), (JobState::Completed, 2));
    assert!(job.task().history.iter().any(|record| record.attempt == 1 && record.how == AttemptEnd::Stale));
    assert_eq!((first.stats().stale, first.stats().completed), (1, 0));
    assert_eq!((second.stats().stale, second.stats().completed), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn two_pools_share_the_work_of_one_store() {
    let world = World::new();
    let one = world.pool(sleepy(10), workers(2));
    let two = world.pool(sleepy(10), workers(2));
    let ids = world.submit_all(jobs("sleepy", 12)).await;
    for id in ids {
        assert_eq!(world.end(id).await.task().counters.attempt, 1);
    }
    assert_eq!((one.stats().completed, two.stats().completed), (6, 6));
    assert!((30_000..30_200).contains(&world.ms()), "no worker was idle: {}", world.ms());
}
