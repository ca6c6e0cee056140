//! How a job ended: its output or its document on stdout, the rest on stderr.

use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use crate::jobs::shown;
use crate::output::{Output, count, took};
use orchestrator_core::{JobState, TaskState};
use orchestrator_store::{JobView, TaskView};

/// So many failed tasks are told.
const TOLD: usize = 5;

/// Writes the job's output, or for programs the whole job; one that ended badly is an error.
pub fn report(out: Output, job: &JobView) -> CliResult {
    if !out.is_table() {
        out.json(job)?;
    }
    if job.state != JobState::Completed {
        return Err(failed(job));
    }
    out.note(headline(out, job));
    if let (true, Some(output)) = (out.is_table(), &job.output) {
        out.line(shown::pretty(output))?;
    }
    Ok(Exit::Ok)
}

fn headline(out: Output, job: &JobView) -> String {
    let word = out.paint_err(shown::job_paint(job.state), job.state.as_str());
    let tasks = job.tasks.len() as u64;
    let spent =
        shown::job_took(job, job.created).map(|span| format!(" in {}", took(span))).unwrap_or_default();
    let mut text = format!("{word}{spent} · {}", plural(tasks, "task"));
    let items: u64 = job.tasks.iter().filter_map(|task| task.items).map(|items| u64::from(items.count)).sum();
    let retries: u64 = job.tasks.iter().map(|task| u64::from(task.counters.failures)).sum();
    let skipped = job.tasks.iter().filter(|task| task.state == TaskState::Skipped).count() as u64;
    for (number, word) in [(items, "item"), (retries, "failed attempt")] {
        if number > 0 {
            text += &format!(" · {}", plural(number, word));
        }
    }
    if skipped > 0 {
        text += &format!(" · {skipped} skipped");
    }
    if job.recoveries > 0 {
        text += &format!(" · {}", plural(job.recoveries.into(), "recovery"));
    }
    format!("{text} · job {}", job.id)
}

fn plural(number: u64, word: &str) -> String {
    match (number, word.strip_suffix('y')) {
        (1, _) => format!("1 {word}"),
        (_, Some(stem)) => format!("{} {stem}ies", count(number)),
        (_, None) => format!("{} {word}s", count(number)),
    }
}

fn failed(job: &JobView) -> CliError {
    let bad = |task: &&TaskView| matches!(task.state, TaskState::Failed | TaskState::TimedOut);
    let tasks: Vec<&TaskView> = job.tasks.iter().filter(bad).collect();
    let mut details: Vec<String> = tasks.iter().take(TOLD).map(|task| line(job, task)).collect();
    if tasks.len() > TOLD {
        details.push(format!("... and {} more", tasks.len() - TOLD));
    }
    let reason = job.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let what = match job.state {
        JobState::Cancelled => format!("the job was cancelled{reason}"),
        JobState::TimedOut => format!("the job timed out{reason}"),
        _ => format!("the job failed{reason}"),
    };
    let error = CliError { details, ..CliError::new(Exit::WorkFailed, "work_failed", what) };
    let error = error.at(format!("job {} of {}", job.id, shown::work(job)));
    let more = if tasks.is_empty() {
        String::new()
    } else {
        format!("`orchestrator jobs status {} --failed` tells more; ", job.id)
    };
    let next = if job.is_recoverable() {
        format!("`orchestrator jobs recover {}` takes it up again", job.id)
    } else {
        format!("`orchestrator jobs rerun {}` makes a new job of it", job.id)
    };
    error.hint(more + &next)
}

fn line(job: &JobView, task: &TaskView) -> String {
    let name = if job.flow.is_some() { format!("{}: ", task.name) } else { String::new() };
    if let Some(items) = &task.items {
        return format!("{name}{} of {} items failed", items.failed, items.count);
    }
    let attempts = plural(task.counters.attempt.into(), "attempt");
    match task.history.last() {
        Some(last) if task.counters.attempt > 0 => format!("{name}{} ({attempts})", last.message),
        Some(last) => format!("{name}{}", last.message),
        None => format!("{name}{}", task.state),
    }
}
