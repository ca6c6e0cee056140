//! `orchestrator jobs pause|resume|cancel|retry|recover`: what an operator asks of jobs. It is
//! written straight into the database; workers of other processes see it within a second.

use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::jobs::{find, shown};
use crate::output::Output;
use crate::session::{Missing, Session};
use clap::Args;
use orchestrator_core::JobId;
use orchestrator_store::{Command, Controlled};
use serde_json::{Value, json};

/// Arguments of the commands that take jobs.
#[derive(Debug, Args)]
pub struct IdsArgs {
    /// The jobs: their ids, or the starts of them
    #[arg(required = true)]
    jobs: Vec<String>,
}

/// Arguments of `jobs recover`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator jobs recover 019a8f00
  orchestrator jobs recover 019a8f00 --from validate && orchestrator run --resume 019a8f00",
    after_help = "What had completed before stays and does not run again. A flow says how often a job of it may be
recovered (max_recoveries, 3 unless it says otherwise)."
)]
pub struct RecoverArgs {
    /// The job: its id, or the start of it
    job: String,
    /// From this task on: it and all that come after it run again [default: from all that went wrong]
    #[arg(long, value_name = "TASK")]
    from: Option<String>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Verb {
    /// Start nothing new.
    Pause,
    /// Go on.
    Resume,
    /// End now.
    Cancel,
    /// Run again what failed.
    Retry,
}

impl Verb {
    fn command(self, job: JobId) -> Command {
        match self {
            Verb::Pause => Command::Pause(job),
            Verb::Resume => Command::Resume(job),
            Verb::Cancel => Command::Cancel(job),
            Verb::Retry => Command::Retry(job),
        }
    }
}

/// Asks one thing of jobs.
pub async fn run(verb: Verb, args: &IdsArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    // All are found before anything changes.
    let mut ids = vec![];
    for text in &args.jobs {
        ids.push(find::id(&*store, text).await?);
    }
    let answers = store.control(ids.iter().map(|id| verb.command(*id).into()).collect()).await?;
    store.close().await;
    tell(session.out, ids.into_iter().zip(answers).collect())
}

/// Takes a job up again.
pub async fn recover(args: &RecoverArgs, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let job = find::job(&*store, &args.job).await?;
    if let Some(from) = &args.from {
        // Names what there is, where it is misspelt.
        find::task(&*store, &job, from).await?;
    }
    let command = Command::Recover { job: job.id, from: args.from.as_deref().map(Into::into) };
    let answers = store.control(vec![command.into()]).await?;
    let answers = answers.into_iter().map(|answer| (job.id, answer)).collect();
    let result = tell(session.out, answers);
    if result.is_ok() {
        let now = store.job(job.id).await?;
        let again = now.map_or(0, |job| job.tasks.iter().filter(|task| !task.state.is_terminal()).count());
        session.out.note(format!(
            "{again} of {} tasks run again; `orchestrator run --resume {}` works on them",
            job.tasks.len(),
            job.id
        ));
    }
    store.close().await;
    result
}

fn tell(out: Output, answers: Vec<(JobId, Controlled)>) -> CliResult {
    let mut refused = vec![];
    let mut documents: Vec<Value> = vec![];
    for (id, answer) in answers {
        let error = error_of(id, &answer);
        if !out.is_table() {
            let state = match &answer {
                Controlled::Done(state) | Controlled::Refused(state) | Controlled::Changed(state) => {
                    Some(state.as_str())
                }
                _ => None,
            };
            let error = error.as_ref().map(|error| &error.what);
            documents.push(json!({ "job": id, "done": error.is_none(), "state": state, "error": error }));
        } else if let Controlled::Done(state) = &answer {
            out.line(format!("{id}  {}", out.paint(shown::job_paint(*state), state.as_str())))?;
        }
        refused.extend(error);
    }
    if !out.is_table() {
        out.json_list(&documents)?;
    }
    if refused.len() > 1 {
        let error =
            CliError::new(Exit::Conflict, "refused", format!("{} jobs were left as they are", refused.len()));
        return Err(CliError { details: refused.into_iter().map(|error| error.what).collect(), ..error });
    }
    refused.pop().map_or(Ok(Exit::Ok), Err)
}

/// What is said of a command that was not carried out.
pub fn error_of(id: JobId, answer: &Controlled) -> Option<CliError> {
    let conflict = |code, what: String| Some(CliError::new(Exit::Conflict, code, what));
    match answer {
        Controlled::Done(_) => None,
        Controlled::Refused(state) => {
            conflict("refused", format!("job {id} is {state}, where this makes no sense"))
                .map(|error| error.hint(format!("`orchestrator jobs status {id}` tells more")))
        }
        Controlled::Changed(state) => {
            conflict("changed", format!("job {id} is {state} by now: nothing was done to it"))
                .map(|error| error.hint(format!("`orchestrator jobs status {id}` tells more")))
        }
        Controlled::Superseded(newer) => conflict(
            "superseded",
            format!("the key of job {id} belongs to job {newer} now, so it cannot run again"),
        )
        .map(|error| error.hint(format!("`orchestrator jobs rerun {id}` makes a new job of it"))),
        Controlled::NoRecovery(why) => {
            conflict("no_recovery", format!("job {id} cannot be taken up again: {why}"))
                .map(|error| error.hint(format!("`orchestrator jobs rerun {id}` makes a new job of it")))
        }
        Controlled::NotFound => {
            Some(CliError::new(Exit::NotFound, "not_found", format!("there is no job {id}")))
        }
        Controlled::NoSuchTask => Some(CliError::new(
            Exit::NotFound,
            "not_found",
            format!("job {id} has no such task, or it is not in the dead letters"),
        )),
    }
}
