//! What must be true of what a killed process left behind.

use super::{CAP, Told, ask, payload};
use crate::conformance::world::{ALL, done, everything, key};
use crate::contract::Store;
use crate::verbs::{Held, Settlement, SweepAsk};
use crate::views::*;
use orchestrator_core::{Event, JobId, Millis, TaskState};
use std::collections::{BTreeMap, BTreeSet};

/// How long, by the store's clock, nothing may get on while it heals: far longer than any lease or retry.
const PATIENCE: Millis = Millis::secs(60);

/// Holds a store that was opened again against all that its users told before they were killed.
/// Nobody else may use it meanwhile.
pub async fn check(store: &dyn Store, log: &[String]) {
    let jobs = store.list(JobFilter::default(), everything()).await.expect("list");
    let lives = lives(store).await;
    for job in &jobs {
        let last =
            lives.get(&job.id).and_then(|events| events.last()).map(|event| (event.state, event.attempt));
        assert_eq!(last, Some((job.task.state, job.task.counters.attempt)), "the journal's end of {job:?}");
    }
    assert_eq!(lives.len(), jobs.len(), "the journal knows every job and no other");
    keys_have_one_job(&jobs);
    counts_agree(store, &jobs).await;
    let jobs: BTreeMap<JobId, JobView> = jobs.into_iter().map(|job| (job.id, job)).collect();
    for line in log {
        let told = Told::read(line).unwrap_or_else(|| panic!("nobody tells such a line: {line:?}"));
        holds(told, &jobs, &lives);
    }
}

/// Whether what was told is still so, or has legally gone on from there.
fn holds(told: Told, jobs: &BTreeMap<JobId, JobView>, lives: &BTreeMap<JobId, Vec<Event>>) {
    let id = match told {
        Told::Submitted(_, id) => id,
        Told::Leased(held) | Told::Settled(held, _) | Told::Stale(held) => held.task.job,
    };
    let job = jobs.get(&id).unwrap_or_else(|| panic!("told {told}, but there is no such job"));
    // The attempt's start in the journal, and what came of it.
    let attempt = |held: Held| {
        assert!(
            job.task.counters.attempt >= held.attempt,
            "told {told}, but the attempts fell behind: {job:?}"
        );
        let mut life = lives[&id].iter().skip_while(|event| event.attempt < held.attempt);
        let start = life.next().map(|event| (event.state, event.attempt));
        assert_eq!(
            start,
            Some((TaskState::Running, held.attempt)),
            "told {told}; its start in {:?}",
            lives[&id]
        );
        life.next().map(|event| (event.state, event.attempt))
    };
    match told {
        Told::Submitted(n, _) => {
            assert_eq!(job.key.as_deref(), Some(&*n.to_string()), "told {told}");
            assert!(job.payload.same_value(&payload(n)), "told {told}, but the payload is {}", job.payload);
        }
        Told::Leased(held) => {
            attempt(held);
        }
        Told::Settled(held, state) => {
            assert_eq!(attempt(held), Some((state, held.attempt)), "told {told}; in {:?}", lives[&id]);
            if state.is_terminal() {
                assert_eq!(job.task.state, state, "told {told}, and ends are for ever");
            }
        }
        Told::Stale(held) => {
            assert!(
                attempt(held).is_some(),
                "told {told}, but nobody had ended the attempt: {:?}",
                lives[&id]
            );
            let evidence =
                |record: &AttemptRecord| record.attempt == held.attempt && record.how == AttemptEnd::Stale;
            assert!(job.history.iter().any(evidence), "told {told}, but it is not on record: {job:?}");
        }
    }
}

/// Replays the journal: what each job went through, by legal moves only.
async fn lives(store: &dyn Store) -> BTreeMap<JobId, Vec<Event>> {
    let mut lives: BTreeMap<JobId, Vec<Event>> = BTreeMap::new();
    let mut last = 0;
    for entry in store.journal(0, ALL).await.expect("journal") {
        assert!(entry.n > last, "entry {} comes after {last}", entry.n);
        last = entry.n;
        for event in entry.events {
            let life = lives.entry(event.task.job).or_default();
            let (from, attempt) =
                life.last().map_or((TaskState::Pending, 0), |last| (last.state, last.attempt));
            assert!(from.can_become(event.state), "no legal move: from {from} to {event:?}");
            let started = u32::from(event.state == TaskState::Running);
            assert_eq!(
                event.attempt,
                attempt + started,
                "an attempt counts when it starts: {life:?} then {event:?}"
            );
            life.push(event);
        }
    }
    lives
}

/// Of the jobs with one key only the last may be live or have ended well, and each names the one before.
fn keys_have_one_job(jobs: &[JobView]) {
    let mut holders: BTreeMap<&str, &JobView> = BTreeMap::new();
    for job in jobs {
        let key = job.key.as_deref().unwrap_or_else(|| panic!("it was submitted with a key: {job:?}"));
        let before = holders.insert(key, job);
        assert_eq!(job.previous, before.map(|job| job.id), "the job that had key {key} before");
        if let Some(before) = before {
            assert_eq!(before.task.state, TaskState::Failed, "key {key} was taken from {before:?}");
        }
    }
}

/// The counts of the line, and the slots in use, are those of the jobs.
async fn counts_agree(store: &dyn Store, jobs: &[JobView]) {
    let count =
        |wanted: &dyn Fn(&TaskView) -> bool| jobs.iter().filter(|job| wanted(&job.task)).count() as u64;
    let queued =
        |waits: bool| move |task: &TaskView| task.state == TaskState::Queued && task.due.is_some() == waits;
    let state = |state: TaskState| count(&|task| task.state == state);
    let expected = [
        count(&queued(false)),
        count(&queued(true)),
        state(TaskState::Retrying),
        state(TaskState::Running),
        state(TaskState::Completed),
        state(TaskState::Skipped),
        state(TaskState::Failed),
    ];
    let mut counted = [0; 7];
    for line in store.stats().await.expect("stats").lines {
        let ended = [line.completed, line.skipped, line.failed];
        let live = [line.ready + line.parked, line.scheduled, line.retrying, line.running];
        counted.iter_mut().zip(live.into_iter().chain(ended)).for_each(|(sum, n)| *sum += n);
    }
    assert_eq!(counted, expected, "in line, scheduled, retrying, running, completed, skipped, failed");
    let slots = count(&|task| task.state == TaskState::Running && task.limits.keys().contains(&key(CAP.0)));
    assert!(slots <= u64::from(CAP.1), "{slots} run under {CAP:?}");
    let limits = store.limits().await.expect("limits");
    let used = limits.iter().find(|limit| limit.key == key(CAP.0)).map_or(0, |limit| limit.running);
    assert_eq!(u64::from(used), slots, "slots of {}", CAP.0);
}

/// Runs all that a killed process left lying to its end. Nothing may be lost, and nothing may stay.
pub async fn heal(store: &dyn Store) {
    let before = ids(store).await;
    let mut got_on = store.now();
    loop {
        let lines = store.stats().await.expect("stats").lines;
        let live =
            |line: &LineStats| line.ready + line.parked + line.scheduled + line.retrying + line.running;
        if lines.iter().all(|line| live(line) == 0) {
            break;
        }
        let swept = store.expired(SweepAsk { limit: 100, jitter: 0.0 }).await.expect("expired");
        let leased = store.lease(ask(100)).await.expect("lease").tasks;
        let batch: Vec<_> = leased
            .iter()
            .map(|leased| Settlement { held: leased.held(), outcome: done(), jitter: 0.0 })
            .collect();
        if swept.ended.len() + batch.len() > 0 {
            got_on = store.now();
        }
        for answer in store.settle(batch).await.expect("settle") {
            assert_eq!(answer.state(), Some(TaskState::Completed), "nobody else holds it");
        }
        assert!(
            store.now().since(got_on) < PATIENCE,
            "there is work, but it is neither overdue nor handed out: {lines:?}"
        );
        tokio::task::yield_now().await;
    }
    for job in store.list(JobFilter::default(), everything()).await.expect("list") {
        assert!(job.task.state.is_terminal(), "it has not ended: {job:?}");
    }
    assert_eq!(ids(store).await, before, "the jobs of before and no others");
    assert!(
        store.limits().await.expect("limits").iter().all(|limit| limit.running == 0),
        "all slots are free"
    );
}

async fn ids(store: &dyn Store) -> BTreeSet<JobId> {
    let jobs = store.list(JobFilter::default(), everything()).await.expect("list");
    jobs.into_iter().map(|job| job.id).collect()
}
