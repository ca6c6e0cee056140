//! Many leasers at once. The test keeps its own books and trusts nothing that the store says.

use super::Fixture;
use super::flows::{flow, plan, task};
use super::world::*;
use crate::contract::Store;
use crate::verbs::{LeaseAsk, Leased, Settled, Settlement};
use orchestrator_core::{JobId, LimitRule, NewJob, Outcome, TaskId, TaskState, WorkerId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Jobs of one task, and jobs of a flow that is expanded and joined.
const SINGLES: usize = 240;
const FAN_OUTS: usize = 20;
const ITEMS: usize = 5;
/// How many items of one job may run at once.
const AT_ONCE: usize = 2;
/// A top, the items, a join.
const TASKS: usize = SINGLES + FAN_OUTS * (ITEMS + 2);
const LEASERS: u64 = 8;
/// Keys and caps; a third of the jobs runs under both, a third under one, a third under none.
const CAPS: [(&str, usize); 2] = [("host:a", 3), ("resolver:r", 2)];
/// How often a leaser asks in vain before it gives up, while nobody gets on. Far more than it takes:
/// somebody else's attempt must end within a few verbs.
const PATIENCE: u32 = 20_000;

/// What the leasers together know.
#[derive(Default)]
struct Books {
    held: BTreeMap<TaskId, Leased>,
    /// Every completion, by job and name.
    completions: BTreeMap<(JobId, Arc<str>), u32>,
}

/// Lets many workers lease and settle concurrently. Each task must be held by one at a time and
/// complete exactly once, no limit may be exceeded, no task may start before those that it needs,
/// and no work may be left lying.
pub async fn racing_leasers(fixture: &dyn Fixture) {
    let world = World::new(fixture).await;
    for (name, cap) in CAPS {
        world.limit(name, Some(LimitRule::at_most(cap as u32))).await;
    }
    let under = |n: usize| match n % 3 {
        0 => job(),
        1 => job().limits(limits(&[CAPS[0].0])),
        _ => job().limits(limits(&[CAPS[0].0, CAPS[1].0])),
    };
    let mut jobs: Vec<NewJob> = (0..SINGLES).map(under).collect();
    let each = task("each").needs(["top"]).for_each(serde_json::json!([0, 1, 2, 3, 4]));
    let each = each.concurrency(AT_ONCE as u32).limit("host", "a");
    let fan_out = plan(flow([task("top"), each, task("join").needs(["each"])]));
    jobs.extend((0..FAN_OUTS).map(|_| NewJob::of_flow(fan_out.clone())));
    world.store.submit(jobs).await.expect("submit");

    let books = Arc::new(Mutex::new(Books::default()));
    let leasers: Vec<_> =
        (0..LEASERS).map(|n| tokio::spawn(work(world.store.clone(), books.clone(), n))).collect();
    for leaser in leasers {
        leaser.await.expect("a leaser panicked");
    }
    let completions = std::mem::take(&mut open(&books).completions);
    assert_eq!(completions.len(), TASKS, "every task completes");
    for (task, completions) in completions {
        assert_eq!(completions, 1, "{task:?} completes exactly once");
    }
    let line = world.line().await;
    assert_eq!((line.completed, line.running, line.ready + line.parked), ((TASKS + FAN_OUTS) as u64, 0, 0));
    assert!(world.jobs().await.iter().all(|job| job.state.is_terminal()), "every job has ended");
    for (name, _) in CAPS {
        assert_eq!(world.running(name).await, 0, "{name} is free again");
    }
}

fn open(books: &Mutex<Books>) -> MutexGuard<'_, Books> {
    books.lock().expect("nobody panics with the books in hand but by a failure")
}

/// One worker: leases a few, holds them for a while, ends each in one of several ways.
async fn work(store: Arc<dyn Store>, books: Arc<Mutex<Books>>, n: u64) {
    let mut rng = fastrand::Rng::with_seed(n);
    let mut in_vain = 0;
    let mut known = 0;
    while known < TASKS {
        let ask = LeaseAsk { worker: WorkerId::new(format!("w{n}")), ..ask(rng.u32(1..=4)) };
        let leased = store.lease(ask).await.expect("lease").tasks;
        let completed = open(&books).completions.len();
        in_vain = if leased.is_empty() && completed == known { in_vain + 1 } else { 0 };
        known = completed;
        assert!(in_vain < PATIENCE, "{completed} of {TASKS} are completed, and nothing more is handed out");
        for attempt in &leased {
            open(&books).take(attempt);
        }
        for _ in 0..rng.u32(0..4) {
            tokio::task::yield_now().await;
        }
        settle(&*store, &books, &leased, &mut rng).await;
    }
}

/// Hands outcomes in, some of them twice: the second time must be stale. What an attempt did is in the
/// books before the store hears of it: afterwards another leaser may rightly hold the task already,
/// or one that needs it.
async fn settle(store: &dyn Store, books: &Mutex<Books>, leased: &[Leased], rng: &mut fastrand::Rng) {
    let mut batch = vec![];
    for attempt in leased {
        let outcome = if rng.u8(0..10) < 7 { done() } else { Outcome::Released };
        open(books).give_back(attempt, outcome != Outcome::Released);
        batch.push(Settlement { held: attempt.held(), outcome, jitter: 0.0 });
    }
    for (answer, settlement) in store.settle(batch.clone()).await.expect("settle").iter().zip(&batch) {
        let wanted = match settlement.outcome {
            Outcome::Released => TaskState::Queued,
            _ => TaskState::Completed,
        };
        assert_eq!(answer.state(), Some(wanted), "{:?} held its lease", settlement.held);
    }
    if rng.bool() {
        for (answer, settlement) in store.settle(batch.clone()).await.expect("settle").iter().zip(&batch) {
            assert_eq!(*answer, Settled::Stale, "{:?} had settled before", settlement.held);
        }
    }
}

impl Books {
    fn take(&mut self, attempt: &Leased) {
        let before = self.held.insert(attempt.task, attempt.clone());
        assert!(before.is_none(), "task {} is held twice: {before:?}", attempt.task);
        for (name, cap) in CAPS {
            let running = self.held.values().filter(|held| held.limits.keys().contains(&key(name))).count();
            assert!(running <= cap, "{running} run under {name}, which allows {cap}");
        }
        let job = attempt.task.job;
        let is_item = |name: &str| name.starts_with("each[");
        let items = self.held.values().filter(|held| held.task.job == job && is_item(&held.name)).count();
        assert!(items <= AT_ONCE, "{items} items of job {job} run at once");
        let completed = self.completions.keys().filter(|(other, _)| *other == job).count();
        match &*attempt.name {
            "join" => assert_eq!(completed, ITEMS + 1, "a join starts when all that it needs has completed"),
            name if is_item(name) => assert!(completed > 0, "an item starts when its list is known"),
            _ => assert_eq!(completed, 0, "the first of its job"),
        }
    }

    fn give_back(&mut self, attempt: &Leased, completed: bool) {
        self.held.remove(&attempt.task);
        if completed {
            *self.completions.entry((attempt.task.job, attempt.name.clone())).or_default() += 1;
        }
    }
}
