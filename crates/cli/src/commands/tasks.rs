//! `orchestrator tasks ...`: the tasks of a job.

use crate::cli::Globals;
use crate::error::CliResult;
use crate::exit::Exit;
use crate::jobs::{find, shown};
use crate::output::{Output, Paint, age};
use crate::session::{Missing, Session};
use clap::{Args, Subcommand};
use orchestrator_core::{Json, Timestamp};
use orchestrator_store::{AttemptEnd, Catalog, JobView, TaskView};

/// So many items are shown after their task.
const SHOWN_ITEMS: usize = 20;
/// So much of an input or an output is shown.
const SHOWN_JSON: usize = 4000;

/// `tasks ...`
#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// List the tasks of a job
    List(ListArgs),
    /// Show a task: input, output, attempts, limits, times
    Show(ShowArgs),
}

/// Arguments of `tasks list`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator tasks list 019a8f00
  orchestrator tasks list 019a8f00 --items --json")]
pub struct ListArgs {
    /// The job: its id, or the start of it
    job: String,
    /// With all items of for_each tasks
    #[arg(long)]
    items: bool,
}

/// Arguments of `tasks show`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator tasks show 019a8f00 validate
  orchestrator tasks show 019a8f00 'label[3]' --json")]
pub struct ShowArgs {
    /// The job: its id, or the start of it
    job: String,
    /// The task: its name, `name[3]` for an item, or its index [default: the only one]
    task: Option<String>,
}

/// Runs a `tasks` command.
pub async fn run(command: TasksCommand, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let result = match command {
        TasksCommand::List(args) => list(session.out, &*store, &args).await,
        TasksCommand::Show(args) => show(session.out, &*store, &args).await,
    };
    store.close().await;
    result
}

async fn list(out: Output, store: &dyn Catalog, args: &ListArgs) -> CliResult {
    let job = find::job(store, &args.job).await?;
    let mut tasks = vec![];
    for task in &job.tasks {
        tasks.push(task.clone());
        if args.items {
            tasks.extend(find::items(store, job.id, task).await?);
        }
    }
    if out.is_table() {
        out.data(&shown::task_table(out, &job, &tasks, store.now()))?;
    } else {
        out.json_list(&tasks)?;
    }
    Ok(Exit::Ok)
}

async fn show(out: Output, store: &dyn Catalog, args: &ShowArgs) -> CliResult {
    let job = find::job(store, &args.job).await?;
    let task = match &args.task {
        Some(name) => find::task(store, &job, name).await?,
        None if job.tasks.len() == 1 => job.task().clone(),
        None => {
            let names: Vec<_> = job.tasks.iter().map(|task| task.name.to_string()).collect();
            return Err(crate::error::CliError::usage("the job has several tasks: name one")
                .hint(format!("it has {}", names.join(", "))));
        }
    };
    if !out.is_table() {
        out.json(&task)?;
        return Ok(Exit::Ok);
    }
    let now = store.now();
    let head = format!("{} {}", shown::icon(task.state), task.name);
    let head = shown::task_paint(task.state).map_or_else(|| head.clone(), |how| out.paint(how, &head));
    out.line(format!("{head}  {}", task.state))?;
    for (name, value) in facts(&job, &task, now) {
        out.line(format!("  {name:<9} {value}"))?;
    }
    if !task.history.is_empty() {
        out.line(out.paint(Paint::Bold, "attempts that did not end well"))?;
    }
    for record in &task.history {
        let how = match record.how {
            AttemptEnd::Failed(class) => class.as_str(),
            AttemptEnd::Lost => "lost",
            AttemptEnd::Stale => "stale",
        };
        out.line(format!("  {}  {}  {how}: {}", record.attempt, shown::moment(record.at), record.message))?;
    }
    for (name, json) in [("input", &task.input), ("checkpoint", &task.checkpoint), ("output", &task.output)] {
        if let Some(json) = json {
            out.line(out.paint(Paint::Bold, name))?;
            out.line(indented(json))?;
        }
    }
    let items = find::items(store, job.id, &task).await?;
    if !items.is_empty() {
        let some = &items[..items.len().min(SHOWN_ITEMS)];
        out.data(&shown::task_table(out, &job, some, now))?;
        if items.len() > SHOWN_ITEMS {
            out.note(format!("the first {SHOWN_ITEMS} of {}; `tasks list --items` shows all", items.len()));
        }
    }
    Ok(Exit::Ok)
}

fn facts(job: &JobView, task: &TaskView, now: Timestamp) -> Vec<(&'static str, String)> {
    let ago = |at: Timestamp| format!("{} ({} ago)", shown::moment(at), age(now.since(at)));
    let within = |at: Timestamp| format!("{} (in {})", shown::moment(at), age(at.since(now)));
    let mut facts = vec![
        ("job", format!("{} of {}", job.id, shown::work(job))),
        ("handler", format!("{} in queue {}", task.spec.handler, task.spec.queue)),
    ];
    if task.items.is_none() {
        let most = task.spec.retry.max_retries + 1;
        facts.push(("attempt", format!("{}, of which at most {most} may fail", task.counters.attempt)));
    }
    if task.counters.crashes > 0 {
        facts.push(("crashes", format!("{} of at most {}", task.counters.crashes, task.spec.max_crashes)));
    }
    facts.extend(task.spec.timeout.map(|span| ("timeout", span.to_string())));
    if !task.limits.is_empty() {
        let keys: Vec<_> = task.limits.keys().iter().map(ToString::to_string).collect();
        facts.push(("limits", keys.join(", ")));
    }
    facts.extend(task.items.as_ref().map(|items| ("items", shown::items(items))));
    facts.extend(task.worker.as_ref().map(|worker| ("worker", worker.to_string())));
    facts.extend(task.started.map(|at| ("started", ago(at))));
    facts.extend(task.expires.map(|at| ("lease", within(at))));
    facts.extend(task.since.map(|at| ("in line", ago(at))));
    facts.extend(task.due.map(|at| ("due", within(at))));
    facts.extend(task.ended.map(|at| ("ended", ago(at))));
    facts.extend(task.usual.map(|span| ("usually", crate::output::took(span))));
    facts.extend(task.dead.map(|reason| {
        ("dead", format!("{reason}; `orchestrator dead-letter requeue {}/{}`", job.id, task.name))
    }));
    facts
}

fn indented(json: &Json) -> String {
    let text = shown::pretty(json);
    let start: String = text.chars().take(SHOWN_JSON).collect();
    let more = if start.len() < text.len() { "\n... (--json shows all)" } else { "" };
    format!("{start}{more}").lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
