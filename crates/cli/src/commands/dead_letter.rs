//! `orchestrator dead-letter ...`: failed tasks that wait for somebody's decision.

use super::jobs::control::error_of;
use crate::cli::Globals;
use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::jobs::{find, shown};
use crate::output::{Output, Paint, age, columns, count, cut};
use crate::session::{Missing, Session};
use clap::{Args, Subcommand};
use orchestrator_core::TaskId;
use orchestrator_store::{Catalog, Command, Controlled, DeadLetter, LineFilter, Store};
use serde_json::json;

/// Dead letters are read and changed in pages of this length.
const PAGE: u32 = 500;
/// So much of an error stands in the table.
const SHOWN_ERROR: usize = 60;

/// `dead-letter ...`
#[derive(Debug, Subcommand)]
pub enum DeadLetterCommand {
    /// List dead letters, the oldest first
    List(ListArgs),
    /// Show dead letters with their whole errors
    #[command(before_help = "Examples:
  orchestrator dead-letter show 019a8f00
  orchestrator dead-letter show '019a8f00/label[3]' --json")]
    Show(ShowArgs),
    /// Run dead letters again, and what comes after them
    #[command(before_help = "Examples:
  orchestrator dead-letter requeue '019a8f00/label[3]'
  orchestrator dead-letter requeue --all --handler http")]
    Requeue(ChangeArgs),
    /// Take dead letters away; their tasks stay failed
    #[command(before_help = "Examples:
  orchestrator dead-letter discard 019a8f00
  orchestrator dead-letter discard --all --queue papers")]
    Discard(ChangeArgs),
}

/// Which lines.
#[derive(Clone, Debug, Args)]
pub struct LineArgs {
    /// Only of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only of this handler
    #[arg(long, value_name = "HANDLER")]
    handler: Option<String>,
}

impl LineArgs {
    fn filter(&self) -> LineFilter {
        LineFilter {
            queue: self.queue.as_deref().map(Into::into),
            handler: self.handler.as_deref().map(Into::into),
        }
    }
}

/// Arguments of `dead-letter list`.
#[derive(Debug, Args)]
#[command(before_help = "Examples:
  orchestrator dead-letter list
  orchestrator dead-letter list --handler http --limit 10 --json")]
pub struct ListArgs {
    /// Which lines.
    #[command(flatten)]
    line: LineArgs,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

/// Arguments of `dead-letter show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A job, or a task as JOB/TASK
    #[arg(required = true, value_name = "JOB[/TASK]")]
    letters: Vec<String>,
}

/// Arguments of `dead-letter requeue` and `discard`.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// A job, or a task as JOB/TASK
    #[arg(value_name = "JOB[/TASK]", required_unless_present = "all", conflicts_with = "all")]
    letters: Vec<String>,
    /// All of them, or all of a queue or handler
    #[arg(long)]
    all: bool,
    /// Which lines.
    #[command(flatten)]
    line: LineArgs,
}

/// Runs a `dead-letter` command.
pub async fn run(command: DeadLetterCommand, globals: &Globals) -> CliResult {
    let session = Session::start(globals, vec![])?;
    let store = session.open(Missing::Fail).await?;
    let out = session.out;
    let result = match command {
        DeadLetterCommand::List(args) => list(out, &*store, &args).await,
        DeadLetterCommand::Show(args) => show(out, &*store, &args).await,
        DeadLetterCommand::Requeue(args) => change(out, &*store, &args, Verb::Requeue).await,
        DeadLetterCommand::Discard(args) => change(out, &*store, &args, Verb::Discard).await,
    };
    store.close().await;
    result
}

async fn list(out: Output, store: &dyn Catalog, args: &ListArgs) -> CliResult {
    let letters = store.dead_letters(args.line.filter(), None, args.limit).await?;
    if !out.is_table() {
        out.json_list(&letters)?;
        return Ok(Exit::Ok);
    }
    let now = store.now();
    let rows = letters.iter().map(|letter| {
        vec![
            format!("{}/{}", letter.task.job, letter.name),
            letter.handler.to_string(),
            letter.reason.to_string(),
            age(now.since(letter.at)),
            cut(&letter.message, SHOWN_ERROR),
        ]
    });
    out.data(&columns(&["JOB/TASK", "HANDLER", "REASON", "AGE", "LAST ERROR"], &[], rows.collect()))?;
    if letters.len() == args.limit as usize {
        out.note(format!("the first {}; --limit N shows more", args.limit));
    }
    Ok(Exit::Ok)
}

async fn show(out: Output, store: &dyn Catalog, args: &ShowArgs) -> CliResult {
    let mut letters = vec![];
    for text in &args.letters {
        letters.extend(named(store, text).await?);
    }
    if !out.is_table() {
        out.json_list(&letters)?;
        return Ok(Exit::Ok);
    }
    for letter in &letters {
        let name = format!("{}/{}", letter.task.job, letter.name);
        out.line(format!(
            "{}  {}, since {}",
            out.paint(Paint::Bold, &name),
            letter.reason,
            shown::moment(letter.at)
        ))?;
        let work = letter.flow.as_deref().map(|flow| format!(" of flow {flow}")).unwrap_or_default();
        out.line(format!("  {} in queue {}{work}", letter.handler, letter.queue))?;
        out.line(format!("  attempts {}, crashes {}", letter.counters.attempt, letter.counters.crashes))?;
        for line in letter.message.lines() {
            out.line(format!("  {line}"))?;
        }
    }
    Ok(Exit::Ok)
}

/// The dead letters that a text names: one task of a job, or all of a job. There is at least one.
async fn named(store: &dyn Catalog, text: &str) -> CliResult<Vec<DeadLetter>> {
    let (job, task) = text.split_once('/').map_or((text, None), |(job, task)| (job, Some(task)));
    let job = find::job(store, job).await?;
    let mut tasks = vec![];
    match task {
        Some(name) => tasks.push(find::task(store, &job, name).await?),
        None => {
            for task in &job.tasks {
                tasks.push(task.clone());
                tasks.extend(find::items(store, job.id, task).await?);
            }
        }
    }
    let letters: Vec<DeadLetter> = tasks
        .into_iter()
        .filter_map(|task| {
            Some(DeadLetter {
                reason: task.dead?,
                task: TaskId { job: job.id, index: task.index },
                name: task.name,
                flow: job.flow.as_ref().map(|flow| flow.name.clone()),
                key: job.key.clone(),
                queue: task.spec.queue.clone(),
                handler: task.spec.handler.clone(),
                at: task.ended.unwrap_or(job.created),
                counters: task.counters,
                message: task.history.last().map(|last| last.message.clone()).unwrap_or_default(),
            })
        })
        .collect();
    if letters.is_empty() {
        return Err(CliError::new(Exit::NotFound, "not_found", format!("{text} is not in the dead letters"))
            .hint("`orchestrator dead-letter list` shows what is"));
    }
    Ok(letters)
}

/// What is done with dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Requeue,
    Discard,
}

/// What came of it.
#[derive(Default)]
struct Tally {
    done: u64,
    refused: Vec<CliError>,
}

async fn change(out: Output, store: &dyn Store, args: &ChangeArgs, verb: Verb) -> CliResult {
    let mut tally = Tally::default();
    if args.all {
        let mut after = None;
        loop {
            let letters = store.dead_letters(args.line.filter(), after, PAGE).await?;
            let Some(last) = letters.last() else { break };
            after = Some(last.task);
            carry_out(store, verb, &letters, true, &mut tally).await?;
        }
    } else {
        let filter = args.line.filter();
        for text in &args.letters {
            let mut letters = named(store, text).await?;
            letters.retain(|letter| {
                filter.queue.as_ref().is_none_or(|queue| *queue == letter.queue)
                    && filter.handler.as_ref().is_none_or(|handler| *handler == letter.handler)
            });
            carry_out(store, verb, &letters, !text.contains('/'), &mut tally).await?;
        }
    }
    let word = if verb == Verb::Requeue { "requeued" } else { "discarded" };
    if out.is_table() {
        out.line(format!("{word} {}", count(tally.done)))?;
    } else {
        let errors: Vec<_> = tally.refused.iter().map(|error| &error.what).collect();
        out.json(&json!({ "result": word, "count": tally.done, "refused": errors }))?;
    }
    if tally.refused.len() > 1 {
        let what = format!("{} were left as they are", tally.refused.len());
        let error = CliError::new(Exit::Conflict, "refused", what);
        return Err(CliError {
            details: tally.refused.into_iter().map(|error| error.what).collect(),
            ..error
        });
    }
    tally.refused.pop().map_or(Ok(Exit::Ok), Err)
}

/// Changes letters. `whole` says that they stand for all that failed in their jobs: a job goes on
/// once, so what failed in it is then taken up together.
async fn carry_out(
    store: &dyn Store,
    verb: Verb,
    letters: &[DeadLetter],
    whole: bool,
    tally: &mut Tally,
) -> CliResult<()> {
    let mut commands: Vec<(Command, u64)> = vec![];
    for letter in letters {
        let command = match verb {
            Verb::Requeue if whole => Command::Retry(letter.task.job),
            Verb::Requeue => Command::Requeue(letter.task),
            Verb::Discard => Command::Discard(letter.task),
        };
        match commands.last_mut() {
            Some((last, count)) if *last == command => *count += 1,
            _ => commands.push((command, 1)),
        }
    }
    let answers = store.control(commands.iter().map(|(command, _)| command.clone().into()).collect()).await?;
    for ((command, count), answer) in commands.iter().zip(answers) {
        match &answer {
            Controlled::Done(_) => tally.done += count,
            // Taken up with an earlier page, or by somebody else in this moment.
            Controlled::Refused(state) if whole && !state.is_terminal() => tally.done += count,
            other => tally.refused.extend(error_of(command.job(), other)),
        }
    }
    Ok(())
}
