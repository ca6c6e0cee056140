//! Jobs run to their end: results, retries, time limits, panics, limits.

use crate::world::{World, jobs, settle_down, spec, workers};
use orchestrator_core::{
    ErrorClass, Failure, JobState, Json, LimitKey, LimitRule, Limits, Millis, NewJob, Outcome,
};
use orchestrator_store::{AttemptEnd, LimitChange, RuleOrigin};
use orchestrator_worker::{PoolConfig, Registry, Report, handler_fn};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

fn echo() -> Registry {
    Registry::new().with("echo", handler_fn(|work| async move { Outcome::Completed(work.leased.payload) }))
}

#[tokio::test(start_paused = true)]
async fn jobs_run_to_their_end_with_their_results() {
    let world = World::new();
    let pool = world.pool(echo(), workers(4));
    let ids = world.submit_all(jobs("echo", 60)).await;
    for (n, id) in ids.iter().enumerate() {
        let job = world.end(*id).await;
        assert_eq!(job.state, JobState::Completed);
        assert_eq!(job.task().output.as_ref().unwrap().as_str(), n.to_string());
        assert_eq!(job.task().counters.attempt, 1);
    }
    let stats = pool.stats();
    assert_eq!((stats.leased, stats.completed, stats.settled()), (60, 60, 60));
    assert_eq!((stats.running, stats.buffered), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_run_on_several_threads() {
    let world = World::new();
    let pool = world.pool(echo(), workers(16));
    let ids = world.submit_all(jobs("echo", 150)).await;
    for id in ids {
        assert_eq!(world.end(id).await.state, JobState::Completed);
    }
    let summary = pool.stop().await;
    assert_eq!((pool.stats().completed, summary.unreported), (150, 0));
}

#[tokio::test(start_paused = true)]
async fn workers_start_tasks_in_order() {
    let world = World::new();
    let order = Arc::new(Mutex::new(vec![]));
    let seen = order.clone();
    let note = handler_fn(move |work| {
        seen.lock().unwrap().push(work.leased.payload.read::<usize>().unwrap());
        async { Outcome::Completed(Json::null()) }
    });
    let ids = world.submit_all(jobs("note", 50)).await;
    let _pool = world.pool(Registry::new().with("note", note), workers(1));
    world.end(ids[49]).await;
    assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_retry_starts_when_it_falls_due() {
    let world = World::without_polling();
    let starts = Arc::new(Mutex::new(vec![]));
    let (seen, start) = (starts.clone(), world.started);
    let flaky = handler_fn(move |work| {
        seen.lock().unwrap().push(start.elapsed().as_millis());
        async move {
            match work.leased.counters.failures {
                0..2 => Outcome::Failed(Failure::transient("not yet")),
                _ => Outcome::Completed(Json::null()),
            }
        }
    });
    let pool = world.pool(Registry::new().with("flaky", flaky), workers(2));
    let id = world.submit(NewJob::with_spec(spec("flaky").into())).await;
    let job = world.end(id).await;
    assert_eq!(job.state, JobState::Completed);
    assert_eq!((job.task().counters.attempt, job.task().counters.failures), (3, 2));
    assert_eq!((pool.stats().retried, pool.stats().completed), (2, 1));
    let starts = starts.lock().unwrap().clone();
    for (at, due) in starts.iter().zip([0, 1000, 3000]) {
        assert!((due..due + 10).contains(at), "{starts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_cancelled_and_retried() {
    let world = World::new();
    let polite = handler_fn(|work| async move {
        if work.leased.counters.attempt == 1 {
            work.cancelled.cancelled().await;
            return Outcome::Failed(Failure::permanent("killed"));
        }
        Outcome::Completed(Json::null())
    });
    let pool = world.pool(Registry::new().with("polite", polite), workers(1));
    let id = world.submit(NewJob::with_spec(spec("polite").with_timeout(Some(Millis::secs(5))).into())).await;
    let job = world.end(id).await;
    assert_eq!(job.state, JobState::Completed);
    assert_eq!(job.task().history[0].how, AttemptEnd::Failed(ErrorClass::Timeout));
    assert!(job.task().history[0].message.contains("limit of 5s"), "{}", job.task().history[0].message);
    assert!((6000..6100).contains(&world.ms()), "5 s, and 1 s before the retry: {}", world.ms());
    assert_eq!(pool.stats().retried, 1);
}

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_its_token_is_dropped() {
    let world = World::new();
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let deaf = handler_fn(move |_| {
        let guard = OnDrop(flag.clone());
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let _pool = world.pool(Registry::new().with("deaf", deaf), workers(1));
    let mut rules = spec("deaf").with_timeout(Some(Millis::secs(5)));
    rules.retry.max_retries = 0;
    let id = world.submit(NewJob::with_spec(rules.into())).await;
    sleep(Duration::from_secs(6)).await;
    assert!(!dropped.load(SeqCst), "it gets a moment to clean up");
    assert_eq!(world.end(id).await.state, JobState::Failed);
    assert!(dropped.load(SeqCst));
    assert!((7000..7100).contains(&world.ms()), "{}", world.ms());
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_job_and_nothing_else() {
    let world = World::new();
    let shaky = handler_fn(|work| async move {
        assert!(work.leased.payload.as_str() != "0", "zero is too much for me");
        Outcome::Completed(Json::null())
    });
    let pool = world.pool(Registry::new().with("shaky", shaky), workers(1));
    let ids = world.submit_all(jobs("shaky", 3)).await;
    let bad = world.end(ids[0]).await;
    assert_eq!(bad.state, JobState::Failed);
    assert_eq!(bad.task().history[0].how, AttemptEnd::Failed(ErrorClass::Defect));
    assert!(bad.task().history[0].message.contains("zero is too much for me"), "{:?}", bad.task().history);
    for id in &ids[1..] {
        assert_eq!(world.end(*id).await.state, JobState::Completed);
    }
    assert_eq!((pool.stats().failed, pool.stats().completed), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_handler_cannot_claim_to_be_lost() {
    let world = World::new();
    let liar = Registry::new().with("liar", handler_fn(|_| async { Outcome::Lost }));
    let _pool = world.pool(liar, workers(1));
    let id = world.submit(NewJob::with_spec(spec("liar").into())).await;
    let job = world.end(id).await;
    assert_eq!((job.state, job.task().counters.crashes), (JobState::Failed, 0));
}

#[tokio::test(start_paused = true)]
async fn limits_hold_in_the_pool() {
    let world = World::new();
    let key: LimitKey = "host:example.org".parse().unwrap();
    let rule = LimitChange {
        key: "host:*".parse().unwrap(),
        rule: Some(LimitRule::at_most(2)),
        origin: RuleOrigin::Config,
    };
    world.store().set_limits(vec![rule]).await.unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now_in, most_in) = (now.clone(), most.clone());
    let fetch = handler_fn(move |_| {
        let (now, most) = (now_in.clone(), most_in.clone());
        async move {
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, SeqCst);
            Outcome::Completed(Json::null())
        }
    });
    let pool = world.pool(Registry::new().with("fetch", fetch), workers(8));
    let limits = Limits::new([key.clone()]).unwrap();
    let ids =
        world.submit_all(jobs("fetch", 10).into_iter().map(|job| job.limits(limits.clone())).collect()).await;
    settle_down().await;
    assert_eq!(pool.running_by_key(), [(key, 2)]);
    for id in ids {
        assert_eq!(world.end(id).await.state, JobState::Completed);
    }
    assert_eq!(most.load(SeqCst), 2);
    settle_down().await;
    assert_eq!(pool.running_by_key(), []);
    assert!((5000..5100).contains(&world.ms()), "a freed slot is used at once: {}", world.ms());
}

#[tokio::test(start_paused = true)]
async fn the_hook_hears_of_every_outcome_and_may_panic() {
    let world = World::new();
    let reports: Arc<Mutex<Vec<Report>>> = Arc::default();
    let heard = reports.clone();
    let config = PoolConfig {
        on_settled: Some(Arc::new(move |report| {
            heard.lock().unwrap().push(report.clone());
            panic!("a bad day");
        })),
        ..workers(1)
    };
    let half = handler_fn(|work| async move {
        sleep(Duration::from_secs(2)).await;
        match work.leased.payload.as_str() {
            "0" => Outcome::Failed(Failure::permanent("no zeros")),
            _ => Outcome::Completed(Json::null()),
        }
    });
    let _pool = world.pool(Registry::new().with("half", half), config);
    for id in world.submit_all(jobs("half", 2)).await {
        world.end(id).await;
    }
    settle_down().await;
    let reports: Vec<Report> =
        std::mem::take(&mut *reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0].failure.as_ref().unwrap().message, "no zeros");
    assert_eq!((reports[1].failure.is_none(), reports[1].took.as_secs()), (true, 2));
    assert_eq!(&*reports[1].spec.handler, "half");
}
