//! Examples of the catalog: counts, lists, pages.

use crate::conformance::snapshot::Snapshot;
use crate::conformance::world::*;
use crate::verbs::Command;
use crate::views::{JobFilter, LineFilter, Page};
use orchestrator_core::{ErrorClass, JobId, Millis, NewJob, Outcome, TaskSpec, TaskState};
use std::sync::Arc;

pub(super) async fn stats_count_every_place(world: &World) {
    world.store.submit(vec![job(); 9]).await.unwrap();
    let leased = world.lease(8).await;
    world.complete(&leased[0]).await;
    world.complete(&leased[1]).await;
    world.settle(leased[2].held(), Outcome::Skipped(json("1"))).await;
    world.fail(&leased[3]).await;
    world.settle(leased[4].held(), failed(ErrorClass::Network)).await;
    world.control(Command::Cancel(leased[5].task.job)).await;
    world.add(job().run_at(START + Millis::hours(1))).await;
    let line = world.line().await;
    assert_eq!((line.ready + line.parked, line.scheduled, line.retrying, line.running), (1, 1, 1, 2));
    assert_eq!((line.completed, line.skipped, line.failed, line.cancelled), (2, 1, 1, 1));

    world.add(NewJob::with_spec(Arc::new(TaskSpec::new("b").on_queue("z")))).await;
    world.add(NewJob::with_spec(Arc::new(TaskSpec::new("a").on_queue("z")))).await;
    world.add(NewJob::with_spec(Arc::new(TaskSpec::new("zz").on_queue("a")))).await;
    let lines = world.store.stats().await.unwrap().lines;
    let names: Vec<_> = lines.iter().map(|line| (&*line.queue, &*line.handler)).collect();
    assert_eq!(names, [("a", "zz"), ("default", HANDLER), ("z", "a"), ("z", "b")], "in order of their names");
}

pub(super) async fn stats_know_the_oldest(world: &World) {
    let moments = async || {
        let line = world.line().await;
        [line.oldest_queued, line.oldest_running, line.oldest_failed]
    };
    let at = |ms| Some(START + Millis(ms));
    world.add(job()).await;
    world.advance(Millis(10));
    world.add(job()).await;
    assert_eq!(moments().await, [at(0), None, None]);
    world.advance(Millis(10));
    let leased = world.lease_one().await;
    assert_eq!(moments().await, [at(10), at(20), None], "since its attempt started, not since it came");
    world.advance(Millis(10));
    world.fail(&leased).await;
    assert_eq!(moments().await, [at(10), None, at(30)]);
    world.work_off(1).await;
    world.control(Command::Retry(leased.task.job)).await;
    assert_eq!(moments().await, [at(0), None, None]);
    world.work_off(1).await;
    assert_eq!(moments().await, [None; 3], "a line that had work stays in the counts");
}

/// Reads page after page.
async fn pages<T, I: Copy>(
    size: u32,
    id: impl Fn(&T) -> I,
    read: impl AsyncFn(Option<I>) -> Vec<T>,
) -> Vec<I> {
    let mut seen = vec![];
    loop {
        let page = read(seen.last().copied()).await;
        assert!(page.len() <= size as usize, "a page of {} for a limit of {size}", page.len());
        if page.is_empty() {
            return seen;
        }
        seen.extend(page.iter().map(&id));
    }
}

fn line(queue: Option<&str>, handler: Option<&str>) -> LineFilter {
    LineFilter { queue: queue.map(Arc::from), handler: handler.map(Arc::from) }
}

pub(super) async fn lists_page_and_filter(world: &World) {
    let mut ids = vec![];
    for n in 0..12 {
        let spec = TaskSpec::new(["work", "b"][n % 2]).on_queue(["default", "q"][n / 2 % 2]);
        ids.push(world.add(NewJob::with_spec(Arc::new(spec))).await);
        // Several jobs in one millisecond, and several milliseconds.
        world.advance(Millis((n % 3 == 0).into()));
    }
    let leased = world.lease(2).await;
    assert_eq!(leased.iter().map(|leased| leased.task.job).collect::<Vec<_>>(), [ids[0], ids[4]]);
    world.complete(&leased[0]).await;

    let list = async |filter: JobFilter, size| {
        let read = async |after| world.store.list(filter.clone(), Page { after, limit: size }).await.unwrap();
        pages(size, |job| job.id, read).await
    };
    let pick = |numbers: &[usize]| numbers.iter().map(|n| ids[*n]).collect::<Vec<_>>();
    for size in [1, 5, 12, 100] {
        assert_eq!(list(JobFilter::default(), size).await, ids, "in order of submission, pages of {size}");
        let filter = JobFilter { line: line(Some("q"), None), ..JobFilter::default() };
        assert_eq!(list(filter, size).await, pick(&[2, 3, 6, 7, 10, 11]));
        let filter = JobFilter { line: line(Some("q"), Some("b")), ..JobFilter::default() };
        assert_eq!(list(filter, size).await, pick(&[3, 7, 11]));
        let filter = JobFilter {
            line: line(None, Some("work")),
            task: Some(TaskState::Queued),
            ..JobFilter::default()
        };
        assert_eq!(list(filter, size).await, pick(&[2, 6, 8, 10]));
    }
    for (state, expected) in
        [(TaskState::Running, pick(&[4])), (TaskState::Completed, pick(&[0])), (TaskState::Failed, vec![])]
    {
        assert_eq!(
            list(JobFilter { task: Some(state), ..JobFilter::default() }, 5).await,
            expected,
            "{state}"
        );
    }
    for view in world.jobs().await {
        assert_eq!(view, world.job(view.id).await, "a list shows what the single look shows");
    }
}

pub(super) async fn dead_letters_page_and_filter(world: &World) {
    let mut ids = vec![];
    for handler in ["work", "b", "work", "work", "b"] {
        ids.push(world.add(NewJob::with_spec(Arc::new(TaskSpec::new(handler)))).await);
    }
    let mut leased = world.store.lease(ask_for(&["default"], &["work", "b"], 9)).await.unwrap().tasks;
    leased.sort_by_key(|leased| std::cmp::Reverse(ids.iter().position(|id| *id == leased.task.job)));
    for attempt in &leased {
        world.advance(Millis(1));
        world.fail(attempt).await;
    }
    let list = async |filter: LineFilter, size| {
        let read = async |after| world.store.dead_letters(filter.clone(), after, size).await.unwrap();
        let tasks = pages(size, |dead| dead.task, read).await;
        tasks.into_iter().map(|task| task.job).collect::<Vec<_>>()
    };
    for size in [1, 2, 100] {
        assert_eq!(list(LineFilter::default(), size).await, ids, "by job, not by when they failed");
        assert_eq!(list(line(None, Some("b")), size).await, [ids[1], ids[4]]);
        assert_eq!(list(line(Some("default"), Some("work")), size).await, [ids[0], ids[2], ids[3]]);
        assert_eq!(list(line(Some("q"), None), size).await, []);
    }
}

pub(super) async fn an_empty_store_shows_nothing(world: &World) {
    assert_eq!(world.jobs().await, []);
    assert_eq!(world.store.stats().await.unwrap().lines, []);
    assert_eq!(world.store.limits().await.unwrap(), []);
    assert_eq!(journal(&*world.store).await, []);
    assert_eq!(world.store.job(JobId::from_parts(START, 1)).await.unwrap(), None);
    assert_eq!(world.now(), START, "a store goes by the clock that it was given");
}

pub(super) async fn a_check_leaves_no_trace(world: &World) {
    world.add(job()).await;
    let before = Snapshot::of(&*world.store).await;
    let told = journal(&*world.store).await;
    for _ in 0..3 {
        world.store.check().await.unwrap();
    }
    Snapshot::of(&*world.store).await.same_as(&before).unwrap();
    assert_eq!(journal(&*world.store).await, told);
}
