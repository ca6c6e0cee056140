//! Work whose job was cancelled, or is past its deadline, really stops.

use crate::world::{Fault, Faulty, World, plan, settle_down, spec, workers};
use orchestrator_core::flow::{Flow, Task};
use orchestrator_core::{JobState, Json, Millis, NewJob, Outcome, TaskState};
use orchestrator_engine::{Engine, EngineConfig};
use orchestrator_store::Command;
use orchestrator_worker::{Pool, PoolConfig, Registry, handler_fn};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Notes when it was dropped, in milliseconds.
struct Grave(Arc<Mutex<Vec<u128>>>, Instant);

impl Drop for Grave {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(self.1.elapsed().as_millis());
    }
}

/// Handlers that never end: `polite` heeds its token, `deaf` does not. Both note when they were dropped.
fn endless(world: &World) -> (Registry, Arc<Mutex<Vec<u128>>>) {
    let ends = Arc::new(Mutex::new(vec![]));
    let (start, polite_ends, deaf_ends) = (world.started, ends.clone(), ends.clone());
    let polite = handler_fn(move |work| {
        let grave = Grave(polite_ends.clone(), start);
        async move {
            let _grave = grave;
            work.cancelled.cancelled().await;
            Outcome::Completed(Json::null())
        }
    });
    let deaf = handler_fn(move |_| {
        let grave = Grave(deaf_ends.clone(), start);
        async move {
            let _grave = grave;
            std::future::pending().await
        }
    });
    (Registry::new().with("polite", polite).with("deaf", deaf), ends)
}

fn job(handler: &str) -> NewJob {
    NewJob::with_spec(spec(handler).into())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_this_process_stops_the_work_at_once() {
    let world = World::new();
    let (registry, ends) = endless(&world);
    let pool = world.pool(registry, workers(2));
    let ids = world.submit_all(vec![job("polite"), job("deaf")]).await;
    settle_down().await;
    world.engine.control(ids.into_iter().map(Command::Cancel).collect()).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    let ends = ends.lock().unwrap();
    assert!((1..5).contains(&ends[0]), "at once: {ends:?}");
    assert!((2001..2005).contains(&ends[1]), "who does not listen, after the grace: {ends:?}");
    assert_eq!((pool.stats().lost, pool.stats().running), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_another_process_stops_the_work_within_a_second() {
    let world = World::new();
    let (registry, ends) = endless(&world);
    let _pool = world.pool(registry, workers(2));
    let id = world.submit(job("polite")).await;
    sleep(Duration::from_millis(10_300)).await;
    let elsewhere = Engine::new(world.store().clone(), EngineConfig::default());
    elsewhere.handle(id).cancel().await.unwrap();
    sleep(Duration::from_secs(2)).await;
    let ends = ends.lock().unwrap();
    assert!((10_300..11_310).contains(&ends[0]), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_does_not_answer_is_asked_again() {
    let world = World::new();
    let (registry, ends) = endless(&world);
    let source = Faulty::new(world.engine.source());
    plan(&source.script.lost, Fault::Before, 3);
    let pool = Pool::start(source, registry, workers(1));
    let id = world.submit(job("polite")).await;
    settle_down().await;
    world.engine.handle(id).cancel().await.unwrap();
    sleep(Duration::from_secs(10)).await;
    assert!((1000..6000).contains(&ends.lock().unwrap()[0]), "{ends:?}");
    assert_eq!(pool.stats().running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_makes_room_for_the_next() {
    let world = World::new();
    let (registry, _) = endless(&world);
    let registry = registry.with("noop", handler_fn(|_| async { Outcome::Completed(Json::null()) }));
    let _pool = world.pool(registry, workers(1));
    let stuck = world.submit(job("deaf")).await;
    settle_down().await;
    let next = world.submit(job("noop")).await;
    world.engine.handle(stuck).cancel().await.unwrap();
    assert_eq!(world.end(next).await.state, JobState::Completed);
    assert!(world.ms() < 2100, "as soon as the grace is over: {}", world.ms());
}

#[tokio::test(start_paused = true)]
async fn a_job_past_its_deadline_is_stopped_and_its_waiter_told() {
    let world = World::without_polling();
    let (registry, ends) = endless(&world);
    let config = PoolConfig { watch: Millis::hours(1), ..workers(1) };
    let _pool = world.pool(registry, config);
    let _sweeper = world.engine.start_sweeper();
    let flow = Flow::new("slow")
        .timeout(Millis::secs(30))
        .task(Task::new("stuck", "polite").timeout(Millis::mins(5)))
        .task(Task::new("after", "polite").needs(["stuck"]));
    let handle = world.engine.start(NewJob::of_flow(flow.plan().unwrap().into())).await.unwrap();
    let job = handle.wait(None).await.unwrap().into_job();
    assert_eq!(job.state, JobState::TimedOut);
    assert!(job.tasks.iter().all(|task| task.state == TaskState::TimedOut), "{job:?}");
    assert!((30_000..31_500).contains(&world.ms()), "{}", world.ms());
    settle_down().await;
    assert_eq!(ends.lock().unwrap().len(), 1, "and the handler is told at once");
}
