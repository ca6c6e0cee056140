//! What is taken in, what is refused, and what comes in twice.

use crate::flows::handlers;
use crate::world::{World, workers};
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::{JobId, JobState, Key, NewJob, Timestamp};
use orchestrator_engine::JobError;
use orchestrator_store::Submitted;
use orchestrator_worker::{PoolConfig, Registry, typed};
use serde_json::{Value, json};
use std::sync::Arc;

fn keyed() -> Arc<Plan> {
    let flow = Flow::new("keyed")
        .input_schema(json!({
            "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "url": {"type": "string"}},
        }))
        .idempotency("{{ input.url | normalize_url }}", None)
        .task(Task::new("only", "add").with("{{ input.n }}"));
    Arc::new(flow.plan().unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_submit_is_told_by_field() {
    let world = World::new();
    let nobody = JobId::from_parts(Timestamp::from_millis(1), 99);
    for (job, field, part) in [
        (NewJob::of_flow(keyed()).payload(json!({"n": "x", "url": "a"}).into()), "n", "whole number"),
        (NewJob::of_flow(keyed()).payload(json!({"n": 1}).into()), "idempotency.key", "url"),
        (NewJob::new("add").after(nobody), "after", "there is no job"),
    ] {
        let error = world.engine.start(job).await.unwrap_err();
        let JobError::Invalid { problems } = &error else { panic!("{error}") };
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].field.contains(field), "{problems:?}");
        assert!(problems[0].message.contains(part), "{problems:?}");
    }
    assert!(world.engine.active(10).await.unwrap().is_empty());
    let missing = world.engine.handle(nobody).cancel().await.unwrap_err();
    assert!(matches!(missing, JobError::NotFound(id) if id == nobody));
}

#[tokio::test(start_paused = true)]
async fn a_key_with_another_payload_is_a_conflict() {
    let world = World::new();
    let job = |n: u64| NewJob::new("add").key(Key::new("same")).payload(json!(n).into());
    let first = world.engine.start(job(1)).await.unwrap();
    assert_eq!(world.engine.start(job(1)).await.unwrap().id(), first.id());
    let error = world.engine.start(job(2)).await.unwrap_err();
    assert!(matches!(error, JobError::Conflict { id } if id == first.id()), "{error}");
    assert_eq!(error.code(), "key_conflict");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_submits_of_one_key_are_one_job_and_all_get_its_result() {
    let world = World::new();
    let pool = world.pool(handlers(Arc::default()), workers(4));
    let callers: Vec<_> = (0..1000)
        .map(|n| {
            let engine = world.engine.clone();
            tokio::spawn(async move {
                // The same page, however it is written.
                let url = format!("HTTP://Example.org:80/a/../b?utm_source={n}");
                let job = NewJob::of_flow(keyed()).payload(json!({"n": 41, "url": url}).into());
                let submitted = engine.submit(vec![job]).await.unwrap().remove(0);
                let job = engine.wait(submitted.id(), None).await.unwrap().into_job();
                (submitted, job.state, job.output.unwrap().value())
            })
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    let mut created = 0;
    for caller in callers {
        let (submitted, state, output) = caller.await.unwrap();
        created += u32::from(matches!(submitted, Submitted::Created { .. }));
        ids.insert(submitted.id());
        assert_eq!((state, output), (JobState::Completed, json!(42)));
    }
    assert_eq!((created, ids.len(), pool.stats().completed), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_output_over_the_limit_fails_its_task_for_good() {
    let world = World::new();
    let big = typed(|size: usize, _| async move { Ok("x".repeat(size)) });
    let config = PoolConfig { max_output: 1000, ..workers(1) };
    let _pool = world.pool(Registry::new().with("big", big), config);
    let start = async |size: usize| {
        let handle = world.engine.start(NewJob::new("big").payload(json!(size).into())).await.unwrap();
        handle.wait(None).await.unwrap().into_job()
    };
    assert_eq!(start(998).await.state, JobState::Completed);
    let job = start(999).await;
    assert_eq!((job.state, job.task().counters.attempt), (JobState::Failed, 1));
    let message = &job.task().history[0].message;
    assert!(message.starts_with("the output has 1001 bytes, over the limit of 1000"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn garbage_in_is_a_failure_that_no_retry_mends() {
    let world = World::new();
    let _pool = world.pool(handlers(Arc::default()), workers(1));
    let bad = NewJob::new("add").payload(json!({"n": 1}).into());
    let job = world.engine.start(bad).await.unwrap().wait(None).await.unwrap().into_job();
    assert_eq!((job.state, job.task().counters.attempt), (JobState::Failed, 1));
    let message = &job.task().history[0].message;
    assert!(
        message.starts_with("the input of main does not fit: invalid type: map, expected u64"),
        "{message}"
    );
    let registry = handlers(Arc::default());
    let check = |payload: Value| registry.get("add").unwrap().check(&payload.into());
    assert_eq!(check(json!(1)), []);
    assert_eq!(check(json!("x"))[0].field, "payload");
}
