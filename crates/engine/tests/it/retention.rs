//! What is older than is kept goes, and is in the archive before.

use crate::world::*;
use orchestrator_core::{JobId, Millis, Outcome};
use orchestrator_engine::{PageSize, Pruned, Retention, RetentionError};
use orchestrator_store::{Command, JobFilter, Page};
use orchestrator_worker::{Registry, handler_fn};
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

fn registry() -> Registry {
    Registry::new().with("work", handler_fn(|_| async { Outcome::Completed(number(1)) }))
}

/// Runs jobs to their ends.
async fn done(world: &World, count: usize) -> Vec<JobId> {
    let pool = world.pool(registry(), workers(4));
    let ids = world.submit_all(jobs("work", count)).await;
    for id in &ids {
        world.end(*id).await;
    }
    pool.shutdown(Millis(0)).await;
    ids
}

async fn left(world: &World) -> Vec<JobId> {
    let page = Page { after: None, limit: 1000 };
    let jobs = world.store().list(JobFilter::default(), page).await.unwrap();
    jobs.into_iter().map(|job| job.id).collect()
}

/// Completed jobs go after an hour, in small pages.
fn an_hour() -> Retention {
    let page = PageSize { jobs: 7, look: 5, ..PageSize::default() };
    Retention { completed: Some(Millis::hours(1)), page, ..Retention::default() }
}

fn archived_in(dir: &Path) -> Retention {
    Retention { archive: Some(dir.to_owned()), ..an_hour() }
}

/// The lines of the archive.
fn archived(dir: &Path) -> Vec<serde_json::Value> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    let texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_old_goes_and_the_rest_stays() {
    let world = World::new();
    done(&world, 40).await;
    let live = world.submit_all(jobs("nobody", 1)).await;
    let running = world.engine.start_retention(an_hour()).unwrap();
    sleep(Duration::from_secs(1800)).await;
    let young = done(&world, 3).await;
    assert_eq!(left(&world).await.len(), 44, "nothing is old enough");
    sleep(Duration::from_secs(2000)).await;
    assert_eq!(left(&world).await, [live, young].concat());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_stepped_over_goes_when_its_time_has_come() {
    let world = World::new();
    let late = world.submit_all(jobs("work", 1)).await;
    world.engine.control(vec![Command::Pause(late[0])]).await.unwrap();
    done(&world, 9).await;
    let running = world.engine.start_retention(an_hour()).unwrap();
    sleep(Duration::from_secs(3700)).await;
    assert_eq!(left(&world).await, late, "it lives");
    world.engine.control(vec![Command::Resume(late[0])]).await.unwrap();
    done(&world, 1).await;
    sleep(Duration::from_secs(3 * 3600)).await;
    assert_eq!(left(&world).await, []);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_where_everything_stays() {
    let world = World::new();
    assert!(Retention::default().is_off());
    assert!(world.engine.start_retention(Retention::default()).is_none());
}

#[tokio::test(start_paused = true)]
async fn jobs_are_in_the_archive_before_they_go() {
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let ids = done(&world, 20).await;
    let whole = serde_json::to_value(world.job(ids[3]).await).unwrap();
    sleep(Duration::from_secs(3700)).await;
    let count = world.engine.prunable(&archived_in(dir.path())).await.unwrap();
    assert_eq!(count, Pruned { jobs: 20, tasks: 20, ..Pruned::default() });
    assert_eq!(left(&world).await.len(), 20, "counting removes nothing");

    let mut steps = vec![];
    let pruned =
        world.engine.prune(&archived_in(dir.path()), |so_far| steps.push(so_far.jobs)).await.unwrap();
    assert_eq!(pruned, Pruned { jobs: 20, tasks: 20, archived: 20, journal: 0 });
    assert!(steps.len() > 3 && steps.is_sorted(), "it tells how far it is: {steps:?}");
    assert_eq!(left(&world).await, []);
    let lines = archived(dir.path());
    assert_eq!(lines.len(), 20);
    assert!(lines.contains(&whole), "each job is whole");
    let again = world.engine.prune(&archived_in(dir.path()), |_| {}).await.unwrap();
    assert_eq!(again, Pruned::default());
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_cannot_be_written_keeps_everything() {
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("archive");
    std::fs::write(&place, "a file, not a directory").unwrap();
    done(&world, 9).await;
    let running = world.engine.start_retention(archived_in(&place)).unwrap();
    sleep(Duration::from_secs(3700)).await;
    let error = world.engine.prune(&archived_in(&place), |_| {}).await.unwrap_err();
    assert!(matches!(error, RetentionError::Archive { .. }), "{error}");
    assert_eq!(left(&world).await.len(), 9);

    std::fs::remove_file(&place).unwrap();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(left(&world).await, [], "it goes on by itself");
    assert_eq!(archived(&place).len(), 9);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_writes_to_an_archive() {
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    done(&world, 3).await;
    sleep(Duration::from_secs(3700)).await;
    let other = std::fs::File::create(dir.path().join("archive.lock")).unwrap();
    other.lock().unwrap();
    let error = world.engine.prune(&archived_in(dir.path()), |_| {}).await.unwrap_err();
    assert!(matches!(error, RetentionError::Elsewhere { .. }), "{error}");
    assert_eq!(left(&world).await.len(), 3);
    drop(other);
    let pruned = world.engine.prune(&archived_in(dir.path()), |_| {}).await.unwrap();
    assert_eq!((pruned.jobs, archived(dir.path()).len()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_line_that_a_crash_left_unfinished_is_cut_off() {
    let world = World::new();
    let dir = tempfile::tempdir().unwrap();
    done(&world, 2).await;
    sleep(Duration::from_secs(3700)).await;
    world.engine.prune(&archived_in(dir.path()), |_| {}).await.unwrap();
    let file = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
    let file =
        file.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "jsonl")).unwrap();
    let torn = std::fs::read_to_string(&file).unwrap() + "{\"id\":\"half a";
    std::fs::write(&file, torn).unwrap();
    done(&world, 1).await;
    sleep(Duration::from_secs(3700)).await;
    world.engine.prune(&archived_in(dir.path()), |_| {}).await.unwrap();
    assert_eq!(archived(dir.path()).len(), 3, "every line reads");
}

#[tokio::test(start_paused = true)]
async fn the_journal_goes_by_its_own_age() {
    let world = World::new();
    done(&world, 5).await;
    let only = Retention { journal: Some(Millis::hours(1)), ..Retention::default() };
    sleep(Duration::from_secs(3700)).await;
    let pruned = world.engine.prune(&only, |_| {}).await.unwrap();
    assert!(pruned.journal > 0 && pruned.jobs == 0, "{pruned:?}");
    assert_eq!(left(&world).await.len(), 5);
    let kept = world.store().journal_range().await.unwrap();
    assert_eq!(kept.oldest, kept.newest.entry, "the newest entry stays");
}
