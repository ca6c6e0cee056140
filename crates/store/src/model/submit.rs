//! Taking jobs in.

use super::{Job, Location, Model};
use crate::verbs::Submitted;
use orchestrator_core::{Counters, JobId, JobState, NewJob, Timestamp};

impl Model {
    /// Takes jobs in, one after the other.
    pub fn submit(&mut self, jobs: Vec<NewJob>, now: Timestamp) -> Vec<Submitted> {
        let mut events = vec![];
        let answers = jobs
            .into_iter()
            .map(|new| {
                let answer = self.submit_one(new, now);
                if let Submitted::Created { id, .. } = answer {
                    events.extend(self.seq(id).map(|seq| self.at(seq).event()));
                }
                answer
            })
            .collect();
        self.commit(events, now);
        answers
    }

    fn submit_one(&mut self, new: NewJob, now: Timestamp) -> Submitted {
        let key = new
            .key
            .as_ref()
            .map(|key| (new.tenant.clone(), new.spec.handler.clone(), key.text.clone(), key.bucket(now)));
        let holder = key.as_ref().and_then(|key| self.keys.get(key)).map(|seq| self.at(*seq));
        let mut previous = None;
        if let Some(job) = holder {
            match job.job_state() {
                JobState::Failed | JobState::Cancelled | JobState::TimedOut => previous = Some(job.id),
                state if job.payload.same_value(&new.payload) => {
                    return Submitted::Existing { id: job.id, state };
                }
                _ => return Submitted::Conflict { id: job.id },
            }
        }

        let seq = self.jobs.last_key_value().map_or(1, |(last, _)| last + 1);
        let id = JobId::from_parts(now, u128::from(seq));
        let due = new.run_at.filter(|at| *at > now);
        if let Some(key) = &key {
            self.keys.insert(key.clone(), seq);
        }
        let job = Job {
            id,
            tenant: new.tenant,
            key,
            created: now,
            priority: new.priority,
            previous,
            spec: new.spec,
            payload: new.payload,
            submitted_limits: new.limits.clone(),
            limits: new.limits,
            counters: Counters::default(),
            checkpoint: None,
            location: Location::Waiting { due: due.unwrap_or(now) },
            history: vec![],
        };
        self.jobs.insert(seq, job);
        if due.is_none() {
            self.enter_line(seq, now);
        }
        Submitted::Created { id, previous }
    }
}
