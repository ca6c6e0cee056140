//! Removing jobs that are over.

use super::Model;
use super::job::{Job, Task};
use crate::retention::{Forget, Forgot, Removable, RemovableAsk, RemovablePage};
use orchestrator_core::JobId;

impl Model {
    /// The number of a job that exists, or once did.
    pub(super) fn seq_once(&self, id: JobId) -> Option<u64> {
        let seq = u64::try_from(id.free_bits()).ok()?;
        self.seq(id).or_else(|| self.forgotten.get(&seq).filter(|gone| **gone == id).map(|_| seq))
    }

    /// Jobs that may go, in order of submission.
    pub fn removable(&self, ask: &RemovableAsk) -> RemovablePage {
        let mut page = RemovablePage::default();
        let Some(latest) = ask.bygone.latest() else { return page };
        // Behind a job that never existed there is nothing.
        let after = ask.after.map_or(Some(0), |id| self.seq_once(id)).unwrap_or(u64::MAX);
        let behind = self.jobs.iter().filter(|(seq, _)| **seq > after);
        for (looked, (_, job)) in (1..).zip(behind) {
            if job.created >= latest || ask.limit == 0 || ask.look == 0 {
                break;
            }
            let dead = job.tasks.values().any(is_dead);
            if let Some(ended) = job.run.ended.filter(|ended| ask.bygone.takes(job.state(), *ended, dead)) {
                page.jobs.push(Removable { job: job.id, ended, tasks: job.run.size() });
            }
            if page.jobs.len() == ask.limit as usize || looked == ask.look {
                page.next = Some(job.id);
                break;
            }
        }
        page
    }

    /// Removes jobs, one after the other.
    pub fn forget(&mut self, jobs: &[Forget]) -> Vec<Forgot> {
        jobs.iter().map(|wish| self.forget_one(wish)).collect()
    }

    fn forget_one(&mut self, wish: &Forget) -> Forgot {
        let Some(seq) = self.seq(wish.job) else { return Forgot::NotFound };
        if self.at(seq).run.ended != Some(wish.ended) {
            return Forgot::Kept;
        }
        let Some(Job { id, key, .. }) = self.jobs.remove(&seq) else { return Forgot::NotFound };
        self.forgotten.insert(seq, id);
        if let Some(key) = key {
            let left = self.jobs.iter().rev().find(|(_, job)| job.key.as_ref() == Some(&key));
            match left.map(|(seq, _)| *seq) {
                Some(newest) => self.keys.insert(key, newest),
                None => self.keys.remove(&key),
            };
        }
        Forgot::Done
    }
}

fn is_dead(task: &Task) -> bool {
    task.end().is_some_and(|end| end.dead.is_some())
}
