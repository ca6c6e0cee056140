//! What every request needs.

use crate::events::{self, Hub};
use crate::probe::Probe;
use crate::problem::Problem;
use orchestrator_core::flow::Plan;
use orchestrator_core::{FieldError, NewJob};
use orchestrator_engine::{Engine, FlowError, Intake, JobFields};
use orchestrator_worker::WorkSource;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// The server's parts, shared by all requests.
pub struct App {
    /// The engine.
    pub engine: Engine,
    /// Hands out tasks to workers elsewhere.
    pub source: Arc<dyn WorkSource>,
    /// Makes jobs of what callers write.
    intake: Mutex<Intake>,
    /// Hands events to those who listen.
    pub(crate) events: Arc<Hub>,
    /// Whether the store takes writes.
    pub probe: Probe,
    /// The largest body of a request that brings no document.
    pub max_body: usize,
    /// Since when it serves.
    pub started: Instant,
    /// Fires when the server is to stop: nobody waits from then on.
    pub stopping: CancellationToken,
}

/// The parts in the hands of a request.
pub type Shared = Arc<App>;

impl App {
    /// The parts of a server on an engine.
    pub fn new(engine: Engine, intake: Intake, max_body: usize, stopping: CancellationToken) -> Shared {
        let probe = Probe::new(engine.store().clone());
        let source = engine.source();
        let events = Hub::new(engine.store().clone(), stopping.clone(), events::RING);
        Arc::new(App {
            engine,
            source,
            events,
            intake: Mutex::new(intake),
            probe,
            max_body,
            started: Instant::now(),
            stopping,
        })
    }

    /// Makes jobs by other rules from now on.
    pub fn set_intake(&self, intake: Intake) {
        *self.intake.lock().unwrap_or_else(PoisonError::into_inner) = intake;
    }

    /// Makes a job of what a caller wrote, or says everything that is wrong with it.
    pub async fn job(&self, fields: JobFields) -> Result<NewJob, Problem> {
        let made = self.job_with(fields, &BTreeMap::new()).await?;
        made.map_err(|problems| Problem::fields(&problems))
    }

    /// The same where flows were brought along: those stand before the ones of the registry. The outer error is no mistake
    /// of the caller.
    pub async fn job_with(
        &self,
        fields: JobFields,
        brought: &BTreeMap<String, Arc<Plan>>,
    ) -> Result<Result<NewJob, Vec<FieldError>>, Problem> {
        let plan = match &fields.flow {
            Some(flow) if brought.contains_key(flow) => Some(Ok(brought[flow].clone())),
            Some(flow) => Some(match self.engine.plan(flow, None).await {
                Err(FlowError::Store(error)) => return Err(error.into()),
                plan => plan.map_err(|error| error.to_string()),
            }),
            None => None,
        };
        let mut intake = self.intake.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(intake.job(fields, |_| plan.unwrap_or_else(|| Err("it was not looked for".to_owned()))))
    }
}
