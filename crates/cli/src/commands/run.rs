//! `orchestrator run FLOW`: a flow on the embedded store, from its submit to its end, with workers of
//! its own.

use crate::cli::Globals;
use crate::config::Flag;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::flow::source::{self, Origin};
use crate::jobs::find;
use crate::jobs::submit::{SubmitArgs, apply, submit};
use crate::live::{Live, Seen, report};
use crate::session::{Missing, Session};
use crate::signals::Signals;
use crate::telemetry::traces;
use crate::workers;
use clap::Args;
use orchestrator_core::{JobState, Millis, NewJob, TaskState, human};
use orchestrator_engine::{Engine, Waited, unknown_handler};
use orchestrator_store::Store;
use orchestrator_store::{FlowChanged, JobView, Submitted};
use orchestrator_worker::{Pool, PoolConfig, Registry, handler_fn};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:
  orchestrator run examples/flows/dataset-build.yaml --input-field images=24
  orchestrator run --resume 019a8f00",
    after_help = "FLOW is a file in YAML, JSON or TOML, or the name of an applied flow (name or name@3). A file is
applied first. Workers of this process run the job to its end; they serve only the queues and the
handlers that the flow names, but there any job of the database. stdout gets the job's output.
Exit code: 0 completed, 6 failed, cancelled or timed out, 7 the wait was too long, 130 Ctrl-C.
A job that was interrupted, or killed with its process, goes on with --resume: nothing that had
completed runs again."
)]
pub struct RunArgs {
    /// The flow: a file, or the name of an applied flow
    #[arg(required_unless_present = "resume")]
    flow: Option<String>,
    /// Take up a job that exists already, instead of a new one
    #[arg(long, value_name = "JOB", conflicts_with_all = ["flow", "input", "input_field", "key", "priority", "after", "tenant"])]
    resume: Option<String>,
    /// What the job gets.
    #[command(flatten)]
    submit: SubmitArgs,
    /// Wait no longer than this; the job can be taken up later
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span)]
    wait_timeout: Option<Millis>,
    /// How many tasks run at once in this process [default: queue.max_workers]
    #[arg(long, value_name = "N")]
    concurrency: Option<String>,
    /// How long a task is held without a sign of life of this process: after a kill, so long until it can be taken up
    #[arg(long, value_name = "SPAN", value_parser = human::parse_span, default_value = "10s")]
    lease_ttl: Millis,
    /// Show no progress, only the end
    #[arg(long)]
    no_progress: bool,
}

/// How long and how to work on a job.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The longest wait.
    pub patience: Option<Millis>,
    /// How long a task is held without a heartbeat.
    pub lease_ttl: Millis,
}

/// What ended the work on a job.
pub enum End {
    /// The job did.
    Job(Box<JobView>),
    /// The patience.
    Patience(Box<JobView>),
    /// Ctrl-C or SIGTERM.
    Asked,
}

/// Runs the flow.
pub async fn run(args: RunArgs, globals: &Globals) -> CliResult {
    let workers = args.concurrency.iter();
    let flags = workers.map(|n| Flag { key: "queue.max_workers", name: "--concurrency", value: n.clone() });
    let session = Session::start(globals, flags.collect())?;
    let mut live = Live::start(session.out, args.no_progress);
    let (store, job) = match (&args.resume, &args.flow) {
        (Some(text), _) => resume(&session, &mut live, text).await?,
        (None, Some(flow)) => start(&session, &live, flow, &args.submit).await?,
        (None, None) => return Err(CliError::usage("name a flow, or a job with --resume")),
    };
    let terms = Terms { patience: args.wait_timeout, lease_ttl: args.lease_ttl };
    let ended = work_on(&session, &store, &job, terms, &mut live).await;
    live.finish();
    store.close().await;
    match ended? {
        End::Job(job) => report(session.out, &job),
        End::Patience(job) => Err(CliError::new(
            Exit::TimedOut,
            "wait_timed_out",
            format!("the job has not ended: it is {}", job.state),
        )
        .at(format!("job {}", job.id))
        .hint(format!("`orchestrator run --resume {}` goes on", job.id))),
        End::Asked => {
            session
                .out
                .note(format!("job {} has not ended; `orchestrator run --resume {0}` goes on", job.id));
            Ok(Exit::Interrupted)
        }
    }
}

/// Puts a new job in.
async fn start(
    session: &Session,
    live: &Live,
    flow: &str,
    args: &SubmitArgs,
) -> CliResult<(Arc<dyn Store>, JobView)> {
    // A file that is wrong must not leave an empty database behind.
    let from_file = source::means_file(flow);
    let loaded = if from_file { Some(source::find(flow, None).await?) } else { None };
    if let Some(flow) = &loaded {
        flow.misfits(&session.registry()).refuse()?;
    }
    let store = session.open(if from_file { Missing::Create } else { Missing::Fail }).await?;
    let flow = match loaded {
        Some(flow) => flow,
        None => {
            let flow = source::find(flow, Some(&*store)).await?;
            flow.misfits(&session.registry()).refuse()?;
            flow
        }
    };
    if let Origin::File(path) = &flow.origin {
        let name = flow.plan.name();
        match apply(&*store, &flow.plan).await? {
            FlowChanged::Created(version) => {
                live.note(&format!("applied {name}@{version} from {}", path.display()))
            }
            FlowChanged::Restored(version) => live.note(&format!("{name}@{version} is current again")),
            _ => {}
        }
    }
    let job = args.complete(NewJob::of_flow(flow.plan.clone()), session, &*store).await?;
    let engine = session.engine(store.clone());
    let answer = submit(&engine, job).await?;
    match &answer {
        Submitted::Created { id, previous: None } => live.note(&format!("job {id}")),
        Submitted::Created { id, previous: Some(previous) } => {
            live.note(&format!("job {id}, after job {previous} that ended badly"));
        }
        Submitted::Existing { id, state } => {
            live.note(&format!("job {id} has the same key already: it is {state}, and this is its result"));
        }
        Submitted::Conflict { id } => live.note(&format!("job {id}")),
    }
    let job = find::job(&*store, &answer.id().to_string()).await?;
    Ok((store, job))
}

/// Takes an existing job up.
async fn resume(session: &Session, live: &mut Live, text: &str) -> CliResult<(Arc<dyn Store>, JobView)> {
    let store = session.open(Missing::Fail).await?;
    let job = find::job(&*store, text).await?;
    let registry = session.registry();
    let unknown: Vec<_> = job
        .tasks
        .iter()
        .filter(|task| !task.state.is_terminal() && registry.get(&task.spec.handler).is_none())
        .map(|task| format!("{}: {}", task.name, unknown_handler(&registry, &task.spec.handler)))
        .collect();
    if !job.state.is_terminal() && !unknown.is_empty() {
        let error = CliError::new(Exit::Usage, "unknown_handler", "this program cannot run all of the job");
        return Err(CliError { details: unknown, ..error }.at(format!("job {}", job.id)));
    }
    let over = job.tasks.iter().filter(|task| task.state.is_terminal()).count();
    live.note(&format!("job {}: {over} of {} tasks have ended", job.id, job.tasks.len()));
    let now = store.now();
    let held = job.tasks.iter().filter(|task| task.state == TaskState::Running);
    if let Some(expires) = held.filter_map(|task| task.expires).max().filter(|expires| *expires > now) {
        live.note(&format!(
            "some of it is held by another worker; if that one is gone, it comes back in {}",
            crate::output::took(expires.since(now))
        ));
    }
    if matches!(job.state, JobState::Paused | JobState::Pausing) {
        live.note(&format!("the job is {}: `orchestrator jobs resume {}` lets it go on", job.state, job.id));
    }
    live.know(&Seen::look(&session.engine(store.clone()), job.id).await?);
    Ok((store, job))
}

/// Works on a job until it has ended, with workers for what it needs and nothing else.
pub async fn work_on(
    session: &Session,
    store: &Arc<dyn Store>,
    job: &JobView,
    terms: Terms,
    live: &mut Live,
) -> CliResult<End> {
    let mut signals = Signals::listen()?;
    let engine = session.engine(store.clone());
    if job.state.is_terminal() {
        return Ok(End::Job(Box::new(job.clone())));
    }
    workers::write_limits(session, &**store).await?;
    let sweeper = engine.start_sweeper();
    let retainer = engine.start_retention(session.retention());
    let pool = Pool::start(
        session.source(&engine)?,
        handlers_of(job, session.registry()),
        pool_config(session, job, terms),
    );
    let ended = tokio::select! {
        waited = live.until_ended(&engine, job.id, terms.patience) => waited.map(|waited| match waited {
            Waited::Ended(job) => End::Job(Box::new(job)),
            Waited::TimedOut(job) => End::Patience(Box::new(job)),
        }),
        _ = signals.next() => Ok(End::Asked),
    };
    let grace = session.config.queue.grace;
    let running = pool.stats().running;
    match ended {
        Ok(End::Job(_)) if running > 0 => live.note(&format!(
            "{running} of other jobs run here and may take up to {grace} to finish; Ctrl-C stops at once"
        )),
        Ok(End::Asked | End::Patience(_)) => live.note(&format!(
            "stopping: {running} running may take up to {grace} to finish; Ctrl-C again stops at once"
        )),
        _ => {}
    }
    workers::stop(&pool, grace, &mut signals, |text| live.note(text)).await;
    sweeper.stop().await;
    if let Some(retainer) = retainer {
        retainer.stop().await;
    }
    match ended? {
        // What ran last may have ended the job.
        asked @ (End::Asked | End::Patience(_)) => Ok(ended_meanwhile(&engine, job).await?.unwrap_or(asked)),
        ended => Ok(ended),
    }
}

async fn ended_meanwhile(engine: &Engine, job: &JobView) -> CliResult<Option<End>> {
    let now = engine.store().job(job.id).await?;
    Ok(now.filter(|job| job.state.is_terminal()).map(|job| End::Job(Box::new(job))))
}

/// The handlers that the job needs, and no others.
fn handlers_of(job: &JobView, all: Registry) -> Registry {
    let names: BTreeSet<&Arc<str>> = job.tasks.iter().map(|task| &task.spec.handler).collect();
    names.into_iter().filter_map(|name| Some((name, all.get(name)?.clone()))).fold(
        Registry::new(),
        |registry, (name, handler)| {
            registry.with(
                name,
                handler_fn(move |work| {
                    let handler = handler.clone();
                    async move { handler.run(work).await }
                }),
            )
        },
    )
}

fn pool_config(session: &Session, job: &JobView, terms: Terms) -> PoolConfig {
    let queue = &session.config.queue;
    let queues: BTreeSet<Arc<str>> = job.tasks.iter().map(|task| task.spec.queue.clone()).collect();
    PoolConfig {
        queues: queues.into_iter().collect(),
        max_workers: queue.max_workers as usize,
        // Short, so that a job whose process was killed can soon be taken up again.
        lease_ttl: terms.lease_ttl.max(Millis::secs(1)),
        heartbeat: Millis(terms.lease_ttl.0 / 5).max(Millis(200)),
        grace: queue.grace,
        cancel_grace: workers::CANCEL_GRACE,
        introduction: Some(workers::introduction()),
        traced: traces::are_kept(),
        ..PoolConfig::new(workers::name())
    }
}
