//! What has changed between two looks at a job, told once.

use crate::jobs::shown;
use crate::output::{Output, Paint, cut, took};
use orchestrator_core::{JobState, Millis, TaskState, Timestamp};
use orchestrator_store::{AttemptEnd, AttemptRecord, JobView, TaskView};
use std::collections::HashMap;

/// So much of an error stands on a line.
const SHOWN_ERROR: usize = 200;

/// What is known of a job.
#[derive(Default)]
pub struct Track {
    job: Option<JobState>,
    tasks: HashMap<u32, Known>,
}

/// What is known of a task.
struct Known {
    state: TaskState,
    attempts: usize,
    started: Option<Timestamp>,
    ended_items: u32,
}

/// Something that happened.
#[derive(Debug)]
pub struct Event {
    /// When, as far as it shows.
    pub at: Timestamp,
    what: What,
}

/// What happened.
#[derive(Debug)]
enum What {
    /// A job entered a state that no task shows.
    Job(JobState),
    /// A task entered a state; how long its last attempt took, where that is known.
    Entered(Box<TaskView>, Option<Millis>),
    /// An attempt of a task did not end well.
    Failed(Box<TaskView>, AttemptRecord),
    /// Some more items of a task have ended.
    Items(Box<TaskView>),
}

impl Track {
    /// What has happened since the last call, in order.
    pub fn events(&mut self, job: &JobView, items: &[TaskView], now: Timestamp) -> Vec<Event> {
        let mut events = vec![];
        // Items first: where moments are the same, a task ends after its items.
        for task in items.iter().chain(&job.tasks) {
            self.task(task, items, now, &mut events);
        }
        let told = matches!(job.state, JobState::Pausing | JobState::Paused | JobState::Recovering)
            || (job.state == JobState::Running && self.job.is_some_and(|before| before != JobState::Pending));
        if self.job.replace(job.state) != Some(job.state) && told {
            events.push(Event { at: now, what: What::Job(job.state) });
        }
        events.sort_by_key(|event| event.at);
        events
    }

    fn task(&mut self, task: &TaskView, items: &[TaskView], now: Timestamp, events: &mut Vec<Event>) {
        let before = self.tasks.get(&task.index);
        let view = || Box::new(task.clone());
        let (state, attempts, ended) = before
            .map_or((TaskState::Pending, 0, 0), |known| (known.state, known.attempts, known.ended_items));
        for record in task.history.iter().skip(attempts).filter(|record| record.how != AttemptEnd::Stale) {
            events.push(Event { at: record.at, what: What::Failed(view(), record.clone()) });
        }
        let expanded = task.state == TaskState::Running && task.items.is_some();
        let started = task
            .started
            // Of an attempt that was not seen to run, nobody knows how long it took.
            .or(before.filter(|_| task.state.is_terminal() || expanded).and_then(|known| known.started))
            .or_else(|| expanded.then(|| first_of(task, items).unwrap_or(now)));
        let took = task.ended.and_then(|ended| Some(ended.since(started?)));
        if state != task.state && (task.state == TaskState::Running || task.state.is_terminal()) {
            let at = task.ended.or(task.started).or_else(|| first_of(task, items)).unwrap_or(now);
            events.push(Event { at, what: What::Entered(view(), took) });
        }
        let ended_items = task.items.map_or(0, |items| items.ended);
        let one_by_one = task.items.is_some_and(|group| items.iter().any(|item| item.index == group.first));
        if ended_items > ended && !one_by_one && task.state == TaskState::Running {
            events.push(Event { at: now, what: What::Items(view()) });
        }
        let attempts = task.history.len();
        self.tasks.insert(task.index, Known { state: task.state, attempts, started, ended_items });
    }

    /// How long the attempt of a task runs, or how long its last one took.
    pub fn took(&self, task: &TaskView, now: Timestamp) -> Option<Millis> {
        let started = task.started.or_else(|| self.tasks.get(&task.index)?.started)?;
        match task.state {
            TaskState::Running => Some(now.since(started)),
            _ => task.ended.map(|ended| ended.since(started)),
        }
    }
}

/// The first sign of life of an expanded task's items.
fn first_of(task: &TaskView, items: &[TaskView]) -> Option<Timestamp> {
    let group = task.items?;
    let own = items.iter().filter(|item| item.index >= group.first && item.index - group.first < group.count);
    own.filter_map(|item| [item.since, item.started, item.ended].into_iter().flatten().min()).min()
}

impl Event {
    /// Whether an attempt failed: worth a line that stays, also beside a picture.
    pub fn is_failure(&self) -> bool {
        matches!(self.what, What::Failed(..))
    }

    /// The event on one line.
    pub fn text(&self, out: Output, now: Timestamp) -> String {
        let head = |state: TaskState, icon: &str, word: String| {
            let text = format!("{icon} {word:<9}");
            shown::task_paint(state).map_or_else(|| text.clone(), |how| out.paint_err(how, &text))
        };
        let of_state = |task: &TaskView| head(task.state, shown::icon(task.state), task.state.to_string());
        match &self.what {
            What::Job(state) => out.paint_err(Paint::Yellow, &format!("the job is {state}")),
            What::Entered(task, span) => {
                let span = span.map(|span| format!("  {}", took(span))).unwrap_or_default();
                // An error was told on a line of its own.
                let told = task.state.is_terminal() && task.items.is_none() && !task.history.is_empty();
                let detail = if told { String::new() } else { shown::doing(task, now) };
                let detail =
                    if detail.is_empty() { detail } else { format!("  {}", cut(&detail, SHOWN_ERROR)) };
                format!("{} {}{span}{detail}", of_state(task), task.name)
            }
            // A template that cannot resolve, before any attempt.
            What::Failed(task, record) if record.attempt == 0 => {
                let head = head(TaskState::Failed, "✘", "not run".to_owned());
                format!("{head} {}: {}", task.name, cut(&record.message, SHOWN_ERROR))
            }
            What::Failed(task, record) => {
                let again = task
                    .due
                    .filter(|_| task.state == TaskState::Retrying && record.attempt == task.counters.attempt)
                    .map(|due| format!(" (again after {})", took(due.since(record.at))))
                    .unwrap_or_default();
                let head = head(TaskState::Retrying, "✘", format!("attempt {}", record.attempt));
                format!("{head} {} failed{again}: {}", task.name, cut(&record.message, SHOWN_ERROR))
            }
            What::Items(task) => format!("{} {}  {}", of_state(task), task.name, shown::doing(task, now)),
        }
    }
}
