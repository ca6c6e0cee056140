//! What comes in from outside: jobs, and what operators ask of them. Checked here, once.

use crate::Engine;
use orchestrator_core::{FieldError, NewJob};
use orchestrator_store::{Command, Controlled, StoreError, StoreResult, Submitted};

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
    /// Takes jobs in, all or none. They are durable when this answers.
    pub async fn submit(&self, jobs: Vec<NewJob>) -> Result<Vec<Submitted>, SubmitError> {
        for (index, job) in jobs.iter().enumerate() {
            let problems = job.problems(self.0.config.max_payload);
            if !problems.is_empty() {
                return Err(SubmitError::Invalid { index, problems });
            }
        }
        if jobs.is_empty() {
            return Ok(vec![]);
        }
        Ok(self.store().submit(jobs).await?)
    }

    /// Carries out what an operator asks of jobs, and tells who waits for them.
    pub async fn control(&self, commands: Vec<Command>) -> StoreResult<Vec<Controlled>> {
        let jobs: Vec<_> = commands.iter().map(|(Command::Retry(job) | Command::Cancel(job))| *job).collect();
        let answers = self.store().control(commands).await?;
        let ended = jobs.iter().zip(&answers);
        self.0.waiters.wake(ended.filter_map(|(job, answer)| match answer {
            Controlled::Done(state) if state.is_terminal() => Some(*job),
            _ => None,
        }));
        Ok(answers)
    }
}
