//! The submitting client: one long-lived `queue import -`, which is written lines to and answers each.

use crate::Failure;
use crate::load::Work;
use crate::record::Record;
use crate::tools::{Tools, send};
use orchestrator_core::JobId;
use orchestrator_history::{Answer, Call, CallId};
use rustix::process::Signal;
use serde::Deserialize;
use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};

/// A batch that is not answered in this time is given up, and the client with it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Submits works, and starts its process anew where that has ended.
pub struct Submitter {
    tools: Tools,
    record: Record,
    client: Option<Client>,
    /// How often the process ended by itself.
    pub ended: u64,
}

struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    written: u64,
}

/// What came of a batch.
#[derive(Default)]
pub struct Batch {
    /// Works that were taken, with the job that stands for each.
    pub acked: Vec<(JobId, Work)>,
    /// Works of which nobody knows.
    pub unknown: Vec<Work>,
}

#[derive(Deserialize)]
struct Line {
    line: u64,
    id: Option<JobId>,
    outcome: String,
}

impl Submitter {
    /// A client that starts with its first batch.
    pub fn new(tools: Tools, record: Record) -> Self {
        Submitter { tools, record, client: None, ended: 0 }
    }

    /// Starts the process, where there is none.
    pub fn start(&mut self) -> Result<(), Failure> {
        if self.client.is_none() {
            let log = self.tools.log("submitter")?;
            let mut command = self.tools.command(&["queue", "import", "-", "-o", "jsonl"]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn()?;
            let stdin = child.stdin.take().ok_or("no stdin")?;
            let stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
            self.client = Some(Client { child, stdin, stdout, written: 0 });
        }
        Ok(())
    }

    /// Submits works, and kills the process after a span where one is given. What is not answered then is unknown.
    pub async fn submit(&mut self, works: Vec<Work>, kill: Option<Duration>) -> Result<Batch, Failure> {
        self.start()?;
        let Some(client) = &mut self.client else { return Err("the client did not start".into()) };
        let mut waiting: HashMap<u64, (CallId, Work)> = HashMap::new();
        let mut text = String::new();
        for work in works {
            client.written += 1;
            text += &work.line;
            text.push('\n');
            let call = Call::Submit { key: work.key.clone(), payload: work.payload.clone() };
            waiting.insert(client.written, (self.record.call(call), work));
        }
        if kill.is_some() {
            self.record.fault_began(KILLED);
        }
        let mut batch = Batch::default();
        // One that has died takes nothing: then nothing is answered either.
        let written = client.stdin.write_all(text.as_bytes()).await;
        if written.is_ok() {
            client.answers(&self.record, &mut waiting, &mut batch, kill).await?;
        }
        if kill.is_some() || !waiting.is_empty() {
            send(&client.child, Signal::KILL);
            client.child.wait().await?;
            self.client = None;
            self.ended += u64::from(kill.is_none());
        }
        for (id, work) in waiting.into_values() {
            self.record.answer(id, Answer::Unknown);
            batch.unknown.push(work);
        }
        if kill.is_some() {
            self.start()?;
            self.record.fault_ended(KILLED);
        }
        Ok(batch)
    }

    /// Lets the process end in order.
    pub async fn finish(mut self) -> Result<(), Failure> {
        if let Some(Client { mut child, stdin, stdout, .. }) = self.client.take() {
            drop(stdin);
            let ended = timeout(PATIENCE, child.wait()).await;
            drop(stdout);
            ended.map_err(|_| "the submitter does not end though its stdin has")??;
        }
        Ok(())
    }
}

const KILLED: &str = "the submitter is killed";

impl Client {
    /// Reads answers until all are there, the process is gone or it hangs.
    async fn answers(
        &mut self,
        record: &Record,
        waiting: &mut HashMap<u64, (CallId, Work)>,
        batch: &mut Batch,
        kill: Option<Duration>,
    ) -> Result<(), Failure> {
        let fate = sleep(kill.unwrap_or(PATIENCE));
        tokio::pin!(fate);
        let mut killed = false;
        while !waiting.is_empty() {
            let line = tokio::select! {
                line = self.stdout.next_line() => line?,
                () = &mut fate, if !killed => {
                    // What it wrote before it died is still in the pipe, and was answered.
                    send(&self.child, Signal::KILL);
                    killed = true;
                    continue;
                }
            };
            let Some(line) = line else { break };
            let Ok(line) = serde_json::from_str::<Line>(&line) else {
                // The counts at its end, or half a line of one that was killed.
                continue;
            };
            let Some((call, work)) = waiting.remove(&line.line) else { continue };
            match (line.outcome.as_str(), line.id) {
                ("created" | "duplicate", Some(job)) => {
                    record.answer(call, Answer::Acked { job, created: line.outcome == "created" });
                    batch.acked.push((job, work));
                }
                (outcome, _) => {
                    return Err(format!("the submit of {} was answered {outcome:?}", work.key).into());
                }
            }
        }
        Ok(())
    }
}
