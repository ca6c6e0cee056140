//! How far the pool leases ahead.

use crate::world::{Faulty, World, jobs, settle_down, workers};
use orchestrator_core::{Json, Millis, Outcome, TaskState};
use orchestrator_worker::{Pool, PoolConfig, Prefetch, Registry, handler_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Ends at once, unless the payload is over 99: then it takes ten seconds.
fn mixed() -> Registry {
    let handler = handler_fn(|work| async move {
        if work.leased.payload.read::<usize>().unwrap() > 99 {
            sleep(Duration::from_secs(10)).await;
        }
        Outcome::Completed(Json::null())
    });
    Registry::new().with("mixed", handler)
}

#[tokio::test(start_paused = true)]
async fn slow_handlers_are_never_fed_ahead() {
    let world = World::new();
    let source = Faulty::new(world.engine.source());
    let pool = Pool::start(source.clone(), mixed(), workers(4));
    let ids = world.submit_all(jobs("mixed", 140).split_off(100)).await;
    for _ in 0..99 {
        sleep(Duration::from_secs(1)).await;
        let stats = pool.stats();
        assert!(stats.buffered == 0 && stats.running <= 4, "{stats:?}");
    }
    world.end(ids[39]).await;
    assert!((100_000..100_200).contains(&world.ms()), "and yet no worker was idle: {}", world.ms());
    assert!(source.asked.lock().unwrap().iter().all(|slots| *slots <= 4));
}

#[tokio::test(start_paused = true)]
async fn fast_handlers_are_fed_in_big_batches_up_to_the_cap() {
    let world = World::new();
    let source = Faulty::new(world.engine.source());
    let prefetch = Prefetch { cap: 32, ..Prefetch::default() };
    let _pool = Pool::start(source.clone(), mixed(), PoolConfig { prefetch, ..workers(4) });
    for id in world.submit_all(jobs("mixed", 100)).await {
        world.end(id).await;
    }
    let asked = source.asked.lock().unwrap();
    assert_eq!(asked[0], 4, "nothing ahead before anything is known");
    assert_eq!(asked.iter().max(), Some(&36));
}

#[tokio::test(start_paused = true)]
async fn what_was_leased_ahead_of_slow_tasks_is_given_back() {
    let world = World::new();
    let source = Faulty::new(world.engine.source());
    let pool = Pool::start(source.clone(), mixed(), workers(2));
    for id in world.submit_all(jobs("mixed", 90)).await {
        world.end(id).await;
    }
    let ids = world.submit_all(jobs("mixed", 130).split_off(100)).await;
    settle_down().await;
    let stats = pool.stats();
    assert!(stats.running == 2 && stats.buffered > 0, "they were thought to be fast: {stats:?}");
    sleep(Duration::from_secs(1)).await;
    let stats = pool.stats();
    assert_eq!((stats.running, stats.buffered), (2, 0));
    assert!(stats.released > 0);
    for id in &ids[2..] {
        let task = world.job(*id).await.task().clone();
        assert_eq!((task.state, task.counters.failures), (TaskState::Queued, 0), "others may have it");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_is_leased_than_there_are_slots_for() {
    let world = World::new();
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let wait = handler_fn(move |_| {
        let held = held.clone();
        async move {
            drop(held.acquire().await);
            Outcome::Completed(Json::null())
        }
    });
    let prefetch = Prefetch { cap: 8, span: Millis::secs(1) };
    let pool = world.pool(Registry::new().with("wait", wait), PoolConfig { prefetch, ..workers(4) });
    let ids = world.submit_all(jobs("wait", 60)).await;
    settle_down().await;
    assert_eq!((pool.stats().leased, pool.stats().running), (4, 4), "no more than it has slots for");
    gate.add_permits(1000);
    for id in ids {
        world.end(id).await;
    }
    assert_eq!(pool.stats().completed, 60);
}
