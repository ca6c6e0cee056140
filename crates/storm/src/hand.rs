//! The program that the `command` jobs run: this one, by a hidden subcommand. What it does it appends to a file,
//! whole lines at once, and the storm reads the file at the end.

use crate::behaviour::token;
use crate::server::task_id;
use crate::{Failure, clock};
use orchestrator_core::Json;
use orchestrator_history::{Event, Run};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Line {
    at: u64,
    task: String,
    attempt: u32,
    /// What it gives, on the line of the end.
    output: Option<Json>,
}

/// Works as a handler; answers with what goes to stdout.
pub fn work(path: &Path, seed: u64) -> Result<String, Failure> {
    let task = std::env::var("ORCHESTRATOR_TASK")?;
    let attempt: u32 = std::env::var("ORCHESTRATOR_ATTEMPT")?.parse()?;
    let run = Run { task: task_id(&task).ok_or("ORCHESTRATOR_TASK is no task")?, attempt };
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    append(&mut file, &Line { at: clock::now(), task: task.clone(), attempt, output: None })?;
    std::thread::sleep(Duration::from_millis(u64::from(attempt) % 7 + 3));
    let output =
        Json::from(serde_json::json!({ "task": task, "attempt": attempt, "token": token(seed, run) }));
    append(&mut file, &Line { at: clock::now(), task, attempt, output: Some(output.clone()) })?;
    Ok(output.to_string())
}

fn append(file: &mut File, line: &Line) -> Result<(), Failure> {
    let text = serde_json::to_string(line)? + "\n";
    Ok(file.write_all(text.as_bytes())?)
}

/// What all hands noted.
pub fn read(path: &Path) -> Result<Vec<(u64, Event)>, Failure> {
    if !path.exists() {
        return Ok(vec![]);
    }
    let text = std::fs::read_to_string(path)?;
    let mut events = vec![];
    for line in text.lines() {
        let line: Line = serde_json::from_str(line)?;
        let run =
            Run { task: task_id(&line.task).ok_or("a line that names no task")?, attempt: line.attempt };
        let event = match line.output {
            Some(output) => Event::Finished { run, output: Some(output) },
            None => Event::Started { run, limits: vec![] },
        };
        events.push((line.at, event));
    }
    Ok(events)
}
