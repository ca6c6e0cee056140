//! The last word: every job read once more, when all is over.

use crate::record::Record;
use crate::tools::Tools;
use crate::{Failure, load};
use orchestrator_core::{Counters, JobId, JobState, Json, TaskId, TaskState};
use orchestrator_history::{Finding, Kind, LastJob, LastTask, LastWord};
use serde::Deserialize;
use serde_json::Value;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, BufReader};

/// A job as the binary shows it whole.
#[derive(Deserialize)]
pub struct Job {
    id: JobId,
    key: Option<Arc<str>>,
    flow: Option<Flow>,
    payload: Json,
    state: JobState,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Flow {
    name: String,
}

#[derive(Deserialize)]
struct Task {
    index: u32,
    name: Arc<str>,
    state: TaskState,
    counters: Counters,
    input: Option<Json>,
    output: Option<Json>,
    items: Option<Items>,
    history: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Attempt {
    how: Value,
}

#[derive(Deserialize)]
struct Items {
    first: u32,
    count: u32,
}

/// Reads all jobs.
pub async fn read(tools: &Tools) -> Result<Vec<Job>, Failure> {
    let most = u32::MAX.to_string();
    let args = ["jobs", "list", "--full", "--oldest-first", "--limit", &most];
    let mut child = tools.command(&args).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let mut jobs = vec![];
    while let Some(line) = lines.next_line().await? {
        jobs.push(serde_json::from_str(&line)?);
    }
    let status = child.wait().await?;
    if !status.success() {
        return Err(format!("the jobs cannot be read: {status}").into());
    }
    Ok(jobs)
}

/// The jobs as the checker takes them.
pub fn word(jobs: &[Job]) -> LastWord {
    LastWord { jobs: jobs.iter().map(Job::last).collect() }
}

impl Job {
    fn last(&self) -> LastJob {
        let task = |task: &Task| LastTask {
            index: task.index,
            name: task.name.clone(),
            state: task.state,
            attempt: task.counters.attempt,
            failures: task.counters.failures,
            crashes: task.counters.crashes,
            output: task.output.clone().filter(|_| task.items.is_none()),
            runs: task.items.is_none(),
            needs: self.needs(task).map(|need| need.index).collect(),
        };
        LastJob {
            id: self.id,
            key: self.key.clone(),
            payload: self.payload.clone(),
            state: self.state,
            tasks: self.tasks.iter().map(task).collect(),
        }
    }

    fn needs<'a>(&'a self, task: &Task) -> impl Iterator<Item = &'a Task> {
        let flow = self.flow.as_ref().map_or("", |flow| &flow.name);
        // An item needs what its list needs.
        let name = task.name.split('[').next().unwrap_or_default();
        let names = load::needs(flow, name);
        self.tasks.iter().filter(move |other| names.contains(&&*other.name))
    }

    /// What a completed task must have got, told by the outputs of what it needs.
    fn due_input(&self, task: &Task) -> Option<Value> {
        let need = self.needs(task).next()?;
        if let Some(items) = &need.items {
            let item = |n: u32| self.tasks.iter().find(|task| task.index == items.first + n);
            return Some(
                (0..items.count)
                    .map(|n| item(n).and_then(|item| item.output.as_ref()).map(Json::value))
                    .collect(),
            );
        }
        let body = need.output.as_ref()?.value()["body"].take();
        let group = self.tasks.iter().find_map(|group| {
            let items = group.items.as_ref()?;
            (items.first..items.first + items.count).contains(&task.index).then_some(items)
        });
        Some(match group {
            Some(items) => body["parts"][(task.index - items.first) as usize].clone(),
            None => body["token"].clone(),
        })
    }
}

/// How many writes came after their lease was lost, and were refused: what the fences had to hold.
pub fn stale_writes(jobs: &[Job]) -> usize {
    let attempts = jobs.iter().flat_map(|job| &job.tasks).flat_map(|task| &task.history);
    attempts.filter(|attempt| attempt.how == "stale").count()
}

/// What the checker cannot know: whether each task of a flow got what those before it gave in the end.
pub fn check_inputs(jobs: &[Job]) -> Vec<Finding> {
    let mut findings = vec![];
    for job in jobs {
        let ran = job.tasks.iter().filter(|task| task.state == TaskState::Completed && task.items.is_none());
        for task in ran {
            let (Some(due), Some(input)) = (job.due_input(task), &task.input) else { continue };
            let got = input.value()["json"]["from"].take();
            if got != due {
                let what =
                    format!("job {} task {}: got {got} where those before it gave {due}", job.id, task.name);
                findings.push(Finding { kind: Kind::Wrong, what });
            }
        }
    }
    findings
}

/// Whether failures were counted that nobody caused: for storms in which nothing may cost an attempt.
pub fn check_failures(jobs: &[Job], record: &Record) -> Vec<Finding> {
    let mut findings = vec![];
    for job in jobs {
        for task in &job.tasks {
            let caused = record.faults(TaskId { job: job.id, index: task.index });
            if task.counters.failures > caused {
                let what = format!(
                    "job {} task {}: {} failures, of which the other side caused {caused}",
                    job.id, task.name, task.counters.failures
                );
                findings.push(Finding { kind: Kind::Wrong, what });
            }
        }
    }
    findings
}
