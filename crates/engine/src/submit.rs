//! What comes in from outside: jobs, and what operators ask of them. Checked here, once.

use crate::Engine;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{FieldError, JobId, NewJob};
use orchestrator_store::{Command, Controlled, StoreError, StoreResult, Submitted, Wish};
use std::collections::BTreeMap;

/// Jobs that were not taken in. After any error none of the batch was.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// A job is not valid.
    #[error("job {index} of the batch is not valid: {}", list(problems))]
    Invalid {
        /// Its place in the batch, from 0.
        index: usize,
        /// Everything that is wrong with it.
        problems: Vec<FieldError>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(problems: &[FieldError]) -> String {
    problems.iter().map(FieldError::to_string).collect::<Vec<_>>().join("; ")
}

impl Engine {
    /// Takes jobs in, all or none. They are durable when this answers. A job of a flow gets the key that
    /// the flow makes of its input, unless it has one or is a rerun, which is meant to be another job.
    pub async fn submit(&self, mut jobs: Vec<NewJob>) -> Result<Vec<Submitted>, SubmitError> {
        for (index, job) in jobs.iter_mut().enumerate() {
            let problems = self.problems(job);
            if !problems.is_empty() {
                return Err(SubmitError::Invalid { index, problems });
            }
        }
        self.check_after(&jobs).await?;
        if jobs.is_empty() {
            return Ok(vec![]);
        }
        let count = jobs.len();
        let answers = self.store().submit(jobs).await;
        if planted(Bug::AckFailedSubmit) && answers.is_err() {
            let id = JobId::from_parts(self.store().now(), 0);
            return Ok(vec![Submitted::Created { id, previous: None }; count]);
        }
        Ok(answers?)
    }

    /// Derives the key of a job and tells everything that is wrong with it.
    fn problems(&self, job: &mut NewJob) -> Vec<FieldError> {
        let derived = if job.rerun_of.is_none() { job.derive_key() } else { Ok(()) };
        let mut problems = job.problems(self.0.config.max_payload);
        // Where the input is not what the flow asks for, that says more.
        if let (Err(error), true) = (derived, problems.is_empty()) {
            problems.push(FieldError::new("idempotency.key", error.to_string()));
        }
        problems
    }

    /// Refuses jobs that are to run after one that does not exist.
    async fn check_after(&self, jobs: &[NewJob]) -> Result<(), SubmitError> {
        let mut exists: BTreeMap<JobId, bool> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            let mut problems = vec![];
            for before in &job.after {
                if !exists.contains_key(before) {
                    exists.insert(*before, self.store().job(*before).await?.is_some());
                }
                if !exists[before] {
                    problems.push(FieldError::new("after", format!("there is no job {before}")));
                }
            }
            if !problems.is_empty() {
                return Err(SubmitError::Invalid { index, problems });
            }
        }
        Ok(())
    }

    /// Carries out what an operator asks of jobs, tells who waits for them, and stops what runs of those
    /// that are cancelled. A command may come with the state in which its job must be ([`Wish`]).
    pub async fn control(&self, wishes: Vec<impl Into<Wish>>) -> StoreResult<Vec<Controlled>> {
        let wishes: Vec<Wish> = wishes.into_iter().map(Into::into).collect();
        let jobs: Vec<_> = wishes.iter().map(|wish| wish.command.job()).collect();
        let cancels = wishes.iter().any(|wish| matches!(wish.command, Command::Cancel(_)));
        let answers = self.store().control(wishes).await?;
        if cancels {
            self.0.ring_revoked();
        }
        let ended = jobs.iter().zip(&answers);
        self.0.waiters.wake(ended.filter_map(|(job, answer)| match answer {
            Controlled::Done(state) if state.is_terminal() => Some(*job),
            _ => None,
        }));
        Ok(answers)
    }
}
