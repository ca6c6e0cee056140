//! Taking jobs in.

use super::Model;
use super::job::{Job, Task};
use crate::verbs::Submitted;
use orchestrator_core::flow::Plan;
use orchestrator_core::flow::run::Run;
use orchestrator_core::{Document, JobId, JobState, NewJob, Timestamp, Work};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Model {
    /// Takes jobs in, one after the other.
    pub fn submit(&mut self, jobs: Vec<NewJob>, now: Timestamp) -> Vec<Submitted> {
        let answers = jobs.into_iter().map(|new| self.submit_one(new, now)).collect();
        self.commit(now);
        answers
    }

    fn submit_one(&mut self, new: NewJob, now: Timestamp) -> Submitted {
        let key = new
            .key
            .as_ref()
            .map(|key| (new.tenant.clone(), new.work.key_scope(), key.text.clone(), key.bucket(now)));
        let holder = key.as_ref().and_then(|key| self.keys.get(key)).map(|seq| self.at(*seq));
        let mut previous = new.rerun_of.filter(|id| self.seq(*id).is_some());
        if let Some(job) = holder {
            let derived = new.key.as_ref().is_some_and(|key| key.derived);
            match job.state() {
                JobState::Failed | JobState::Cancelled | JobState::TimedOut => previous = Some(job.id),
                state if derived || (job.payload.same_value(&new.payload) && same_document(job, &new)) => {
                    return Submitted::Existing { id: job.id, state };
                }
                _ => return Submitted::Conflict { id: job.id },
            }
        }

        self.last += 1;
        let seq = self.last;
        let id = JobId::from_parts(now, u128::from(seq));
        if let Some(key) = &key {
            self.keys.insert(key.clone(), seq);
        }
        let header = matches!(new.work, Work::Flow(_)) || !new.after.is_empty();
        let (plan, version) = match new.work {
            Work::Flow(plan) => {
                let version = self.register(&plan, now);
                (plan, Some(version))
            }
            Work::Task { spec, limits } => (Arc::new(Plan::of_task(&spec, &limits)), None),
        };
        let job = Job {
            id,
            tenant: new.tenant,
            key,
            created: now,
            priority: new.priority,
            previous,
            payload: new.payload,
            meta: Arc::new(new.meta),
            document: new.document,
            run_at: new.run_at,
            version,
            header,
            run: Run::new(&plan),
            waits_for: BTreeSet::new(),
            output: None,
            tasks: (0..plan.tasks().len() as u32).map(|index| (index, Task::default())).collect(),
            plan,
        };
        self.jobs.insert(seq, job);
        self.today(now).created += 1;
        self.tell_job(seq, JobState::Pending);
        match self.wait_for(seq, &new.after) {
            Ok(()) if self.at(seq).run.waits > 0 => {}
            Ok(()) => self.begin(seq, now),
            Err(reason) => self.stop(seq, JobState::Cancelled, Some(reason), now),
        }
        self.follow_up(seq, now);
        Submitted::Created { id, previous }
    }

    /// Lets a job wait for others, or says why it never can run.
    fn wait_for(&mut self, seq: u64, after: &[JobId]) -> Result<(), String> {
        let mut waits_for = BTreeSet::new();
        for id in after {
            let other = self.seq(*id).filter(|other| *other != seq);
            let state = other.map(|other| self.at(other).state());
            match (other, state) {
                (_, Some(JobState::Completed)) => {}
                (_, Some(state)) if state.is_terminal() => {
                    return Err(format!("it was to run after job {id}, which is {state}"));
                }
                (Some(other), _) => {
                    waits_for.insert(other);
                }
                (None, _) => return Err(format!("it was to run after job {id}, which does not exist")),
            }
        }
        let job = self.at_mut(seq);
        job.run.waits = waits_for.len() as u32;
        job.waits_for = waits_for;
        Ok(())
    }
}

/// Whether a job has the document that is submitted: none, or one with the same content.
fn same_document(job: &Job, new: &NewJob) -> bool {
    let digest = |document: &Option<Document>| document.as_ref().map(|document| document.sha256().clone());
    digest(&job.document) == digest(&new.document)
}
