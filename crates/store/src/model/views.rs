//! What the catalog shows of a model.

use super::{Job, Location, Model};
use crate::views::*;
use orchestrator_core::{JobId, LimitKey, TaskState, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

impl Model {
    /// One job.
    pub fn job(&self, id: JobId) -> Option<JobView> {
        self.seq(id).map(|seq| self.view(self.at(seq), &self.running()))
    }

    /// Jobs in order of submission.
    pub fn list(&self, filter: &JobFilter, page: Page) -> Vec<JobView> {
        let running = self.running();
        self.after(page)
            .filter(|job| in_line(&filter.line, job))
            .filter(|job| filter.state.is_none_or(|state| state == job.state()))
            .take(page.limit as usize)
            .map(|job| self.view(job, &running))
            .collect()
    }

    /// The dead letters, oldest job first.
    pub fn dead_letters(&self, filter: &LineFilter, page: Page) -> Vec<DeadLetter> {
        self.after(page)
            .filter(|job| in_line(filter, job))
            .filter_map(dead_letter)
            .take(page.limit as usize)
            .collect()
    }

    /// Counts by line.
    pub fn stats(&self) -> Stats {
        let running = self.running();
        let mut lines = BTreeMap::new();
        for job in self.jobs.values() {
            let line = lines.entry(job.line()).or_insert_with(|| empty(job));
            match &job.location {
                Location::InLine(_) => {
                    let count =
                        if self.has_slots(job, &running) { &mut line.ready } else { &mut line.parked };
                    *count += 1;
                    earliest(&mut line.oldest_queued, job.created);
                }
                Location::Waiting { .. } if job.counters.failures > 0 => line.retrying += 1,
                Location::Waiting { .. } => line.scheduled += 1,
                Location::Leased(lease) => {
                    line.running += 1;
                    earliest(&mut line.oldest_running, lease.started);
                }
                Location::Ended(end) => match end.state {
                    TaskState::Completed => line.completed += 1,
                    TaskState::Skipped => line.skipped += 1,
                    TaskState::Cancelled => line.cancelled += 1,
                    _ => {
                        line.failed += 1;
                        earliest(&mut line.oldest_failed, end.at);
                    }
                },
            }
        }
        Stats { lines: lines.into_values().collect() }
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

    /// The journal from after an entry.
    pub fn journal(&self, after: i64, limit: u32) -> Vec<JournalEntry> {
        self.journal.iter().filter(|entry| entry.n > after).take(limit as usize).cloned().collect()
    }

    fn after(&self, page: Page) -> impl Iterator<Item = &Job> {
        let from = page.after.map_or(0, |id| u64::try_from(id.free_bits()).unwrap_or(u64::MAX));
        self.jobs.range((Bound::Excluded(from), Bound::Unbounded)).map(|(_, job)| job)
    }

    fn view(&self, job: &Job, running: &BTreeMap<LimitKey, u32>) -> JobView {
        let lease = job.lease();
        let end = job.end();
        let due = match job.location {
            Location::Waiting { due } => Some(due),
            _ => None,
        };
        JobView {
            id: job.id,
            state: job.job_state(),
            tenant: job.tenant.clone(),
            key: job.key.as_ref().map(|(_, _, text, _)| text.clone()),
            created: job.created,
            priority: job.priority,
            previous: job.previous,
            spec: job.spec.clone(),
            payload: job.payload.clone(),
            task: TaskView {
                state: job.state(),
                counters: job.counters,
                limits: job.limits.clone(),
                checkpoint: job.checkpoint.clone(),
                worker: lease.map(|lease| lease.worker.clone()),
                expires: lease.map(|lease| lease.expires),
                due,
                parked: job.spot().is_some() && !self.has_slots(job, running),
                ended: end.map(|end| end.at),
                output: end.and_then(|end| end.output.clone()),
                dead: end.and_then(|end| end.dead.as_ref()).map(|(reason, _)| *reason),
            },
            history: job.history.clone(),
        }
    }
}

fn in_line(filter: &LineFilter, job: &Job) -> bool {
    filter.queue.as_ref().is_none_or(|queue| *queue == job.spec.queue)
        && filter.handler.as_ref().is_none_or(|handler| *handler == job.spec.handler)
}

fn dead_letter(job: &Job) -> Option<DeadLetter> {
    let end = job.end()?;
    let (reason, message) = end.dead.clone()?;
    Some(DeadLetter {
        job: job.id,
        key: job.key.as_ref().map(|(_, _, text, _)| text.clone()),
        queue: job.spec.queue.clone(),
        handler: job.spec.handler.clone(),
        reason,
        at: end.at,
        counters: job.counters,
        message,
    })
}

fn empty(job: &Job) -> LineStats {
    LineStats::new(job.spec.queue.clone(), job.spec.handler.clone())
}

fn earliest(oldest: &mut Option<Timestamp>, at: Timestamp) {
    *oldest = Some(oldest.map_or(at, |old| old.min(at)));
}
