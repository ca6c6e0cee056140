//! Callers that come at the same time share a transaction: while one is under way, the next gathers.

use crate::tx::Abort;
use orchestrator_store::{StoreError, StoreResult};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// How many callers may wait.
const MAILBOX: usize = 4096;
/// So many requests share a transaction at most.
const MOST: usize = 5000;

type Caller<Q, A> = (Vec<Q>, oneshot::Sender<StoreResult<Vec<A>>>);

/// Gathers requests of one kind.
pub struct Batcher<Q, A>(mpsc::Sender<Caller<Q, A>>);

impl<Q: Send + Sync + 'static, A: Send + 'static> Batcher<Q, A> {
    /// Starts to gather; `run` carries out a batch.
    pub fn start<F, R>(run: F) -> Self
    where
        F: Fn(Arc<Vec<Q>>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<A>, Abort>> + Send,
    {
        let (send, mut inbox) = mpsc::channel::<Caller<Q, A>>(MAILBOX);
        tokio::spawn(async move {
            let mut left: Option<Caller<Q, A>> = None;
            loop {
                let Some(first) = (match left.take() {
                    Some(caller) => Some(caller),
                    None => inbox.recv().await,
                }) else {
                    return;
                };
                let mut callers = vec![first];
                let mut size = callers[0].0.len();
                while let Ok(caller) = inbox.try_recv() {
                    if size + caller.0.len() > MOST {
                        left = Some(caller);
                        break;
                    }
                    size += caller.0.len();
                    callers.push(caller);
                }
                serve(callers, &run).await;
            }
        });
        Batcher(send)
    }

    /// Carries out requests together with those of others.
    pub async fn ask(&self, requests: Vec<Q>) -> StoreResult<Vec<A>> {
        let (reply, answer) = oneshot::channel();
        self.0.send((requests, reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

async fn serve<Q, A, F, R>(callers: Vec<Caller<Q, A>>, run: &F)
where
    F: Fn(Arc<Vec<Q>>) -> R,
    R: Future<Output = Result<Vec<A>, Abort>>,
{
    let (batches, replies): (Vec<Vec<Q>>, Vec<_>) = callers.into_iter().unzip();
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    let all = Arc::new(batches.into_iter().flatten().collect::<Vec<Q>>());
    match run(all.clone()).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for (size, reply) in sizes.into_iter().zip(replies) {
                // Who went away has no use for the answer.
                let _ = reply.send(Ok(answers.by_ref().take(size).collect()));
            }
        }
        // One of them cannot be stored: the others must not suffer for it.
        Err(Abort::Invalid(_)) if sizes.len() > 1 => {
            if let Some(mut all) = Arc::into_inner(all) {
                for (size, reply) in sizes.into_iter().zip(replies) {
                    let rest = all.split_off(size);
                    let own = std::mem::replace(&mut all, rest);
                    let done = run(Arc::new(own)).await;
                    let _ = reply.send(done.map_err(|abort| abort.to_store_error()));
                }
            }
        }
        Err(abort) => {
            for reply in replies {
                let _ = reply.send(Err(abort.to_store_error()));
            }
        }
    }
}
