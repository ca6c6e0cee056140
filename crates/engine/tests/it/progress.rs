//! How far a job is, as a program is told.

use crate::flows::{handlers, input};
use crate::world::{World, settle_down, workers};
use orchestrator_core::flow::{Flow, Task};
use orchestrator_core::{Failure, JobState, Json, Millis, NewJob, Outcome, TaskState};
use orchestrator_worker::{Registry, Work, handler_fn, typed};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn a_flow_runs_to_its_end_and_tells_how_far_it_is() {
    let world = World::without_polling();
    let _pool = world.pool(handlers(Arc::default()), workers(2));
    let handle = world.engine.start(input(4)).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    let progress = serde_json::to_value(handle.progress().await.unwrap()).unwrap();
    let id = handle.id().to_string();
    let pending = |id: u32, name: &str, title: Option<&str>, handler: &str| {
        json!({
            "id": id, "name": name, "title": title, "type": handler, "status": "pending", "retry_count": 0,
            "error_message": null, "percent": 0, "elapsed": null, "expected": null, "due_in": null, "items": null,
        })
    };
    assert_eq!(
        progress,
        json!({
            "workflow_id": id, "job_id": id, "flow": "chain", "version": 1, "status": "running", "progress": 16,
            "current_step": 0, "total_steps": 3, "completed_tasks": 0, "failed_tasks": 0, "running_tasks": 1,
            "skipped_tasks": 0, "recovery_attempts": 0, "elapsed": "500ms", "eta": "2s500ms",
            "tasks": [
                {
                    "id": 0, "name": "first", "title": null, "type": "add", "status": "running", "retry_count": 0,
                    "error_message": null, "percent": 50, "elapsed": "500ms", "expected": "1s", "due_in": null,
                    "items": null,
                },
                pending(1, "second", None, "broken"),
                pending(2, "third", Some("The last one"), "add"),
            ],
        })
    );
    let job = handle.wait(None).await.unwrap().into_job();
    assert_eq!((job.state, job.output.unwrap().value()), (JobState::Completed, json!(501)));
    assert_eq!(world.ms(), 2000, "each task starts when the one before has ended");
    let progress = handle.progress().await.unwrap();
    assert_eq!((progress.progress, progress.current_step, progress.completed_tasks), (100, 3, 3));
    assert_eq!((progress.eta, progress.elapsed), (None, Some(Millis::secs(2))));
}

#[tokio::test(start_paused = true)]
async fn past_runs_tell_how_long_the_next_one_takes() {
    let world = World::new();
    let _pool = world.pool(handlers(Arc::default()), workers(2));
    world.engine.start(input(1)).await.unwrap().wait(None).await.unwrap();
    let handle = world.engine.start(input(2)).await.unwrap();
    settle_down().await;
    let progress = handle.progress().await.unwrap();
    assert_eq!(progress.tasks[2].expected, Some(Millis::secs(1)), "nobody estimated this one");
    let eta = progress.eta.unwrap();
    assert!((1900..=2100).contains(&eta.0), "{eta}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_shows_in_the_progress() {
    let world = World::new();
    let flaky = handler_fn(|work: Work| async move {
        match work.attempt() {
            1 | 2 => Outcome::Failed(Failure::transient("not yet")),
            _ => Outcome::Completed(Json::of(&work.name().to_owned()).unwrap()),
        }
    });
    let _pool = world.pool(Registry::new().with("flaky", flaky), workers(1));
    let plan = Flow::new("shaky").task(Task::new("try", "flaky")).plan().unwrap();
    let handle = world.engine.start(NewJob::of_flow(plan.into())).await.unwrap();
    settle_down().await;
    let progress = handle.progress().await.unwrap();
    assert_eq!((progress.status, progress.tasks[0].status), ("retrying", TaskState::Retrying));
    assert_eq!(
        (progress.tasks[0].retry_count, progress.tasks[0].error_message.as_deref()),
        (1, Some("not yet"))
    );
    assert!(progress.tasks[0].due_in.unwrap() > Millis(0));
    let job = handle.wait(None).await.unwrap().into_job();
    assert_eq!(job.output.unwrap().value(), json!("try"));
    let progress = handle.progress().await.unwrap();
    assert_eq!((progress.tasks[0].retry_count, &progress.tasks[0].error_message), (2, &None));
}

#[tokio::test(start_paused = true)]
async fn a_fan_out_counts_by_its_items() {
    let world = World::new();
    let _pool = world.pool(handlers(Arc::default()), workers(4));
    let flow = Flow::new("fan")
        .task(Task::new("each", "add").for_each("{{ input }}").concurrency(2))
        .task(Task::new("sum", "count").needs(["each"]).with("{{ tasks.each.output }}"));
    let _adder = world.pool(
        Registry::new().with("count", typed(|all: Vec<u64>, _| async move { Ok(all.iter().sum::<u64>()) })),
        workers(1),
    );
    let plan = Arc::new(flow.plan().unwrap());
    let handle = world.engine.start(NewJob::of_flow(plan).payload(json!([1, 2, 3, 4]).into())).await.unwrap();
    sleep(Duration::from_millis(1500)).await;
    let progress = handle.progress().await.unwrap();
    let items = progress.tasks[0].items.unwrap();
    assert_eq!((items.count, items.ended, items.running), (4, 2, 2));
    assert_eq!((progress.tasks[0].percent, progress.progress), (50, 25));
    assert_eq!(progress.eta, Some(Millis::secs(2)), "two at once, a second each, and one more task");
    let job = handle.wait(None).await.unwrap().into_job();
    assert_eq!(job.output.unwrap().value(), json!(14));
}
