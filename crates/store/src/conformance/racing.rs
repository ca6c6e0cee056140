//! Many leasers at once. The test keeps its own books and trusts nothing that the store says.

use super::Fixture;
use super::world::*;
use crate::contract::Store;
use crate::verbs::{LeaseAsk, Leased, Settled, Settlement};
use orchestrator_core::{LimitRule, Outcome, TaskId, TaskState, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

const JOBS: u32 = 300;
const LEASERS: u64 = 8;
/// Keys and caps; a third of the jobs runs under both, a third under one, a third under none.
const CAPS: [(&str, u32); 2] = [("host:a", 3), ("resolver:r", 2)];
/// How often a leaser asks in vain before it gives up, while nobody gets on. Far more than it takes:
/// somebody else's attempt must end within a few verbs.
const PATIENCE: u32 = 20_000;

/// What the leasers together know.
struct Books {
    holders: BTreeMap<TaskId, AtomicU32>,
    completions: BTreeMap<TaskId, AtomicU32>,
    running: BTreeMap<&'static str, AtomicU32>,
    completed: AtomicU32,
}

/// Lets many workers lease and settle concurrently. Each task must be held by one at a time and
/// complete exactly once, no limit may be exceeded, and no work may be left lying.
pub async fn racing_leasers(fixture: &dyn Fixture) {
    let world = World::new(fixture).await;
    for (name, cap) in CAPS {
        world.limit(name, Some(LimitRule::at_most(cap))).await;
    }
    let under = |n: u32| match n % 3 {
        0 => job(),
        1 => job().limits(limits(&[CAPS[0].0])),
        _ => job().limits(limits(&[CAPS[0].0, CAPS[1].0])),
    };
    let answers = world.store.submit((0..JOBS).map(under).collect()).await.expect("submit");
    let zeros = || answers.iter().map(|answer| (TaskId::only(answer.id()), AtomicU32::new(0))).collect();
    let books = Arc::new(Books {
        holders: zeros(),
        completions: zeros(),
        running: CAPS.iter().map(|(name, _)| (*name, AtomicU32::new(0))).collect(),
        completed: AtomicU32::new(0),
    });

    let leasers: Vec<_> =
        (0..LEASERS).map(|n| tokio::spawn(work(world.store.clone(), books.clone(), n))).collect();
    for leaser in leasers {
        leaser.await.expect("a leaser panicked");
    }
    for (task, completions) in &books.completions {
        assert_eq!(completions.load(SeqCst), 1, "task {task} completes exactly once");
    }
    let line = world.line().await;
    assert_eq!((line.completed, line.running, line.ready + line.parked), (u64::from(JOBS), 0, 0));
    for (name, _) in CAPS {
        assert_eq!(world.running(name).await, 0, "{name} is free again");
    }
}

/// One worker: leases a few, holds them for a while, ends each in one of several ways.
async fn work(store: Arc<dyn Store>, books: Arc<Books>, n: u64) {
    let mut rng = fastrand::Rng::with_seed(n);
    let mut in_vain = 0;
    let mut known = 0;
    while books.completed.load(SeqCst) < JOBS {
        let ask = LeaseAsk { worker: WorkerId::new(format!("w{n}")), ..ask(rng.u32(1..=4)) };
        let leased = store.lease(ask).await.expect("lease");
        let completed = books.completed.load(SeqCst);
        in_vain = if leased.tasks.is_empty() && completed == known { in_vain + 1 } else { 0 };
        known = completed;
        assert!(in_vain < PATIENCE, "{completed} of {JOBS} are completed, and nothing more is handed out");
        for attempt in &leased.tasks {
            books.take(attempt);
        }
        for _ in 0..rng.u32(0..4) {
            tokio::task::yield_now().await;
        }
        let batch = leased.tasks.iter().map(|attempt| end(attempt, &books, &mut rng)).collect();
        settle(&*store, &books, batch, rng.bool()).await;
    }
}

/// Decides how an attempt ends, and strikes it from the books. That happens before the store hears
/// of it: afterwards another leaser may rightly hold the task already.
fn end(attempt: &Leased, books: &Books, rng: &mut fastrand::Rng) -> Settlement {
    books.give_back(attempt);
    let outcome = if rng.u8(0..10) < 7 { done() } else { Outcome::Released };
    Settlement { held: attempt.held(), outcome, jitter: 0.0 }
}

/// Hands outcomes in, some of them twice: the second time must be stale.
async fn settle(store: &dyn Store, books: &Books, batch: Vec<Settlement>, twice: bool) {
    for (answer, settlement) in store.settle(batch.clone()).await.expect("settle").iter().zip(&batch) {
        assert_ne!(*answer, Settled::Stale, "{:?} held its lease", settlement.held);
        if answer.state() == Some(TaskState::Completed) {
            books.completions[&settlement.held.task].fetch_add(1, SeqCst);
            books.completed.fetch_add(1, SeqCst);
        }
    }
    if twice {
        for (answer, settlement) in store.settle(batch.clone()).await.expect("settle").iter().zip(&batch) {
            assert_eq!(*answer, Settled::Stale, "{:?} had settled before", settlement.held);
        }
    }
}

impl Books {
    fn take(&self, attempt: &Leased) {
        let holders = self.holders[&attempt.task].fetch_add(1, SeqCst) + 1;
        assert_eq!(holders, 1, "task {} is held by {holders} at once", attempt.task);
        for (name, cap) in CAPS.iter().filter(|(name, _)| attempt.limits.keys().contains(&key(name))) {
            let running = self.running[name].fetch_add(1, SeqCst) + 1;
            assert!(running <= *cap, "{running} run under {name}, which allows {cap}");
        }
    }

    fn give_back(&self, attempt: &Leased) {
        for (name, _) in CAPS.iter().filter(|(name, _)| attempt.limits.keys().contains(&key(name))) {
            self.running[name].fetch_sub(1, SeqCst);
        }
        self.holders[&attempt.task].fetch_sub(1, SeqCst);
    }
}
