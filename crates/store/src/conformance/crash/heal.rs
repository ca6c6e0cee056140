//! After a death, all that was left lying comes to its end.

use super::ask;
use crate::conformance::world::{done, everything};
use crate::contract::Store;
use crate::verbs::{Settlement, SweepAsk};
use crate::views::*;
use orchestrator_core::{JobId, Millis, TaskState};
use std::collections::BTreeSet;

/// How long, by the store's clock, nothing may get on while it heals: far longer than any lease or retry.
const PATIENCE: Millis = Millis::secs(60);

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
        assert!(job.state.is_terminal(), "it has not ended: {job:?}");
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
