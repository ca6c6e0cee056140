//! A dataset build as a flow: download → validate → deduplicate → label → store.
//!
//! `cargo run -p dataset-build-example` makes its own images in a scratch directory and runs the flow
//! on an SQLite file there, twice. The first job loses its connection once, and is retried. The second
//! is paused on its way, fails because something is missing, and is recovered from the step that failed.

#![expect(clippy::print_stdout, reason = "a program for people")]

mod steps;

use orchestrator_core::flow::def::{BackoffDef, TaskDefaults};
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::{JobState, Millis, NewJob, WorkerId};
use orchestrator_engine::{Engine, EngineConfig, JobHandle};
use orchestrator_store_sqlite::{Options, SqliteStore};
use orchestrator_worker::{Pool, PoolConfig, Registry, typed};
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// The steps by the names that the flow calls them by.
fn handlers() -> Registry {
    Registry::new()
        .with("download-images", typed(steps::download))
        .with("validate-images", typed(steps::validate))
        .with("deduplicate-images", typed(steps::deduplicate))
        .with("label-images", typed(steps::label))
        .with("store-dataset", typed(steps::store))
}

/// The flow. `with` says what a step gets: parts of the job's input and of what earlier steps returned.
fn dataset_build() -> Result<Arc<Plan>> {
    // Real flows keep the usual backoff of a second and more.
    let backoff = BackoffDef { initial: Some(Millis(100)), ..BackoffDef::default() };
    let flow = Flow::new("dataset-build")
        .description("Builds a dataset of labelled images")
        .max_recoveries(3)
        .defaults(TaskDefaults { backoff: Some(backoff), ..TaskDefaults::default() })
        .task(
            Task::new("download", "download-images")
                .title("Download images")
                .retries(3)
                .estimate(Millis(300))
                .with(json!({
                    "dir": "{{ input.dir }}/raw", "images": "{{ input.images }}", "flaky": "{{ input.flaky }}",
                })),
        )
        .task(
            Task::new("validate", "validate-images")
                .title("Validate images")
                .needs(["download"])
                .retries(2)
                .estimate(Millis(200))
                .with(json!({ "dir": "{{ input.dir }}/raw", "files": "{{ tasks.download.output.files }}" })),
        )
        .task(
            Task::new("deduplicate", "deduplicate-images")
                .title("Deduplicate images")
                .needs(["validate"])
                .retries(2)
                .estimate(Millis(150))
                .with(json!({ "dir": "{{ input.dir }}/raw", "files": "{{ tasks.validate.output.valid }}" })),
        )
        .task(
            Task::new("label", "label-images")
                .title("Generate labels")
                .needs(["deduplicate"])
                .retries(1)
                .estimate(Millis(100))
                .with(json!({
                    "dir": "{{ input.dir }}/raw",
                    "files": "{{ tasks.deduplicate.output.unique }}",
                    "model": "{{ input.dir }}/model.txt",
                })),
        )
        .task(
            Task::new("store", "store-dataset")
                .title("Store the dataset")
                .needs(["label"])
                .retries(2)
                .estimate(Millis(200))
                .with(json!({
                    "dir": "{{ input.dir }}/raw",
                    "labels": "{{ tasks.label.output }}",
                    "dataset": "{{ input.dir }}/dataset",
                })),
        )
        .output(json!({
            "downloaded": "{{ tasks.download.output.downloaded }}",
            "broken": "{{ tasks.validate.output.broken }}",
            "duplicates": "{{ tasks.deduplicate.output.duplicates }}",
            "stored": "{{ tasks.store.output.stored }}",
            "manifest": "{{ tasks.store.output.manifest }}",
        }));
    // Everything that is wrong with a flow is told at once.
    flow.plan()
        .map(Arc::new)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ").into())
}

#[tokio::main]
async fn main() -> Result {
    let scratch = tempfile::tempdir()?;
    let store = SqliteStore::open(&scratch.path().join("jobs.db"), Options::default())?;
    let engine = Engine::new(store.clone(), EngineConfig::default());
    let sweeper = engine.start_sweeper();
    let pool = Pool::start(engine.source(), handlers(), PoolConfig::new(WorkerId::new("builder")));

    // From now on jobs can be started by the flow's name, also by other programs on the same file.
    engine.apply(dataset_build()?).await?;
    retried(&engine, &scratch.path().join("one")).await?;
    recovered(&engine, &scratch.path().join("two")).await?;

    pool.shutdown(Millis::secs(5)).await;
    sweeper.stop().await;
    store.close();
    Ok(())
}

/// A job whose download loses its connection once.
async fn retried(engine: &Engine, dir: &Path) -> Result {
    println!("A build whose download is cut off once");
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("model.txt"), "100")?;
    let job = start(engine, dir, true).await?;
    follow(&job).await?;

    let done = job.view().await?;
    ensure(done.state == JobState::Completed, "the job completed")?;
    ensure(done.tasks[0].counters.attempt == 2, "the download took two attempts")?;
    let output = done.output.unwrap_or_default().value();
    println!("  {output}");
    check_dataset(&output)
}

/// A job that is paused on its way, and then fails because nobody has put a model in place.
async fn recovered(engine: &Engine, dir: &Path) -> Result {
    println!("A build that is paused, fails, and is recovered");
    std::fs::create_dir_all(dir)?;
    let job = start(engine, dir, false).await?;

    // The step that runs may finish; nothing new starts, and the job's clock stands still.
    job.pause().await?;
    while job.view().await?.state != JobState::Paused {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("  paused at {} %", job.progress().await?.progress);
    job.resume().await?;
    follow(&job).await?;

    let failed = job.view().await?;
    ensure(failed.state == JobState::Failed, "the job failed without a model")?;
    ensure(engine.recoverable(10).await?.iter().any(|found| found.id == job.id()), "it may be recovered")?;

    // Somebody mends it. What was done before `label` is kept.
    std::fs::write(dir.join("model.txt"), "100")?;
    job.recover(Some("label")).await?;
    follow(&job).await?;

    let done = job.view().await?;
    ensure(done.state == JobState::Completed, "the recovered job completed")?;
    ensure(done.recoveries == 1, "one recovery was counted")?;
    let attempts: Vec<_> = done.tasks.iter().map(|task| task.counters.attempt).collect();
    ensure(attempts == [1, 1, 1, 2, 1], "only the label step ran again")?;
    check_dataset(&done.output.unwrap_or_default().value())
}

async fn start(engine: &Engine, dir: &Path, flaky: bool) -> Result<JobHandle> {
    let plan = engine.plan("dataset-build", None).await?;
    let input = json!({ "dir": dir, "images": 40, "flaky": flaky });
    Ok(engine.start(NewJob::of_flow(plan).payload(input.into())).await?)
}

/// Tells how far a job is until it has ended.
async fn follow(job: &JobHandle) -> Result {
    loop {
        let ended = job.wait(Some(Duration::from_millis(150))).await?.job().state.is_terminal();
        let seen = job.progress().await?;
        let now = seen.tasks.iter().find(|task| !task.status.is_terminal());
        let step = now.map(|task| task.title.clone().unwrap_or_else(|| task.name.to_string()));
        let eta = seen.eta.map(|eta| format!(", {eta} left")).unwrap_or_default();
        println!(
            "  {:>3} %  {:<9}  {}/{} steps  {}{eta}",
            seen.progress,
            seen.status,
            seen.current_step,
            seen.total_steps,
            step.unwrap_or_default(),
        );
        if ended {
            for task in seen.tasks.iter().filter(|task| task.error_message.is_some()) {
                println!("  {}: {}", task.name, task.error_message.as_deref().unwrap_or_default());
            }
            return Ok(());
        }
    }
}

/// The numbers are known, as the images were made for this.
fn check_dataset(output: &Value) -> Result {
    for (field, expected) in [("downloaded", 40), ("broken", 8), ("duplicates", 7), ("stored", 25)] {
        ensure(output[field] == json!(expected), &format!("{field} is {expected}"))?;
    }
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(output["manifest"].as_str().unwrap_or("?"))?)?;
    let labels = manifest.as_object().map_or(0, serde_json::Map::len);
    ensure(labels == 25, "every stored image is in the manifest")
}

fn ensure(holds: bool, what: &str) -> Result {
    if holds { Ok(()) } else { Err(format!("expected that {what}").into()) }
}
