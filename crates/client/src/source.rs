//! A server as a source of work: what the pool of this process runs is leased there, and settled there.

use crate::error::ClientError;
use crate::http::{Client, Repeat};
use async_trait::async_trait;
use orchestrator_api::work::{
    Ended, HeartbeatAnswer, HeartbeatRequest, LeaseAnswer, LeaseRequest, LostAnswer, LostRequest, MOST_TASKS,
    SettleAnswer, SettleRequest,
};
use orchestrator_api::workers::RegisterRequest;
use orchestrator_core::Millis;
use orchestrator_store::{Beat, Held, LeaseAsk, Leased, Settled, Settlement, WorkerNote};
use orchestrator_worker::{SourceError, WorkSource};
use reqwest::Method;
use std::iter::Peekable;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One request waits for work so long at most. A request is never given up half-way, because it may bring leases: this is what
/// a stop waits for.
const SLICE: Duration = Duration::from_secs(3);

/// What the ends of one message carry at most, in bytes, unless one alone is larger.
const MESSAGE: usize = 4 << 20;

/// A server that hands out tasks.
pub struct RemoteSource {
    client: Client,
    /// Nothing is heard from the server between requests, so it never rises: what was taken away is asked for.
    revoked: watch::Sender<u64>,
}

impl RemoteSource {
    /// Work from this server.
    pub fn new(client: Client) -> Self {
        RemoteSource { client, revoked: watch::Sender::new(0) }
    }
}

/// As many of the next ends as one message holds: at least one, where there is one.
fn portion(left: &mut Peekable<impl Iterator<Item = Ended>>) -> Vec<Ended> {
    let (mut outcomes, mut size) = (vec![], 0);
    while outcomes.len() < MOST_TASKS
        && let Some(next) = left.next_if(|next| size + next.outcome.size() <= MESSAGE || size == 0)
    {
        size += next.outcome.size().max(1);
        outcomes.push(next);
    }
    outcomes
}

fn failed(error: ClientError) -> SourceError {
    SourceError::Remote { refusal: error.is_refusal(), source: Box::new(error) }
}

#[async_trait]
impl WorkSource for RemoteSource {
    async fn lease(
        &self,
        ask: LeaseAsk,
        wait: Duration,
        stop: &CancellationToken,
    ) -> Result<Vec<Leased>, SourceError> {
        let end = Instant::now() + wait;
        loop {
            if stop.is_cancelled() {
                return Ok(vec![]);
            }
            let left = end.saturating_duration_since(Instant::now());
            let slice = left.min(SLICE);
            let request = LeaseRequest {
                worker: ask.worker.clone(),
                queues: ask.queues.clone(),
                handlers: ask.handlers.clone(),
                slots: ask.slots.min(MOST_TASKS as u32),
                wait: Some(slice.into()),
                ttl: Some(ask.ttl),
            };
            let LeaseAnswer { tasks } =
                self.client.post(&["work", "lease"], &request, slice, Repeat::Never).await.map_err(failed)?;
            if !tasks.is_empty() || left <= SLICE {
                return Ok(tasks);
            }
        }
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> Result<Vec<Beat>, SourceError> {
        let mut beats = Vec::with_capacity(held.len());
        for part in held.chunks(MOST_TASKS) {
            let request = HeartbeatRequest { held: part.to_vec(), ttl: Some(ttl) };
            let answer: HeartbeatAnswer = self
                .client
                .post(&["work", "heartbeat"], &request, Duration::ZERO, Repeat::Never)
                .await
                .map_err(failed)?;
            beats.extend(answer.beats);
        }
        Ok(beats)
    }

    async fn lost(&self, held: Vec<Held>) -> Result<Vec<Held>, SourceError> {
        let mut lost = vec![];
        for part in held.chunks(MOST_TASKS) {
            let request = LostRequest { held: part.to_vec() };
            let answer: LostAnswer = self
                .client
                .post(&["work", "lost"], &request, Duration::ZERO, Repeat::Never)
                .await
                .map_err(failed)?;
            lost.extend(answer.lost);
        }
        Ok(lost)
    }

    fn revoked(&self) -> watch::Receiver<u64> {
        self.revoked.subscribe()
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, SourceError> {
        let ended =
            |Settlement { held, outcome, .. }| Ended { task: held.task, attempt: held.attempt, outcome };
        let mut left = batch.into_iter().map(ended).peekable();
        let mut all = vec![];
        loop {
            let outcomes = portion(&mut left);
            if outcomes.is_empty() {
                return Ok(all);
            }
            let request = SettleRequest { outcomes };
            let SettleAnswer { settled } = self
                .client
                .post(&["work", "settle"], &request, Duration::ZERO, Repeat::Never)
                .await
                .map_err(failed)?;
            all.extend(settled);
        }
    }

    async fn register(&self, worker: WorkerNote) -> Result<(), SourceError> {
        let request = RegisterRequest { workers: vec![worker] };
        self.client
            .tell(Method::POST, &["work", "register"], Some(&request), Repeat::Never)
            .await
            .map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_core::{JobId, Json, Outcome, TaskId, Timestamp};

    #[test]
    fn ends_are_sent_in_messages_that_a_server_takes() {
        let task = TaskId::only(JobId::from_parts(Timestamp::from_millis(1), 1));
        let end = |size: usize| {
            let output = Json::trusted(format!("\"{}\"", "x".repeat(size)));
            Ended { task, attempt: 1, outcome: Outcome::Completed(output) }
        };
        let portions = |sizes: &[usize]| {
            let mut left = sizes.iter().map(|size| end(*size)).peekable();
            let portions = std::iter::repeat_with(move || portion(&mut left).len());
            portions.take_while(|number| *number > 0).collect::<Vec<_>>()
        };
        assert_eq!(portions(&[]), [0; 0]);
        assert_eq!(portions(&vec![10; MOST_TASKS * 2 + 1]), [MOST_TASKS, MOST_TASKS, 1]);
        assert_eq!(portions(&[MESSAGE * 2, 10, 10, MESSAGE, 10]), [1, 2, 1, 1], "one alone may be larger");
    }
}
