//! What the catalog shows of jobs and tasks.

use super::Model;
use super::job::{End, Job, Location, Task};
use super::registry::flow_ref;
use crate::views::*;
use orchestrator_core::{Document, JobId, JobState, Json, LimitKey, Meta, TaskId, TaskState};
use std::collections::BTreeMap;

impl Model {
    /// One job.
    pub fn job(&self, id: JobId) -> Option<JobView> {
        self.seq(id).map(|seq| self.view(self.at(seq), &self.running()))
    }

    /// One task.
    pub fn task(&self, id: TaskId) -> Option<TaskView> {
        let (seq, index) = self.find(id)?;
        Some(self.task_view(self.at(seq), index, &self.running()))
    }

    /// The items of an expanded task, in order.
    pub fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> Vec<TaskView> {
        let Some(job) = self.seq(group.job).map(|seq| self.at(seq)) else { return vec![] };
        let Some(items) = job.run.group(group.index) else { return vec![] };
        let running = self.running();
        (items.first..items.first + items.count)
            .filter(|index| after.is_none_or(|after| *index > after))
            .take(limit as usize)
            .map(|index| self.task_view(job, index, &running))
            .collect()
    }

    /// The ids that start with a text, newest first.
    pub fn ids(&self, prefix: &str, limit: u32) -> Vec<JobId> {
        let ids = self.jobs.values().rev().map(|job| job.id);
        ids.filter(|id| id.to_string().starts_with(prefix)).take(limit as usize).collect()
    }

    /// Jobs in order of submission, or the newest first.
    pub fn list(&self, filter: &JobFilter, page: Page) -> Vec<JobView> {
        let running = self.running();
        let mut jobs: Vec<(u64, &Job)> = self.jobs.iter().map(|(seq, job)| (*seq, job)).collect();
        if filter.newest_first {
            jobs.reverse();
        }
        if let Some(after) = page.after {
            // Behind a job that never existed there is nothing.
            let after = self.seq_once(after);
            jobs.retain(|(seq, _)| {
                after.is_some_and(|after| if filter.newest_first { *seq < after } else { *seq > after })
            });
        }
        jobs.into_iter()
            .map(|(_, job)| self.view(job, &running))
            .filter(|view| filter.takes(view))
            .take(page.limit as usize)
            .collect()
    }

    /// The document of a job.
    pub fn document(&self, id: JobId) -> Option<Document> {
        self.seq(id).and_then(|seq| self.at(seq).document.clone())
    }

    fn view(&self, job: &Job, running: &BTreeMap<LimitKey, u32>) -> JobView {
        let tasks: Vec<TaskView> =
            (0..job.plan.tasks().len() as u32).map(|index| self.task_view(job, index, running)).collect();
        let attempt = tasks.first().and_then(|task| task.started);
        let defined = job.plan.output().is_some();
        let output = if defined { job.output.clone() } else { JobView::output_of(&job.plan, &tasks) };
        JobView {
            id: job.id,
            state: job.state(),
            flow: job.version.map(|version| flow_ref(&job.plan, version)),
            tenant: job.tenant.clone(),
            key: job.key.as_ref().map(|(_, _, text, _)| text.clone()),
            created: job.created,
            started: if job.header { job.run.started } else { attempt },
            ended: job.run.ended,
            deadline: job.run.times_out(),
            priority: job.priority,
            previous: job.previous.filter(|id| self.seq(*id).is_some()),
            waits_for: job.waits_for.iter().map(|seq| self.at(*seq).id).collect(),
            recoveries: job.run.recoveries,
            max_recoveries: if job.header { job.plan.max_recoveries() } else { 0 },
            reason: job.run.reason.clone(),
            payload: job.payload.clone(),
            meta: Meta::clone(&job.meta),
            document: job.document.as_ref().map(DocumentView::of),
            output: output.filter(|_| job.state() == JobState::Completed),
            tasks,
        }
    }

    fn task_view(&self, job: &Job, index: u32, running: &BTreeMap<LimitKey, u32>) -> TaskView {
        let task = &job.tasks[&index];
        let (lease, end) = (task.lease(), task.end());
        TaskView {
            index,
            name: job.name(index),
            spec: job.rules(index).spec.clone(),
            state: task.state(),
            counters: task.counters,
            limits: task.limits.clone(),
            input: job.input(index),
            checkpoint: task.checkpoint.clone(),
            worker: lease.map(|lease| lease.worker.clone()),
            started: lease.map(|lease| lease.started),
            expires: lease.map(|lease| lease.expires),
            due: task.due(),
            since: task.spot().map(|spot| spot.since),
            parked: task.spot().is_some() && !self.has_slots(task, running),
            held: matches!(task.location, Location::Held { .. }),
            ended: end.map(|end| end.at),
            output: end.and_then(|end| output(job, index, end)),
            dead: end.and_then(|end| end.dead.as_ref()).map(|(reason, _)| *reason),
            items: items(job, index),
            usual: self.usual(job, index),
            history: task.history.clone(),
        }
    }
}

/// The output of a task that has ended; of an expanded one, the list of its items' outputs.
fn output(job: &Job, index: u32, end: &End) -> Option<Json> {
    let is_group = (index as usize) < job.plan.tasks().len() && job.rules(index).each.is_some();
    if !is_group {
        return end.output.clone();
    }
    let items = job.run.group(index).map_or(0..0, |group| group.first..group.first + group.count);
    let outputs = items.map(|index| job.tasks[&index].end().and_then(|end| end.output.clone()));
    (end.state == TaskState::Completed).then(|| TaskView::output_of_items(outputs))
}

fn items(job: &Job, index: u32) -> Option<ItemsView> {
    let group = job.run.group(index)?;
    let runs = |(index, task): &(&u32, &Task)| group.has(**index) && task.lease().is_some();
    Some(ItemsView {
        first: group.first,
        count: group.count,
        ended: group.ended,
        failed: group.failed,
        running: job.tasks.iter().filter(runs).count() as u32,
    })
}
