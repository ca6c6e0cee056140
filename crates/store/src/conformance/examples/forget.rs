//! Examples of removing what is over: jobs, and the beginning of the journal.

use crate::conformance::Fixture;
use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::journal::EventId;
use crate::retention::*;
use crate::verbs::{Command, Controlled, Settled, Submitted};
use crate::views::{JobFilter, Page};
use orchestrator_core::{ErrorClass, JobId, JobState, Key, Millis, TaskId, TaskState, Timestamp};

/// A job of the examples' line that has completed.
async fn completed(world: &World) -> JobId {
    let id = world.add(job()).await;
    world.complete(&world.lease_one().await).await;
    id
}

fn keyed() -> orchestrator_core::NewJob {
    job().key(Key::new("k"))
}

pub(super) async fn a_job_goes_with_all_that_belongs_to_it(world: &World) {
    let id = world.add(job()).await;
    world.settle(world.lease_one().await.held(), failed(ErrorClass::Network)).await;
    world.advance(Millis::secs(1));
    world.fail(&world.lease_one().await).await;
    let stays = completed(world).await;
    let before = world.line().await;
    assert_eq!((before.failed, before.completed), (1, 1));

    let ended = world.job(id).await.ended.unwrap();
    assert_eq!(world.forget(id).await, Forgot::Done);
    assert_eq!(world.store.job(id).await.unwrap(), None);
    assert_eq!(world.store.task(TaskId { job: id, index: 0 }).await.unwrap(), None);
    assert_eq!(world.jobs().await.iter().map(|job| job.id).collect::<Vec<_>>(), [stays]);
    assert_eq!(world.store.ids(id.to_string(), 9).await.unwrap(), []);
    assert_eq!(world.dead().await, []);
    let after = world.line().await;
    assert_eq!(
        (after.failed, after.completed, after.oldest_failed),
        (0, 1, None),
        "counts are of what is there"
    );
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::NotFound);
    assert_eq!(world.forget_end(id, ended).await, Forgot::NotFound, "once more is no error");
}

pub(super) async fn only_an_end_that_was_seen_goes(world: &World) {
    let id = world.add(job()).await;
    assert_eq!(world.forget_end(id, world.now()).await, Forgot::Kept, "it has not begun");
    let held = world.lease_one().await;
    assert_eq!(world.forget_end(id, world.now()).await, Forgot::Kept, "it runs");
    world.fail(&held).await;
    let first = world.job(id).await.ended.unwrap();
    world.advance(Millis::secs(5));
    world.control(Command::Retry(id)).await;
    assert_eq!(world.forget_end(id, first).await, Forgot::Kept, "it was taken up again");
    world.fail(&world.lease_one().await).await;
    assert_eq!(world.forget_end(id, first).await, Forgot::Kept, "that was not its last end");
    assert_eq!(world.state(id).await, TaskState::Failed);
    assert_eq!(world.forget(id).await, Forgot::Done);
    assert_eq!(world.store.forget(vec![]).await.unwrap(), []);
}

pub(super) async fn a_key_is_free_again(world: &World) {
    let id = world.add(keyed()).await;
    world.complete(&world.lease_one().await).await;
    assert_eq!(world.submit(keyed()).await.id(), id);
    world.forget(id).await;
    let again = world.submit(keyed().payload(json("2"))).await;
    assert!(matches!(again, Submitted::Created { previous: None, .. }), "{again:?}");
    assert_ne!(again.id(), id);
    assert_eq!(world.submit(keyed().payload(json("2"))).await.id(), again.id());
}

/// Three jobs in turn had the key, the first two failed: as each of the later ones goes, the one before has it.
pub(super) async fn a_key_goes_back_to_the_job_before(world: &World) {
    let first = world.add(keyed()).await;
    world.fail(&world.lease_one().await).await;
    let second = world.add(keyed()).await;
    world.fail(&world.lease_one().await).await;
    let third = world.add(keyed()).await;
    world.complete(&world.lease_one().await).await;
    assert_eq!(world.control(Command::Retry(first)).await, Controlled::Superseded(third));
    world.forget(second).await;
    assert_eq!(world.control(Command::Retry(first)).await, Controlled::Superseded(third));
    world.forget(third).await;
    assert_eq!(world.control(Command::Retry(first)).await, Controlled::Done(JobState::Running));
    let same = world.submit(keyed()).await;
    assert_eq!(same, Submitted::Existing { id: first, state: JobState::Running });
    world.fail(&world.lease_one().await).await;
    let next = world.submit(keyed()).await;
    assert!(matches!(next, Submitted::Created { previous: Some(id), .. } if id == first), "{next:?}");
}

pub(super) async fn what_named_it_names_none(world: &World) {
    let old = world.add(keyed()).await;
    world.fail(&world.lease_one().await).await;
    let new = world.add(keyed()).await;
    assert_eq!(world.job(new).await.previous, Some(old));
    world.forget(old).await;
    assert_eq!(world.job(new).await.previous, None);
    assert_eq!(world.submit(keyed()).await.id(), new, "the key is the newer one's");
    let again = world.submit(job().rerun_of(old)).await;
    assert!(matches!(again, Submitted::Created { previous: None, .. }), "{again:?}");
}

pub(super) async fn numbers_are_not_given_out_again(world: &World) {
    let old = completed(world).await;
    world.forget(old).await;
    let new = world.add(job().rerun_of(old)).await;
    assert_ne!(new, old);
    assert_ne!(new.free_bits(), old.free_bits());
    assert_eq!(world.store.job(old).await.unwrap(), None);
    assert_eq!(world.job(new).await.previous, None);
}

pub(super) async fn a_page_goes_on_behind_a_job_that_went(world: &World) {
    let ids = [completed(world).await, completed(world).await, completed(world).await];
    world.forget(ids[1]).await;
    let page = |newest_first| {
        let filter = JobFilter { newest_first, ..JobFilter::default() };
        world.store.list(filter, Page { after: Some(ids[1]), limit: 9 })
    };
    let listed = |jobs: Vec<crate::views::JobView>| jobs.iter().map(|job| job.id).collect::<Vec<_>>();
    assert_eq!(listed(page(false).await.unwrap()), [ids[2]]);
    assert_eq!(listed(page(true).await.unwrap()), [ids[0]]);
}

pub(super) async fn a_flow_goes_with_its_items(world: &World) {
    let list = || flow([task("each").for_each("{{ input.list }}"), task("last").needs(["each"])]);
    let input = r#"{"list":[1,2,3]}"#;
    let (id, stays) = (world.start_with(list(), input).await, world.start_with(list(), input).await);
    while let Some(leased) = world.lease(1).await.pop() {
        world.complete(&leased).await;
    }
    let group = TaskId { job: id, index: 0 };
    assert_eq!(world.store.items(group, None, 9).await.unwrap().len(), 3);
    let page =
        RemovableAsk { bygone: Bygone::before(world.now() + Millis(1)), after: None, limit: 9, look: 9 };
    let page = world.store.removable(page).await.unwrap();
    assert_eq!(page.jobs.iter().map(|job| (job.job, job.tasks)).collect::<Vec<_>>(), [(id, 5), (stays, 5)]);

    assert_eq!(world.forget(id).await, Forgot::Done);
    assert_eq!(world.store.job(id).await.unwrap(), None);
    assert_eq!(world.store.items(group, None, 9).await.unwrap(), []);
    assert_eq!(world.line().await.completed, 5);
    let left = world.job(stays).await;
    assert_eq!(left.state, JobState::Completed);
    assert!(left.tasks[0].usual.is_some(), "how long tasks took is remembered");
    let flow = left.flow.expect("a job of a flow");
    assert!(world.store.flow(flow.name, Some(1)).await.unwrap().is_some(), "versions are for ever");
}

pub(super) async fn a_late_write_is_stale_and_leaves_nothing(world: &World) {
    let id = world.add(job()).await;
    let held = world.lease_one().await.held();
    world.control(Command::Cancel(id)).await;
    world.forget(id).await;
    assert_eq!(world.settle(held, done()).await, Settled::Stale);
    assert_eq!(world.store.held(vec![held]).await.unwrap(), [false]);
    assert_eq!(world.jobs().await, []);
}

pub(super) async fn nothing_can_wait_for_it(world: &World) {
    let waited_for = world.add(job()).await;
    let waits = world.add(job().after(waited_for)).await;
    assert_eq!(world.forget_end(waited_for, world.now()).await, Forgot::Kept, "who is waited for lives");
    world.complete(&world.lease_one().await).await;
    assert_eq!(world.forget(waited_for).await, Forgot::Done);
    assert_eq!(world.state(waits).await, TaskState::Queued, "it has begun, and needs it no more");
    let late = world.add(job().after(waited_for)).await;
    let late = world.job(late).await;
    assert_eq!(late.state, JobState::Cancelled);
    assert!(late.reason.is_some_and(|reason| reason.ends_with("does not exist")));
}

pub(super) async fn each_kind_by_its_age(world: &World) {
    let good = completed(world).await;
    let dead = world.add(job()).await;
    world.fail(&world.lease_one().await).await;
    let cancelled = world.add(job()).await;
    world.control(Command::Cancel(cancelled)).await;
    let live = world.add(job()).await;
    let ended = world.now();
    world.advance(Millis::hours(1));
    let recent = completed(world).await;
    assert_eq!(world.state(live).await, TaskState::Completed, "the older one was served first");

    let at = |moment: Timestamp| Some(moment);
    let none = Bygone::default();
    assert_eq!(world.removable(none).await, []);
    assert_eq!(world.removable(Bygone { completed: at(ended), ..none }).await, [], "before, not at");
    let after = ended + Millis(1);
    assert_eq!(world.removable(Bygone { completed: at(after), ..none }).await, [good]);
    assert_eq!(world.removable(Bygone { failed: at(after), ..none }).await, [cancelled]);
    assert_eq!(world.removable(Bygone { dead: at(after), ..none }).await, [dead]);
    assert_eq!(world.removable(Bygone::before(after)).await, [good, dead, cancelled]);
    world.control(Command::Discard(TaskId { job: dead, index: 0 })).await;
    assert_eq!(world.removable(Bygone { failed: at(after), ..none }).await, [dead, cancelled]);
    world.complete(&world.lease_one().await).await;
    let now = world.now() + Millis(1);
    assert_eq!(world.removable(Bygone { completed: at(now), ..none }).await, [good, live, recent]);
}

pub(super) async fn a_look_is_bounded(world: &World) {
    let mut ids = vec![];
    for _ in 0..3 {
        ids.push(completed(world).await);
        ids.push(world.add(job().run_at(START + Millis::hours(9))).await);
    }
    world.advance(Millis(1));
    let bygone = Bygone { completed: Some(world.now()), ..Bygone::default() };
    let look = async |after: Option<JobId>, limit, look| {
        let page = world.store.removable(RemovableAsk { bygone, after, limit, look }).await.unwrap();
        (page.jobs.iter().map(|job| job.job).collect::<Vec<_>>(), page.next)
    };
    assert_eq!(look(None, 9, 3).await, (vec![ids[0], ids[2]], Some(ids[2])));
    assert_eq!(look(Some(ids[2]), 9, 1).await, (vec![], Some(ids[3])), "it steps over what lives");
    assert_eq!(look(Some(ids[3]), 9, 9).await, (vec![ids[4]], None));
    assert_eq!(look(None, 1, 9).await, (vec![ids[0]], Some(ids[0])));
    world.forget(ids[0]).await;
    assert_eq!(look(Some(ids[0]), 9, 9).await, (vec![ids[2], ids[4]], None), "behind one that went");
}

/// The journal does not tell all after that, so it is not compared with the catalog.
pub(super) async fn the_journal_loses_its_beginning(fixture: &dyn Fixture) {
    let world = World::new(fixture).await;
    completed(&world).await;
    world.advance(Millis::secs(1));
    let before = world.now();
    completed(&world).await;
    let all = journal(&*world.store).await;
    let entries = |from: usize| (all[from].id.entry, all[5].id);
    let kept = async || {
        let range = world.store.journal_range().await.unwrap();
        (range.oldest, range.newest)
    };
    let missed = async |after: EventId| world.store.journal(after, 1).await.unwrap().missed;
    assert_eq!(all.iter().filter(|told| told.at < before).count(), 3, "{all:?}");
    assert_eq!(kept().await, entries(0));
    assert_eq!(world.store.forget_journal(before, 1).await.unwrap(), 1, "at most so many");
    assert_eq!(kept().await, entries(1));
    assert!(
        missed(all[0].id).await && !missed(all[1].id).await,
        "who was at what went may have missed something"
    );
    assert_eq!(world.store.forget_journal(before, 9).await.unwrap(), 2, "those at the moment stay");
    assert_eq!(journal(&*world.store).await, all[3..]);
    assert_eq!(world.store.forget_journal(before + Millis(1), 9).await.unwrap(), 2, "the newest stays");
    assert_eq!(world.store.forget_journal(before + Millis(1), 9).await.unwrap(), 0);
    assert_eq!(journal(&*world.store).await, all[5..]);
    assert_eq!(kept().await, entries(5));
    assert!(!missed(EventId::START).await, "who starts at the beginning expects no more than there is");
    world.add(job()).await;
    let next = world.store.journal(all[5].id, ALL).await.unwrap();
    assert_eq!((next.events.len(), next.missed), (1, false));
    assert_eq!(next.events[0].id.entry, all[5].id.entry + 1, "numbers go on");
}

/// Passes at once for stores that keep nothing.
pub(super) async fn what_went_stays_away(fixture: &dyn Fixture) {
    let world = World::new(fixture).await;
    let old = world.add(keyed()).await;
    world.complete(&world.lease_one().await).await;
    world.forget(old).await;
    let World { store, clock } = world;
    let Some(store) = fixture.reopen(store, clock.clone()).await else { return };
    let world = World { store, clock };
    assert_eq!(world.jobs().await, []);
    let new = world.add(keyed().rerun_of(old)).await;
    assert_ne!(new.free_bits(), old.free_bits(), "its number is not given out again");
    assert_eq!(world.job(new).await.previous, None);
    assert_eq!(world.submit(keyed()).await.id(), new);
}
