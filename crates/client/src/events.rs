//! Live events, across reconnects: the server is asked to go on after the last event that came, so none is lost and none comes twice.

use crate::error::ClientError;
use crate::http::Client;
use orchestrator_api::events::{JOB, JobChange, TASK, TaskChange};
use orchestrator_core::JobId;
use orchestrator_store::EventId;
use reqwest::Response;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The pause before the first try to come back, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A server says something every 15 seconds; one that is silent for longer than this is gone.
const SILENCE: Duration = Duration::from_secs(45);
/// No event is as long as this.
const LONGEST: usize = 1 << 20;

/// Which events to hear.
#[derive(Clone, Debug, Default)]
pub struct EventsQuery {
    /// Only of these jobs; of any where there are none.
    pub jobs: Vec<JobId>,
    /// Only of jobs of these flows; of any where there are none.
    pub flows: Vec<String>,
    /// From after this event on; from now on where there is none. [`EventId::START`] begins with the oldest that is kept.
    pub after: Option<EventId>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveEvent {
    /// Its id.
    pub id: EventId,
    /// What changed.
    pub change: Change,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A task entered a state.
    Task(TaskChange),
    /// A job of a flow did.
    Job(JobChange),
}

impl Client {
    /// Listens to events. The server is connected to when the first is asked for.
    pub fn events(&self, query: EventsQuery) -> Events {
        let EventsQuery { jobs, flows, after } = query;
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let jobs = jobs.into_iter().map(|job| pair("job", job.to_string()));
        let mut query: Vec<_> = jobs.chain(flows.into_iter().map(|flow| pair("flow", flow))).collect();
        if after == Some(EventId::START) {
            query.push(pair("after", "0".to_owned()));
        }
        // Where that is in the journal, the server tells first.
        let last = after.filter(|after| *after != EventId::START);
        Events { client: self.clone(), query, last, connection: None, backoff: Duration::ZERO }
    }
}

/// Events as they come.
pub struct Events {
    client: Client,
    query: Vec<(String, String)>,
    last: Option<EventId>,
    connection: Option<Connection>,
    backoff: Duration,
}

struct Connection {
    response: Response,
    blocks: Blocks,
}

impl Events {
    /// The last event up to which everything was heard. Kept, it is where another time can go on.
    pub fn last(&self) -> Option<EventId> {
        self.last
    }

    /// Connects, and says after which event it listens: whatever is done from then on is heard.
    pub async fn start(&mut self) -> Result<EventId, ClientError> {
        loop {
            match (&self.connection, self.last) {
                (Some(_), Some(last)) => return Ok(last),
                (None, _) => self.connect().await?,
                // The first that a server says is where it begins.
                (Some(_), None) => self.hear().await,
            }
        }
    }

    /// The next event, however often the connection is lost until it comes. An error is final: the server will not go on from
    /// here, because a job is not there or the events are not kept any more. Nothing is lost where this is dropped half-way.
    pub async fn next(&mut self) -> Result<LiveEvent, ClientError> {
        loop {
            let Some(connection) = &mut self.connection else {
                self.connect().await?;
                continue;
            };
            let Some(block) = connection.blocks.next() else {
                self.hear().await;
                continue;
            };
            self.backoff = BACKOFF.0;
            self.last = block.id.or(self.last);
            if let Some(event) = self.read(block)? {
                return Ok(event);
            }
        }
    }

    /// Takes in what the server says next; gives the connection up where it ended or is silent.
    async fn hear(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        match timeout(SILENCE, connection.response.chunk()).await {
            Ok(Ok(Some(bytes))) if connection.blocks.push(&bytes) => {
                // The greeting, where nothing was heard before: it has an id and no event.
                if self.last.is_none()
                    && let Some(greeting) = connection.blocks.next()
                {
                    self.last = greeting.id;
                }
            }
            _ => self.connection = None,
        }
    }

    /// Connects, after a pause that grows with every try that brings nothing.
    async fn connect(&mut self) -> Result<(), ClientError> {
        sleep(self.backoff).await;
        self.backoff = (self.backoff * 2).clamp(BACKOFF.0, BACKOFF.1);
        match self.client.open(&["events"], &self.query, self.last).await {
            Ok(response) => self.connection = Some(Connection { response, blocks: Blocks::default() }),
            Err(error) if error.is_refusal() => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    fn read(&self, block: Block) -> Result<Option<LiveEvent>, ClientError> {
        let Some(id) = block.id.filter(|_| !block.data.is_empty()) else { return Ok(None) };
        let change = match block.event.as_str() {
            TASK => Change::Task(self.parse(&block.data)?),
            JOB => Change::Job(self.parse(&block.data)?),
            // Of a server that knows more.
            _ => return Ok(None),
        };
        Ok(Some(LiveEvent { id, change }))
    }

    fn parse<T: DeserializeOwned>(&self, data: &str) -> Result<T, ClientError> {
        serde_json::from_str(data).map_err(|error| self.client.strange(200, error.to_string()))
    }
}

/// Puts blocks of lines together from pieces of bytes.
#[derive(Default)]
struct Blocks {
    bytes: Vec<u8>,
    /// So many of them were read.
    read: usize,
}

/// The fields of one event.
#[derive(Debug, Default, PartialEq)]
struct Block {
    id: Option<EventId>,
    event: String,
    data: String,
}

impl Blocks {
    /// Adds bytes. False if this cannot be a stream of events.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.bytes.drain(..std::mem::take(&mut self.read));
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() <= LONGEST
    }

    /// The next whole block.
    fn next(&mut self) -> Option<Block> {
        let rest = &self.bytes[self.read..];
        let end = rest.windows(2).position(|pair| pair == b"\n\n")?;
        let text = String::from_utf8_lossy(&rest[..end]);
        self.read += end + 2;
        let mut block = Block::default();
        for (field, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => block.id = value.parse().ok(),
                "event" => block.event = value.to_owned(),
                "data" => block.data.push_str(value),
                _ => {}
            }
        }
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_whole_however_the_bytes_come() {
        let text = "retry: 1000\nid: 3.0\n\n:\n\nid: 4.1\nevent: task\ndata: {\"a\":1}\n\nid: 5";
        let whole = |id: &str, event: &str, data: &str| Block {
            id: id.parse().ok(),
            event: event.to_owned(),
            data: data.to_owned(),
        };
        let expected = [whole("3.0", "", ""), Block::default(), whole("4.1", "task", "{\"a\":1}")];
        for size in 1..text.len() {
            let mut blocks = Blocks::default();
            let mut got = vec![];
            for part in text.as_bytes().chunks(size) {
                assert!(blocks.push(part));
                got.extend(std::iter::from_fn(|| blocks.next()));
            }
            assert_eq!(got, expected, "by {size}");
        }
    }
}
