//! What operators and workers tell a store beside what they ask of jobs: paused queues and who is there; and what
//! happened day by day.

use super::Model;
use crate::verbs::{QueueChange, WORKER_REMEMBERED, WorkerNote};
use crate::views::{DayStats, PausedQueue, WorkerView};
use orchestrator_core::Timestamp;
use std::sync::Arc;

impl Model {
    /// Pauses queues, or lets them go on. One that is paused already is so since then.
    pub fn set_queues(&mut self, changes: Vec<QueueChange>, now: Timestamp) {
        for QueueChange { queue, paused } in changes {
            if paused {
                self.paused.entry(queue).or_insert(now);
            } else {
                self.paused.remove(&queue);
            }
        }
    }

    /// The queues that are paused, in order.
    pub fn paused_queues(&self) -> Vec<PausedQueue> {
        let paused = self.paused.iter();
        paused.map(|(queue, since)| PausedQueue { queue: queue.clone(), since: *since }).collect()
    }

    /// Notes what workers tell of themselves.
    pub fn register_workers(&mut self, workers: Vec<WorkerNote>, now: Timestamp) {
        self.workers.retain(|_, worker| worker.last_seen + WORKER_REMEMBERED > now);
        for note in workers {
            let name: Arc<str> = note.name.clone().into();
            let first_seen = self.workers.get(&name).map_or(now, |known| known.first_seen);
            self.workers.insert(name, WorkerView { note, first_seen, last_seen: now, running: 0 });
        }
    }

    /// The workers that were heard of within the last day, in order.
    pub fn workers(&self, now: Timestamp) -> Vec<WorkerView> {
        let known = self.workers.values().filter(|worker| worker.last_seen + WORKER_REMEMBERED > now);
        let leases = || self.tasks().filter_map(|(_, _, task)| task.lease());
        let running = |worker: &WorkerView| leases().filter(|lease| lease.worker == worker.note.name).count();
        known.map(|worker| WorkerView { running: running(worker) as u64, ..worker.clone() }).collect()
    }

    /// The counts of the day of a moment.
    pub(super) fn today(&mut self, now: Timestamp) -> &mut DayStats {
        let day = now.day();
        self.days.entry(day).or_insert_with(|| DayStats::new(day))
    }

    /// What happened day by day, the newest first.
    pub fn daily(&self, days: u32) -> Vec<DayStats> {
        self.days.values().rev().take(days as usize).cloned().collect()
    }
}
