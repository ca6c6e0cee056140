//! The service that the jobs call: a small HTTP/1.1 server inside the storm. It outlives every process that is
//! killed, so what it saw of the handlers is the truth from outside.

use crate::behaviour::{Act, Behaviour, token};
use crate::record::Record;
use orchestrator_core::{JobId, Json, LimitKey, TaskId};
use orchestrator_history::{Event, Run};
use serde_json::json;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The header in which a job names the limit under which it runs.
pub const LIMIT_HEADER: &str = "x-storm-limit";
/// No request of ours is longer.
const MAX_REQUEST: usize = 1 << 20;
/// So many parts a fan-out gets.
pub const PARTS: usize = 4;

/// Starts to serve; answers with the address to call. It ends with the runtime.
pub async fn start(seed: u64, record: Record) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Without it each answer may wait for an acknowledgement of the one before.
                    let _ = stream.set_nodelay(true);
                    let connection = Connection { stream, buffer: vec![], seed, record: record.clone() };
                    // A connection that breaks is what storms are about; the history tells.
                    tokio::spawn(async move { connection.serve().await });
                }
                // Out of file descriptors, most likely: some will close.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    });
    Ok(url)
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    seed: u64,
    record: Record,
}

/// Who asks.
struct Request {
    run: Run,
    limits: Vec<LimitKey>,
}

impl Connection {
    async fn serve(mut self) -> io::Result<()> {
        while let Some(request) = self.request().await? {
            let run = request.run;
            let behaviour = Behaviour::of(self.seed, run, !request.limits.is_empty());
            if behaviour.fails() {
                self.record.faulted(run);
            }
            self.record.note(Event::Started { run, limits: request.limits });
            if self.gone_within(behaviour.after).await {
                self.record.note(Event::Aborted { run });
                return Ok(());
            }
            // Noted before it is sent: once it is, the next task may start at any moment.
            let (status, body) = match behaviour.act {
                Act::Answer(status) => (status, body(self.seed, run, status)),
                Act::Cut => {
                    self.record.note(Event::Finished { run, output: None });
                    return Ok(());
                }
            };
            let output = (status == 200).then(|| Json::from(json!({ "status": status, "body": body })));
            self.record.note(Event::Finished { run, output });
            self.answer(status, &body.to_string()).await?;
        }
        Ok(())
    }

    /// Whether the client went away within a span.
    async fn gone_within(&mut self, span: Duration) -> bool {
        let end = tokio::time::sleep(span);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return false,
                read = self.stream.read_buf(&mut self.buffer) => if !matches!(read, Ok(1..)) {
                    return true;
                },
            }
        }
    }

    /// The next request; `None` when the client has left.
    async fn request(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if self.buffer.len() > MAX_REQUEST || self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        let header = |name: &str| {
            head.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(found, _)| found.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim())
        };
        let length: usize = header("content-length").and_then(|text| text.parse().ok()).unwrap_or_default();
        while self.buffer.len() < end + length {
            if self.buffer.len() > MAX_REQUEST || self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
        self.buffer.drain(..end + length);
        let task = header("idempotency-key").and_then(task_id);
        let attempt = header("x-orchestrator-attempt").and_then(|text| text.parse().ok());
        let (Some(task), Some(attempt)) = (task, attempt) else {
            return Err(io::Error::other("a request that names no task and attempt"));
        };
        let limits = header(LIMIT_HEADER).and_then(|text| text.parse().ok()).into_iter().collect();
        Ok(Some(Request { run: Run { task, attempt }, limits }))
    }

    async fn answer(&mut self, status: u16, body: &str) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all((head + body).as_bytes()).await
    }
}

fn body(seed: u64, run: Run, status: u16) -> serde_json::Value {
    if status != 200 {
        return json!({ "storm": status });
    }
    let token = token(seed, run);
    let parts: Vec<_> = (0..PARTS).map(|n| format!("{token}-{n}")).collect();
    json!({ "task": run.task.to_string(), "attempt": run.attempt, "token": token, "parts": parts })
}

/// Reads `job/index`.
pub fn task_id(text: &str) -> Option<TaskId> {
    let (job, index) = text.split_once('/')?;
    Some(TaskId { job: job.parse::<JobId>().ok()?, index: index.parse().ok()? })
}
