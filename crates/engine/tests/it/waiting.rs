//! Intake, and waiting for the end of a job.

use crate::world::{World, jobs, settle_down, spec, workers};
use orchestrator_core::{JobId, JobState, Json, Millis, NewJob, Outcome, Timestamp, WorkerId};
use orchestrator_engine::{Engine, EngineConfig, SubmitError, WaitError, Waited};
use orchestrator_store::{Command, JobFilter, LeaseAsk, Page};
use orchestrator_worker::{Registry, handler_fn};
use std::time::Duration;
use tokio::time::sleep;

fn nap(secs: u64) -> Registry {
    let handler = handler_fn(move |_| async move {
        sleep(Duration::from_secs(secs)).await;
        Outcome::Completed(Json::null())
    });
    Registry::new().with("nap", handler)
}

fn job() -> NewJob {
    NewJob::with_spec(spec("nap").into())
}

#[tokio::test(start_paused = true)]
async fn one_bad_job_keeps_the_whole_batch_out() {
    let world = World::new();
    let bad = NewJob::new("not a name").payload(Json::of(&"x".repeat(2 << 20)).unwrap());
    let error = world.engine.submit(vec![job(), bad]).await.unwrap_err();
    let SubmitError::Invalid { index, problems } = &error else { panic!("{error}") };
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!((*index, fields), (1, vec!["handler", "payload"]));
    assert!(error.to_string().starts_with("job 1 of the batch is not valid: handler:"), "{error}");
    let listed = world.store().list(JobFilter::default(), Page { after: None, limit: 10 }).await.unwrap();
    assert!(listed.is_empty());
    assert!(world.engine.submit(vec![]).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_wait_for_one_job_in_flight() {
    let world = World::without_polling();
    let _pool = world.pool(nap(60), workers(1));
    let id = world.submit(job()).await;
    let late = async {
        sleep(Duration::from_secs(30)).await;
        world.engine.wait(id, None).await.unwrap()
    };
    let (one, two) = tokio::join!(world.engine.wait(id, None), late);
    assert_eq!(one.unwrap(), two);
    assert_eq!(two.job().state, JobState::Completed);
    assert_eq!(world.ms(), 60_000, "told at once, without polling");
    let again = world.engine.wait(id, Some(Duration::ZERO)).await.unwrap();
    assert_eq!(again, two, "an ended job is not waited for");
}

#[tokio::test(start_paused = true)]
async fn waiting_has_an_end() {
    let world = World::new();
    let _pool = world.pool(nap(60), workers(1));
    let id = world.submit(job()).await;
    let waited = world.engine.wait(id, Some(Duration::from_secs(5))).await.unwrap();
    assert!(matches!(&waited, Waited::TimedOut(job) if job.state == JobState::Running), "{waited:?}");
    assert_eq!(world.ms(), 5000);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_job_that_does_not_exist() {
    let world = World::new();
    let id = JobId::from_parts(Timestamp::from_millis(1), 99);
    let error = world.engine.wait(id, None).await.unwrap_err();
    assert!(matches!(error, WaitError::NotFound(missing) if missing == id));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_hears_of_a_sweep_that_ended_its_job() {
    let world = World::without_polling();
    let sweeper = world.engine.start_sweeper();
    let rules = orchestrator_core::TaskSpec { max_crashes: 1, ..spec("nap") };
    let id = world.submit(NewJob::with_spec(rules.into())).await;
    let ask = LeaseAsk {
        worker: WorkerId::new("gone"),
        queues: vec!["default".into()],
        handlers: vec!["nap".into()],
        slots: 1,
        ttl: Millis::secs(30),
        hold: Millis(0),
    };
    assert_eq!(world.store().lease(ask).await.unwrap().tasks.len(), 1);
    let job = world.end(id).await;
    assert_eq!((job.state, job.task().counters.crashes), (JobState::Failed, 1));
    assert!((30_000..31_500).contains(&world.ms()), "one sweep after the lease ran out: {}", world.ms());
    sweeper.stop().await;
}

#[tokio::test(start_paused = true)]
async fn sweeps_go_page_by_page() {
    let world = World::new();
    let engine = Engine::new(
        world.store().clone(),
        EngineConfig { sweep_page: 7, sweep_every: Millis::secs(100), ..EngineConfig::default() },
    );
    let ids = world.submit_all(jobs("nap", 40)).await;
    let ask = LeaseAsk {
        worker: WorkerId::new("gone"),
        queues: vec!["default".into()],
        handlers: vec!["nap".into()],
        slots: 40,
        ttl: Millis::secs(30),
        hold: Millis(0),
    };
    world.store().lease(ask).await.unwrap();
    sleep(Duration::from_secs(31)).await;
    let sweeper = engine.start_sweeper();
    settle_down().await;
    for id in ids {
        assert_eq!(world.job(id).await.task().counters.crashes, 1);
    }
    sweeper.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiter_hears_of_a_cancel() {
    let world = World::without_polling();
    let id = world.submit(job()).await;
    let cancel = async {
        sleep(Duration::from_secs(2)).await;
        world.engine.control(vec![Command::Cancel(id)]).await.unwrap()
    };
    let (ended, _) = tokio::join!(world.end(id), cancel);
    assert_eq!(ended.state, JobState::Cancelled);
    assert_eq!(world.ms(), 2000);
}

#[tokio::test(start_paused = true)]
async fn what_another_process_ends_is_found_by_polling() {
    let world = World::new();
    let _pool = world.pool(nap(60), workers(1));
    let elsewhere = Engine::new(world.store().clone(), EngineConfig::default());
    let id = world.submit(job()).await;
    let waited = elsewhere.wait(id, None).await.unwrap();
    assert_eq!(waited.job().state, JobState::Completed);
    assert!((60_000..=61_000).contains(&world.ms()), "{}", world.ms());
}
