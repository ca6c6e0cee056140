//! Puts a job in, as flags describe it.

use super::find;
use super::input::InputArgs;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::session::Session;
use clap::Args;
use orchestrator_core::flow::Plan;
use orchestrator_core::{FieldError, Json, Key, Millis, NewJob, Priority, Work, human};
use orchestrator_engine::{Engine, SubmitError};
use orchestrator_store::{Catalog, FlowChange, FlowChanged, Store, Submitted};
use std::sync::Arc;

/// What a job gets beside its work.
#[derive(Clone, Debug, Default, Args)]
pub struct SubmitArgs {
    /// The input.
    #[command(flatten)]
    pub input: InputArgs,
    /// Your own id of the work: submitted twice, it is the same job [default: what the flow says]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// How long the key holds, such as 24h [default: for ever]
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span, requires = "key")]
    pub window: Option<Millis>,
    /// critical, high, normal or low [default: what the flow says, else normal]
    #[arg(long, value_name = "PRIORITY")]
    pub priority: Option<Priority>,
    /// A job that must have completed before; may be repeated
    #[arg(long, value_name = "JOB")]
    pub after: Vec<String>,
    /// Whose job it is [default: default]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
}

impl SubmitArgs {
    /// Completes a job by what the flags say.
    pub async fn complete(
        &self,
        mut job: NewJob,
        session: &Session,
        store: &dyn Catalog,
    ) -> CliResult<NewJob> {
        if self.input.is_given() {
            job = job.payload(self.input.read(None, session.max_payload())?);
        } else if matches!(job.work, Work::Flow(_)) {
            // An input without fields, so that what is missing is told by name.
            job = job.payload(Json::trusted("{}"));
        }
        if let Some(text) = &self.key {
            job = job.key(match self.window {
                Some(window) => Key::within(text.as_str(), window),
                None => Key::new(text.as_str()),
            });
        }
        if let Some(priority) = self.priority {
            job = job.priority(priority);
        }
        if let Some(tenant) = &self.tenant {
            job = job.tenant(tenant.as_str());
        }
        for before in &self.after {
            job = job.after(find::id(store, before).await?);
        }
        Ok(job)
    }
}

/// Makes a flow the current one of its name.
pub async fn apply(store: &dyn Store, plan: &Arc<Plan>) -> CliResult<FlowChanged> {
    let answers = store.change_flows(vec![FlowChange::Apply(plan.clone())]).await?;
    answers.first().copied().ok_or_else(no_answer)
}

/// Puts one job in.
pub async fn submit(engine: &Engine, job: NewJob) -> CliResult<Submitted> {
    let answers = engine.submit(vec![job]).await.map_err(|error| match error {
        SubmitError::Invalid { problems, .. } => refused(&problems),
        SubmitError::Store(error) => error.into(),
    })?;
    match answers.first().ok_or_else(no_answer)? {
        Submitted::Conflict { id } => {
            Err(CliError::new(Exit::Conflict, "conflict", "this key has a job with another input")
                .at(format!("job {id}"))
                .hint("submit it with the same input, under another --key, or with a --window"))
        }
        answer => Ok(answer.clone()),
    }
}

fn refused(problems: &[FieldError]) -> CliError {
    CliError::fields("the job was not taken in", problems)
}

fn no_answer() -> CliError {
    CliError::new(Exit::Error, "store", "the store did not answer")
}
