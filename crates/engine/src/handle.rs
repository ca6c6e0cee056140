//! One job in the hands of a program: to wait for, to look at, to steer.
//!
//! A handle holds nothing but the job's id, and costs nothing to make: any process that has the id can
//! have one, also after a restart.

use crate::error::{JobError, Verb};
use crate::progress::Progress;
use crate::{Engine, Waited};
use orchestrator_core::{JobId, JobState, Json, NewJob};
use orchestrator_store::{Command, Controlled, JobFilter, JobView, Page, StoreResult, Submitted, Wish};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A job. Clones are handles on the same job.
#[derive(Clone)]
pub struct JobHandle {
    engine: Engine,
    id: JobId,
    expect: Option<JobState>,
}

impl fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobHandle").field(&self.id).finish()
    }
}

impl Engine {
    /// Takes one job in. Where its key has a job already, that is the one: several callers with one key all
    /// get the same job and can wait for its result.
    pub async fn start(&self, job: NewJob) -> Result<JobHandle, JobError> {
        let answer = self.submit(vec![job]).await?.pop().expect("one answer for one job");
        match answer {
            Submitted::Created { id, .. } | Submitted::Existing { id, .. } => Ok(self.handle(id)),
            Submitted::Conflict { id } => Err(JobError::Conflict { id }),
        }
    }

    /// A handle on a job that was started before. Whether there is one shows when it is used.
    pub fn handle(&self, id: JobId) -> JobHandle {
        JobHandle { engine: self.clone(), id, expect: None }
    }

    /// Jobs that have not ended, the newest first.
    pub async fn active(&self, limit: u32) -> StoreResult<Vec<JobView>> {
        let states = JobState::ALL.iter().copied().filter(|state| !state.is_terminal()).collect();
        self.newest(JobFilter { states, ..JobFilter::default() }, limit).await
    }

    /// Jobs that failed or timed out, the newest first.
    pub async fn failed(&self, limit: u32) -> StoreResult<Vec<JobView>> {
        let states = vec![JobState::Failed, JobState::TimedOut];
        self.newest(JobFilter { states, ..JobFilter::default() }, limit).await
    }

    /// Those of them that may be recovered.
    pub async fn recoverable(&self, limit: u32) -> StoreResult<Vec<JobView>> {
        self.newest(JobFilter { recoverable: true, ..JobFilter::default() }, limit).await
    }

    async fn newest(&self, filter: JobFilter, limit: u32) -> StoreResult<Vec<JobView>> {
        self.store().list(JobFilter { newest_first: true, ..filter }, Page { after: None, limit }).await
    }
}

impl JobHandle {
    /// The job's id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The same job, to be steered only while it is in this state: whoever looked and decided does nothing to one that has
    /// moved on since.
    pub fn expecting(self, state: JobState) -> JobHandle {
        JobHandle { expect: Some(state), ..self }
    }

    /// Waits until the job has ended, at most `limit`.
    pub async fn wait(&self, limit: Option<Duration>) -> Result<Waited, JobError> {
        Ok(self.engine.wait(self.id, limit).await?)
    }

    /// The job as it is now.
    pub async fn view(&self) -> Result<JobView, JobError> {
        self.engine.store().job(self.id).await?.ok_or(JobError::NotFound(self.id))
    }

    /// How far the job is.
    pub async fn progress(&self) -> Result<Progress, JobError> {
        let job = self.view().await?;
        let plan = match &job.flow {
            Some(flow) => Some(self.engine.pinned(flow).await?),
            None => None,
        };
        Ok(Progress::of(&job, plan.as_deref(), self.engine.store().now()))
    }

    /// Starts nothing new; what runs may finish. The job's clock stands still.
    pub async fn pause(&self) -> Result<JobState, JobError> {
        self.ask(Verb::Pause, Command::Pause(self.id)).await
    }

    /// Goes on after a pause.
    pub async fn resume(&self) -> Result<JobState, JobError> {
        self.ask(Verb::Resume, Command::Resume(self.id)).await
    }

    /// Ends the job now. What runs is stopped, and no result of it is taken any more.
    pub async fn cancel(&self) -> Result<JobState, JobError> {
        self.ask(Verb::Cancel, Command::Cancel(self.id)).await
    }

    /// Takes up a job again that failed or timed out: from a task, so that it and all that come after it run
    /// again, or from everything that went wrong. The flow says how often.
    pub async fn recover(&self, from: Option<&str>) -> Result<JobState, JobError> {
        self.ask(Verb::Recover, Command::Recover { job: self.id, from: from.map(Arc::from) }).await
    }

    /// Runs again what failed, as often as you like.
    pub async fn retry(&self) -> Result<JobState, JobError> {
        self.ask(Verb::Retry, Command::Retry(self.id)).await
    }

    /// A new job on the same version of the flow, with the same input or another one, and with all that the old one
    /// carries along. It has no key, so it runs whatever became of this one, and it tells which job it repeats.
    pub async fn rerun(&self, input: Option<Json>) -> Result<JobHandle, JobError> {
        let old = self.view().await?;
        let job = match &old.flow {
            Some(flow) => NewJob::of_flow(self.engine.pinned(flow).await?),
            None => NewJob::with_spec(old.task().spec.clone()).limits(old.task().limits.clone()),
        };
        let document = match &old.document {
            Some(_) => self.engine.store().document(self.id).await?,
            None => None,
        };
        let job = NewJob { document, ..job }
            .meta(old.meta.clone())
            .payload(input.unwrap_or_else(|| old.payload.clone()))
            .tenant(old.tenant.clone())
            .priority(old.priority)
            .rerun_of(self.id);
        self.engine.start(job).await
    }

    async fn ask(&self, verb: Verb, command: Command) -> Result<JobState, JobError> {
        let named = match &command {
            Command::Recover { from, .. } => from.clone(),
            _ => None,
        };
        let job = self.id;
        let wish = Wish { command, expect: self.expect };
        match self.engine.control(vec![wish]).await?.pop() {
            Some(Controlled::Done(state)) => Ok(state),
            Some(Controlled::Refused(state)) => Err(JobError::Refused { job, verb, state }),
            Some(Controlled::Changed(state)) => Err(JobError::Changed { job, state }),
            Some(Controlled::Superseded(by)) => Err(JobError::Superseded { job, by }),
            Some(Controlled::NoRecovery(why)) => Err(JobError::NoRecovery { job, why }),
            Some(Controlled::NoSuchTask) => {
                let known = self.view().await?.tasks.iter().map(|task| task.name.to_string()).collect();
                Err(JobError::NoSuchTask { job, task: named.unwrap_or_default().to_string(), known })
            }
            Some(Controlled::NotFound) | None => Err(JobError::NotFound(job)),
        }
    }
}
