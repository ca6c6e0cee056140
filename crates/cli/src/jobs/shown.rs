//! Jobs and tasks as people see them: an icon, a word and a colour for a state, and a line on what
//! a task is doing.

use crate::output::{Output, Paint, age, columns, cut, took};
use orchestrator_core::flow::Node;
use orchestrator_core::flow::document::Kind;
use orchestrator_core::{JobState, Json, Millis, TaskState, Timestamp};
use orchestrator_store::{ItemsView, JobView, TaskView};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// So much of an error stands in a table.
pub const SHOWN_ERROR: usize = 90;

/// The sign of a task's state. The word always stands beside it.
pub fn icon(state: TaskState) -> &'static str {
    match state {
        TaskState::Pending => "○",
        TaskState::Queued => "◌",
        TaskState::Running => "▶",
        TaskState::Retrying => "↻",
        TaskState::Completed => "✔",
        TaskState::Skipped => "↷",
        TaskState::Failed | TaskState::TimedOut => "✘",
        TaskState::Cancelled => "⊘",
    }
}

/// The colour of a task's state, where it has one.
pub fn task_paint(state: TaskState) -> Option<Paint> {
    match state {
        TaskState::Completed => Some(Paint::Green),
        TaskState::Failed | TaskState::TimedOut => Some(Paint::Red),
        TaskState::Retrying => Some(Paint::Yellow),
        TaskState::Running => Some(Paint::Bold),
        TaskState::Pending | TaskState::Queued | TaskState::Skipped | TaskState::Cancelled => {
            Some(Paint::Dim)
        }
    }
}

/// The colour of a job's state.
pub fn job_paint(state: JobState) -> Paint {
    match state {
        JobState::Completed => Paint::Green,
        JobState::Failed | JobState::TimedOut => Paint::Red,
        JobState::Cancelled | JobState::Pending => Paint::Dim,
        JobState::Paused | JobState::Pausing | JobState::Recovering => Paint::Yellow,
        JobState::Running => Paint::Bold,
    }
}

/// What a job runs: its flow with the version, or its handler.
pub fn work(job: &JobView) -> String {
    match (&job.flow, job.tasks.first()) {
        (Some(flow), _) => format!("{}@{}", flow.name, flow.version),
        (None, Some(task)) => task.spec.handler.to_string(),
        (None, None) => "-".to_owned(),
    }
}

/// A moment, as `2026-11-15T06:00:00.25Z`.
pub fn moment(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}

/// A JSON document with line breaks, its fields in the order in which they were written.
pub fn pretty(json: &Json) -> String {
    let document = Node::from_json(json.as_str()).ok();
    let text = document.and_then(|document| serde_json::to_string_pretty(&Ordered(&document)).ok());
    text.unwrap_or_else(|| json.to_string())
}

/// A document that writes its fields in their order.
struct Ordered<'a>(&'a Node);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match &self.0.kind {
            Kind::Null => out.serialize_unit(),
            Kind::Bool(value) => out.serialize_bool(*value),
            Kind::Number(value) => value.serialize(out),
            Kind::Text(value) => out.serialize_str(value),
            Kind::List(items) => out.collect_seq(items.iter().map(Ordered)),
            Kind::Map(fields) => {
                out.collect_map(fields.iter().map(|field| (&field.name, Ordered(&field.value))))
            }
        }
    }
}

/// How long a job has taken so far, or took.
pub fn job_took(job: &JobView, now: Timestamp) -> Option<Millis> {
    job.started.map(|started| job.ended.unwrap_or(now).since(started))
}

/// How many items of a `for_each` have ended, and how.
pub fn items(items: &ItemsView) -> String {
    let mut text = format!("{}/{} ended", items.ended, items.count);
    for (number, word) in [(items.running, "running"), (items.failed, "failed")] {
        if number > 0 {
            text += &format!(", {number} {word}");
        }
    }
    text
}

/// What a task does or waits for, or how it ended, beside its state.
pub fn doing(task: &TaskView, now: Timestamp) -> String {
    let error = || task.history.last().map(|last| last.message.as_str()).unwrap_or_default();
    match task.state {
        TaskState::Running => match &task.items {
            Some(view) => items(view),
            None if task.counters.attempt > 1 => format!("attempt {}", task.counters.attempt),
            None => String::new(),
        },
        TaskState::Retrying => {
            let due = task.due.map(|due| format!(", again in {}", took(due.since(now)))).unwrap_or_default();
            format!("attempt {} failed{due}: {}", task.counters.attempt, error())
        }
        TaskState::Queued if task.held => "held: the job is paused".to_owned(),
        TaskState::Queued if task.parked => {
            let keys: Vec<_> = task.limits.keys().iter().map(ToString::to_string).collect();
            format!("waits for room under {}", keys.join(", "))
        }
        TaskState::Queued => match task.due.filter(|due| *due > now) {
            Some(due) => format!("starts in {}", age(due.since(now))),
            None => String::new(),
        },
        TaskState::Completed => match &task.items {
            Some(items) => format!("{} items", items.count),
            None if task.counters.failures + task.counters.crashes > 0 => {
                format!("at attempt {}", task.counters.attempt)
            }
            None => String::new(),
        },
        TaskState::Failed | TaskState::TimedOut | TaskState::Cancelled => match &task.items {
            Some(view) => items(view),
            None => error().to_owned(),
        },
        TaskState::Skipped => error().to_owned(),
        TaskState::Pending => String::new(),
    }
}

/// The tasks of a job as a table.
pub fn task_table(out: Output, job: &JobView, tasks: &[TaskView], now: Timestamp) -> String {
    let rows = tasks.iter().map(|task| {
        let ended = task.ended.map(|at| format!("+{}", took(at.since(job.created))));
        let runs = task.started.map(|started| format!("runs {}", took(now.since(started))));
        let attempt = task.items.map_or_else(|| task.counters.attempt.to_string(), |_| "-".to_owned());
        vec![
            format!("{} {}", icon(task.state), task.state),
            task.name.to_string(),
            task.spec.handler.to_string(),
            attempt,
            ended.or(runs).unwrap_or_else(|| "-".to_owned()),
            cut(&doing(task, now), SHOWN_ERROR),
        ]
    });
    let table = columns(&["STATE", "TASK", "HANDLER", "ATTEMPT", "ENDED", ""], &[3, 4], rows.collect());
    // Colour comes last: it would upset the widths.
    let mut lines = table.lines();
    let heading = lines.next().map(|line| out.paint(Paint::Bold, line) + "\n").unwrap_or_default();
    let painted = lines.zip(tasks).map(|(line, task)| match task_paint(task.state) {
        Some(how) => out.paint(how, line) + "\n",
        None => format!("{line}\n"),
    });
    heading + &painted.collect::<String>()
}

/// A job in a list, for programs.
pub fn summary(job: &JobView) -> Value {
    let count = |state: TaskState| job.tasks.iter().filter(|task| task.state == state).count();
    let counts: serde_json::Map<String, Value> = TaskState::ALL
        .iter()
        .map(|state| (state.to_string(), count(*state)))
        .filter(|(_, number)| *number > 0)
        .map(|(state, number)| (state, number.into()))
        .collect();
    json!({
        "id": job.id, "state": job.state, "flow": job.flow, "handler": handler(job), "key": job.key,
        "tenant": job.tenant, "priority": job.priority, "created": job.created, "started": job.started,
        "ended": job.ended, "deadline": job.deadline, "previous": job.previous, "waits_for": job.waits_for,
        "recoveries": job.recoveries, "recoverable": job.is_recoverable(), "reason": job.reason,
        "tasks": job.tasks.len(), "tasks_by_state": counts, "error": last_error(job),
    })
}

fn handler(job: &JobView) -> Option<&str> {
    job.flow.is_none().then(|| job.tasks.first()).flatten().map(|task| &*task.spec.handler)
}

/// What went wrong last in a job that ended badly: the job's own reason, or that of a task.
pub fn last_error(job: &JobView) -> Option<String> {
    if let Some(reason) = &job.reason {
        return Some(reason.clone());
    }
    let bad = |task: &&TaskView| matches!(task.state, TaskState::Failed | TaskState::TimedOut);
    let task = job.tasks.iter().filter(bad).max_by_key(|task| task.ended)?;
    let message = match (&task.items, task.history.last()) {
        (Some(items), _) => format!("{} of {} items failed", items.failed, items.count),
        (None, last) => last?.message.clone(),
    };
    Some(if job.flow.is_some() { format!("{}: {message}", task.name) } else { message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_its_order() {
        let json = Json::parse(r#"{"b":[1,{"z":null,"a":true}],"a":"x"}"#).unwrap();
        let expected = "{\n  \"b\": [\n    1,\n    {\n      \"z\": null,\n      \"a\": true\n    }\n  ],\n  \"a\": \"x\"\n}";
        assert_eq!(pretty(&json), expected);
    }

    #[test]
    fn moments_are_written_in_full() {
        assert_eq!(moment(Timestamp::from_millis(1_794_722_400_250)), "2026-11-15T06:00:00.25Z");
    }
}
