//! Flows in the hands of a program: pause, recovery, reruns, jobs after jobs.

use crate::world::{World, settle_down, workers};
use orchestrator_core::flow::advance::NoRecovery;
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::{Document, Failure, JobState, Json, Key, Meta, Millis, NewJob, Priority};
use orchestrator_engine::{FlowError, JobError, Verb};
use orchestrator_store::FlowChanged;
use orchestrator_worker::{Registry, Work, typed};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::sleep;

/// `add` adds one after a second; `broken` fails for good until `mended` counts as many attempts.
pub fn handlers(mended: Arc<AtomicU32>) -> Registry {
    Registry::new()
        .with(
            "add",
            typed(|n: u64, _| async move {
                sleep(Duration::from_secs(1)).await;
                Ok(n + 1)
            }),
        )
        .with(
            "broken",
            typed(move |n: u64, work: Work| {
                let mended = mended.clone();
                async move {
                    if mended.load(SeqCst) > work.attempt() {
                        return Err(Failure::permanent(format!(
                            "attempt {} found it broken",
                            work.attempt()
                        )));
                    }
                    Ok(n * 100)
                }
            }),
        )
}

/// Three tasks in a row: input, plus one, times a hundred, plus one.
pub fn chain() -> Arc<Plan> {
    let flow = Flow::new("chain")
        .max_recoveries(2)
        .task(Task::new("first", "add").estimate(Millis::secs(1)).with("{{ input.n }}"))
        .task(Task::new("second", "broken").needs(["first"]).with("{{ tasks.first.output }}"))
        .task(
            Task::new("third", "add")
                .title("The last one")
                .needs(["second"])
                .with("{{ tasks.second.output }}"),
        );
    Arc::new(flow.plan().unwrap())
}

pub fn input(n: u64) -> NewJob {
    NewJob::of_flow(chain()).payload(json!({ "n": n }).into())
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_the_next_task_back() {
    let world = World::new();
    let _pool = world.pool(handlers(Arc::default()), workers(2));
    let handle = world.engine.start(input(1)).await.unwrap();
    settle_down().await;
    assert_eq!(handle.pause().await.unwrap(), JobState::Pausing);
    sleep(Duration::from_secs(60)).await;
    let progress = handle.progress().await.unwrap();
    assert_eq!((progress.status, progress.completed_tasks, progress.eta), ("paused", 1, None));
    assert!(matches!(
        handle.pause().await,
        Err(JobError::Refused { verb: Verb::Pause, state: JobState::Paused, .. })
    ));
    handle.resume().await.unwrap();
    assert_eq!(handle.wait(None).await.unwrap().job().state, JobState::Completed);
    let error = handle.resume().await.unwrap_err();
    let expected =
        format!("job {} is completed and cannot be resumed: only a paused job goes on", handle.id());
    assert_eq!((error.to_string(), error.code()), (expected, "wrong_state"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_recovered_from_a_task_as_often_as_its_flow_allows() {
    let world = World::new();
    let mended = Arc::new(AtomicU32::new(u32::MAX));
    let _pool = world.pool(handlers(mended.clone()), workers(2));
    let handle = world.engine.start(input(1)).await.unwrap();
    let job = handle.wait(None).await.unwrap().into_job();
    assert_eq!(job.state, JobState::Failed);
    let progress = handle.progress().await.unwrap();
    assert_eq!((progress.failed_tasks, progress.skipped_tasks, progress.progress), (1, 1, 33));
    let second = &progress.tasks[1];
    assert_eq!(second.error_message.as_deref(), Some("attempt 1 found it broken"));
    assert_eq!(second.retry_count, 0, "a final error is not retried");
    let listed = |jobs: Vec<orchestrator_store::JobView>| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
    assert_eq!(listed(world.engine.failed(10).await.unwrap()), [handle.id()]);
    assert_eq!(listed(world.engine.recoverable(10).await.unwrap()), [handle.id()]);
    assert!(world.engine.active(10).await.unwrap().is_empty());

    let unknown = handle.recover(Some("secnd")).await.unwrap_err().to_string();
    assert!(unknown.ends_with("has no task \"secnd\", only: first, second, third"), "{unknown}");
    for recovery in 1..=2 {
        handle.recover(Some("second")).await.unwrap();
        let job = handle.wait(None).await.unwrap().into_job();
        assert_eq!((job.state, job.recoveries), (JobState::Failed, recovery));
        assert_eq!(job.tasks[0].counters.attempt, 1, "what came before is kept");
        assert_eq!(job.tasks[1].counters.attempt, recovery + 1);
    }
    let exhausted = handle.recover(None).await.unwrap_err();
    assert!(matches!(exhausted, JobError::NoRecovery { why: NoRecovery::Exhausted(2), .. }));
    assert!(exhausted.to_string().ends_with("; rerun it as a new job"), "{exhausted}");
    assert!(world.engine.recoverable(10).await.unwrap().is_empty());

    // An operator may still retry.
    mended.store(0, SeqCst);
    handle.retry().await.unwrap();
    assert_eq!(listed(world.engine.active(10).await.unwrap()), [handle.id()]);
    let job = handle.wait(None).await.unwrap().into_job();
    assert_eq!((job.state, job.output.unwrap().value()), (JobState::Completed, json!(201)));
}

#[tokio::test(start_paused = true)]
async fn a_rerun_is_a_new_job_on_the_same_version() {
    let world = World::new();
    let _pool = world.pool(handlers(Arc::default()), workers(2));
    assert_eq!(world.engine.apply(chain()).await.unwrap(), FlowChanged::Created(1));
    assert_eq!(world.engine.apply(chain()).await.unwrap(), FlowChanged::Unchanged(1));
    let plan = world.engine.plan("chain", None).await.unwrap();
    let old = NewJob::of_flow(plan)
        .payload(json!({ "n": 1 }).into())
        .key(Key::new("once"))
        .tenant("acme")
        .priority(Priority::High);
    let old = world.engine.start(old).await.unwrap();
    old.wait(None).await.unwrap();

    // Meanwhile the flow changes.
    let other = Flow::new("chain").task(Task::new("only", "add").with("{{ input.n }}")).plan().unwrap();
    assert_eq!(world.engine.apply(Arc::new(other)).await.unwrap(), FlowChanged::Created(2));
    for (edited, expected) in [(None, 201), (Some(json!({ "n": 5 })), 601)] {
        let new = old.rerun(edited.map(Json::from)).await.unwrap();
        assert_ne!(new.id(), old.id());
        let job = new.wait(None).await.unwrap().into_job();
        assert_eq!((job.output.unwrap().value(), job.flow.unwrap().version), (json!(expected), 1));
        assert_eq!((job.previous, job.key, &*job.tenant), (Some(old.id()), None, "acme"));
        assert_eq!(job.priority, Priority::High);
    }
    let missing = world.engine.plan("chian", None).await.unwrap_err();
    assert!(matches!(missing, FlowError::NotFound(_)), "{missing}");
    let missing = world.engine.plan("chain", Some(9)).await.unwrap_err();
    assert_eq!(missing.to_string(), "there is no version 9 of the flow chain");
}

#[tokio::test(start_paused = true)]
async fn a_rerun_of_a_queue_job_keeps_its_rules() {
    let world = World::new();
    let _pool = world.pool(handlers(Arc::default()), workers(1));
    let old = world.engine.start(NewJob::new("add").payload(json!(1).into())).await.unwrap();
    old.wait(None).await.unwrap();
    let new = old.rerun(Some(json!(7).into())).await.unwrap();
    let job = new.wait(None).await.unwrap().into_job();
    assert_eq!((job.previous, job.output.unwrap().value()), (Some(old.id()), json!(8)));
    let progress = new.progress().await.unwrap();
    assert_eq!((progress.flow, progress.total_steps, progress.progress), (None, 1, 100));
}

#[tokio::test(start_paused = true)]
async fn a_rerun_takes_along_what_its_job_carries() {
    let world = World::new();
    let meta =
        Meta { context: Some(json!({"order": 7}).into()), user: Some("ann".into()), ..Meta::default() };
    let document = Document::new("a.txt", "text/plain", *b"abc");
    let old = NewJob::new("add").payload(json!(1).into()).meta(meta.clone()).document(document.clone());
    let old = world.engine.start(old).await.unwrap();
    let new = old.rerun(Some(json!(7).into())).await.unwrap();
    assert_eq!(new.view().await.unwrap().meta, meta);
    assert_eq!(world.engine.store().document(new.id()).await.unwrap(), Some(document));
}

#[tokio::test(start_paused = true)]
async fn one_job_runs_after_another() {
    let world = World::new();
    let _pool = world.pool(handlers(Arc::default()), workers(4));
    let first = world.engine.start(input(1)).await.unwrap();
    let second = world.engine.start(input(2).after(first.id())).await.unwrap();
    settle_down().await;
    let progress = second.progress().await.unwrap();
    assert_eq!((progress.status, progress.eta), ("pending", None));
    let (one, two) = tokio::join!(first.wait(None), second.wait(None));
    let (one, two) = (one.unwrap().into_job(), two.unwrap().into_job());
    assert_eq!((one.state, two.state), (JobState::Completed, JobState::Completed));
    assert!(two.started.unwrap() >= one.ended.unwrap());
    // Where the first ends badly, the second is cancelled, and who waits for it hears of it.
    let first = world.engine.start(input(1)).await.unwrap();
    let second = world.engine.start(input(2).after(first.id())).await.unwrap();
    let (waited, _) = tokio::join!(second.wait(None), first.cancel());
    let job = waited.unwrap().into_job();
    assert_eq!(job.state, JobState::Cancelled);
    assert!(job.reason.unwrap().contains("which is cancelled"));
}
