//! `command`: runs a program, JSON in and JSON out.
//!
//! ```json
//! {"run": ["python3", "validate.py"], "input": {"file": "a.pdf"},
//!  "env": {"LANG": "C"}, "cwd": "/srv/checks", "timeout": "2m", "parse": "json",
//!  "exit": {"done": [0], "skipped": [3], "retryable": [75]}}
//! ```
//!
//! Only `run` is required. The program reads one object from its standard input:
//! `{"task": id, "attempt": n, "key": key, "input": ..., "checkpoint": ...}`, where `input` is the
//! payload's, or `{}`. A payload with `stdin` instead of `input` has exactly that JSON written. The
//! environment is that of the worker, then `env`, then `ORCHESTRATOR_TASK`, `ORCHESTRATOR_ATTEMPT`
//! and, where the job has a key, `ORCHESTRATOR_KEY`; where it belongs to a trace or to other work, `TRACEPARENT` and
//! `ORCHESTRATOR_CORRELATION_ID`.
//!
//! How it ends says what came of it; `exit` replaces the lists that it names:
//!
//! | end | outcome |
//! | --- | --- |
//! | exit 0 (`done`) | completed; its output is the result |
//! | exit 3 (`skipped`) | skipped; its output is the reason |
//! | exit 75 (`retryable`) | failed, tried again; `{"retry_after": "30s"}` on its output is kept |
//! | any other exit | failed for good |
//! | death by a signal | failed, tried again |
//! | longer than `timeout` | failed, tried again |
//! | no such program, or it may not be run | failed for good |
//! | more output than the limit, or output that is not JSON | failed for good |
//!
//! `parse` says what its output is. With `json`, the default, it must be one JSON document, which is the
//! result as it stands; no output at all is the result `null`. Anything else is garbage, and another
//! attempt would most likely print it again, so the task fails for good and shows how the output begins.
//! With `text` any output is fine: the result is `{"stdout": "...", "exit": 0}`, where line ends at the end
//! are cut off and bytes that are not UTF-8 are replaced by U+FFFD.
//!
//! The end of what it wrote to standard error goes into the message of a failure.
//!
//! The program leads a process group of its own, and the attempt ends with the whole group: see
//! [`process`]. A `kill -9` of the worker itself is the one end that the group survives: Linux
//! offers a death signal against it, but only by code that runs between fork and exec, which Rust
//! cannot do safely. The lease runs out then and another attempt starts, so a program that must
//! never run twice at once takes a lock of its own.

mod payload;
mod process;

use super::BuiltinConfig;
use super::fields::refused;
use crate::handler::{Handler, Work};
use async_trait::async_trait;
use orchestrator_core::{ErrorClass, Failure, FieldError, Json, Meta, Millis, Outcome};
use orchestrator_store::Leased;
use payload::{Parse, Program};
use process::{Ended, Running, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::future::pending;

/// How much of an output that is not JSON a message shows.
const SHOWN_OUTPUT: usize = 200;

pub(super) struct Command {
    max_output: usize,
    kill_grace: Millis,
}

/// What a program reads from its standard input.
#[derive(Serialize)]
struct Brief<'a> {
    task: String,
    attempt: u32,
    key: Option<&'a str>,
    input: Json,
    checkpoint: Option<&'a Json>,
}

impl Command {
    pub fn new(config: &BuiltinConfig) -> Self {
        Command { max_output: config.max_output, kill_grace: config.kill_grace }
    }

    async fn execute(&self, work: &Work) -> Result<Outcome, Failure> {
        let program = Program::parse(&work.leased.payload).map_err(refused)?;
        let stdin = stdin(&program, &work.leased)?;
        let mut running = Running::start(&program, &environment(&work.leased))?;
        let time_is_up = async {
            match program.timeout {
                Some(span) => tokio::time::sleep(span.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            ended = running.finish(stdin.as_str().as_bytes(), self.max_output, self.kill_grace) => match ended {
                Ok(ended) => judge(&program, ended),
                Err(Trouble::TooMuch) => {
                    Err(Failure::permanent(format!("{} wrote more than {} bytes", program.name(), self.max_output)))
                }
                Err(Trouble::Io(error)) => {
                    Err(Failure::transient(format!("lost sight of {}: {error}", program.name())))
                }
            },
            () = work.cancelled.cancelled() => {
                running.stop(self.kill_grace).await;
                Ok(Outcome::Released)
            }
            () = time_is_up => {
                running.stop(self.kill_grace).await;
                let span = program.timeout.unwrap_or_default();
                Err(Failure::new(ErrorClass::Timeout, format!("{} took longer than {span}", program.name())))
            }
        }
    }
}

fn stdin(program: &Program, leased: &Leased) -> Result<Json, Failure> {
    if let Some(stdin) = &program.stdin {
        return Ok(stdin.clone());
    }
    let brief = Brief {
        task: leased.task.to_string(),
        attempt: leased.counters.attempt,
        key: leased.key.as_deref(),
        input: program.input.clone().unwrap_or_else(|| Json::trusted("{}")),
        checkpoint: leased.checkpoint.as_ref(),
    };
    Json::of(&brief)
        .map_err(|error| Failure::new(ErrorClass::Defect, format!("cannot write the input: {error}")))
}

fn environment(leased: &Leased) -> Vec<(&'static str, String)> {
    let mut ours = vec![
        ("ORCHESTRATOR_TASK", leased.task.to_string()),
        ("ORCHESTRATOR_ATTEMPT", leased.counters.attempt.to_string()),
    ];
    // The system refuses a program whose environment holds a NUL; such a key is on stdin only.
    if let Some(key) = leased.key.as_deref().filter(|key| !key.contains('\0')) {
        ours.push(("ORCHESTRATOR_KEY", key.to_owned()));
    }
    // Words of this kind hold no NUL.
    let Meta { traceparent, correlation_id, .. } = &*leased.meta;
    for (name, word) in [("TRACEPARENT", traceparent), ("ORCHESTRATOR_CORRELATION_ID", correlation_id)] {
        ours.extend(word.as_deref().map(|word| (name, word.to_owned())));
    }
    ours
}

/// The table of the module's head.
fn judge(program: &Program, ended: Ended) -> Result<Outcome, Failure> {
    let name = program.name();
    let said =
        |what: String| if ended.stderr.is_empty() { what } else { format!("{what}: {}", ended.stderr) };
    let Some(code) = ended.status.code() else {
        return Err(Failure::transient(said(format!("{name} was ended by {}", ended.status))));
    };
    if program.exit.done.contains(&code) {
        output(program, &ended.stdout, code).map(Outcome::Completed)
    } else if program.exit.skipped.contains(&code) {
        output(program, &ended.stdout, code).map(Outcome::Skipped)
    } else if program.exit.retryable.contains(&code) {
        let mut failure = Failure::transient(said(format!("{name} ended with exit code {code}")));
        failure.retry_after = wish(&ended.stdout);
        Err(failure)
    } else {
        Err(Failure::permanent(said(format!("{name} ended with exit code {code}"))))
    }
}

fn output(program: &Program, stdout: &[u8], exit: i32) -> Result<Json, Failure> {
    match program.parse {
        Parse::Json => document(program.name(), stdout.trim_ascii()),
        Parse::Text => {
            let text = String::from_utf8_lossy(stdout);
            Ok(json!({ "stdout": text.trim_end_matches(['\r', '\n']), "exit": exit }).into())
        }
    }
}

fn document(name: &str, stdout: &[u8]) -> Result<Json, Failure> {
    if stdout.is_empty() {
        return Ok(Json::null());
    }
    let parsed = match std::str::from_utf8(stdout) {
        Ok(text) => Json::parse(text).map_err(|error| error.to_string()),
        Err(error) => Err(format!("byte {} is not UTF-8", error.valid_up_to() + 1)),
    };
    parsed.map_err(|why| {
        let shown = beginning(stdout);
        Failure::new(
            ErrorClass::Defect,
            format!("{name} wrote something that is not one JSON document ({why}; \"parse\": \"text\" takes any output): {shown}"),
        )
    })
}

/// How an output begins, fit for a terminal.
fn beginning(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(&output[..output.len().min(SHOWN_OUTPUT)]);
    let mut shown: String = text
        .chars()
        .map(|c| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if output.len() > SHOWN_OUTPUT {
        shown.push_str(" ...");
    }
    shown
}

/// When a program that wants another attempt wants it.
fn wish(stdout: &[u8]) -> Option<Millis> {
    #[derive(Deserialize)]
    struct Wish {
        retry_after: Millis,
    }
    serde_json::from_slice::<Wish>(stdout).ok().map(|wish| wish.retry_after)
}

#[async_trait]
impl Handler for Command {
    async fn run(&self, work: Work) -> Outcome {
        self.execute(&work).await.unwrap_or_else(Outcome::Failed)
    }

    fn check(&self, payload: &Json) -> Vec<FieldError> {
        Program::parse(payload).err().unwrap_or_default()
    }
}
