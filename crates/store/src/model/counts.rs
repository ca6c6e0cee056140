//! What the catalog shows of a whole model: counts, dead letters and limits.

use super::Model;
use super::job::{Job, Location, Task};
use crate::views::*;
use orchestrator_core::{LimitKey, TaskId, TaskState, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

impl Model {
    /// Counts by line. What has not come into line yet is not counted, nor is an expanded task until it ends.
    pub fn stats(&self) -> Stats {
        let running = self.running();
        let mut lines = BTreeMap::new();
        for ((_, index), job, task) in self.tasks() {
            if matches!(task.location, Location::Pending | Location::Expanded) {
                continue;
            }
            let line = job.line(index);
            let empty = || LineStats::new(line.queue.clone(), line.handler.clone());
            let counts = lines.entry(line.clone()).or_insert_with(empty);
            if task.spot().is_some() {
                earliest(&mut counts.oldest_queued, job.created);
            }
            if let Some(lease) = task.lease() {
                earliest(&mut counts.oldest_running, lease.started);
            }
            if let Some(end) = task.end().filter(|end| end.dead.is_some()) {
                earliest(&mut counts.oldest_failed, end.at);
                counts.dead += 1;
            }
            *count_of(counts, task, self.has_slots(task, &running)) += 1;
        }
        Stats { lines: lines.into_values().collect() }
    }

    /// The dead letters, oldest job first.
    pub fn dead_letters(&self, filter: &LineFilter, after: Option<TaskId>, limit: u32) -> Vec<DeadLetter> {
        let after = after.map(|task| (u64::try_from(task.job.free_bits()).unwrap_or(u64::MAX), task.index));
        self.tasks()
            .filter(|(at, _, _)| after.is_none_or(|after| *at > after))
            .filter(|((_, index), job, _)| in_line(filter, job, *index))
            .filter_map(|((_, index), job, task)| dead_letter(job, index, task))
            .take(limit as usize)
            .collect()
    }

    /// Every limit rule and every key in use, in order.
    pub fn limits(&self) -> Vec<LimitView> {
        let running = self.running();
        let keys: BTreeSet<&LimitKey> = self.rules.keys().chain(running.keys()).collect();
        keys.into_iter()
            .map(|key| LimitView {
                key: key.clone(),
                rule: self.rule(key),
                origin: self.rules.get(key).map(|(_, origin)| *origin),
                running: running.get(key).copied().unwrap_or(0),
            })
            .collect()
    }
}

/// The number in which a task is counted.
fn count_of<'a>(line: &'a mut LineStats, task: &Task, has_slots: bool) -> &'a mut u64 {
    match (&task.location, task.state()) {
        (Location::InLine(_), _) if has_slots => &mut line.ready,
        (Location::InLine(_), _) => &mut line.parked,
        (Location::Held { .. }, _) => &mut line.paused,
        (_, TaskState::Pending | TaskState::Queued) => &mut line.scheduled,
        (_, TaskState::Retrying) => &mut line.retrying,
        (_, TaskState::Running) => &mut line.running,
        (_, TaskState::Completed) => &mut line.completed,
        (_, TaskState::Skipped) => &mut line.skipped,
        (_, TaskState::Failed) => &mut line.failed,
        (_, TaskState::Cancelled) => &mut line.cancelled,
        (_, TaskState::TimedOut) => &mut line.timed_out,
    }
}

fn in_line(filter: &LineFilter, job: &Job, index: u32) -> bool {
    let line = job.line(index);
    filter.queue.as_ref().is_none_or(|queue| *queue == line.queue)
        && filter.handler.as_ref().is_none_or(|handler| *handler == line.handler)
}

fn dead_letter(job: &Job, index: u32, task: &Task) -> Option<DeadLetter> {
    let end = task.end()?;
    let (reason, message) = end.dead.clone()?;
    let line = job.line(index);
    Some(DeadLetter {
        task: job.task_id(index),
        name: job.name(index),
        flow: job.flow(),
        key: job.key.as_ref().map(|(_, _, text, _)| text.clone()),
        queue: line.queue,
        handler: line.handler,
        reason,
        at: end.at,
        counters: task.counters,
        message,
    })
}

fn earliest(oldest: &mut Option<Timestamp>, at: Timestamp) {
    *oldest = Some(oldest.map_or(at, |old| old.min(at)));
}
