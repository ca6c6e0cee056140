//! Callers that come at the same time share a transaction: while one is under way, the next gathers. A large batch need
//! not wait for that: a few transactions may be under way at once.

use crate::tx::Abort;
use orchestrator_store::{StoreError, StoreResult};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// How many callers may wait.
const MAILBOX: usize = 4096;
/// So many requests share a transaction at most ...
const MOST: usize = 5000;
/// ... and so many are worth a third transaction while two are under way: one that computes and one that waits for the
/// disk. Fewer wait for the end of one, and so share the next.
const ENOUGH: usize = 500;
/// So many transactions are under way at most.
const AT_ONCE: usize = 3;

type Caller<Q, A> = (Vec<Q>, oneshot::Sender<StoreResult<Vec<A>>>);

/// Gathers requests of one kind.
pub struct Batcher<Q, A>(mpsc::Sender<Caller<Q, A>>);

impl<Q: Send + Sync + 'static, A: Send + 'static> Batcher<Q, A> {
    /// Starts to gather; `run` carries out a batch.
    pub fn start<F, R>(run: F) -> Self
    where
        F: Fn(Arc<Vec<Q>>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<A>, Abort>> + Send + 'static,
    {
        let (send, inbox) = mpsc::channel::<Caller<Q, A>>(MAILBOX);
        tokio::spawn(gather(inbox, Arc::new(run)));
        Batcher(send)
    }

    /// Carries out requests together with those of others.
    pub async fn ask(&self, requests: Vec<Q>) -> StoreResult<Vec<A>> {
        let (reply, answer) = oneshot::channel();
        self.0.send((requests, reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

async fn gather<Q, A, F, R>(mut inbox: mpsc::Receiver<Caller<Q, A>>, run: Arc<F>)
where
    Q: Send + Sync + 'static,
    A: Send + 'static,
    F: Fn(Arc<Vec<Q>>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Vec<A>, Abort>> + Send + 'static,
{
    let mut under_way = JoinSet::new();
    let mut left: Option<Caller<Q, A>> = None;
    loop {
        let Some(first) = (match left.take() {
            Some(caller) => Some(caller),
            None => inbox.recv().await,
        }) else {
            break;
        };
        let mut size = first.0.len();
        let mut callers = vec![first];
        while left.is_none() {
            while under_way.try_join_next().is_some() {}
            let caller = match inbox.try_recv() {
                Ok(caller) => caller,
                Err(_) if under_way.len() < 2 || (size >= ENOUGH && under_way.len() < AT_ONCE) => break,
                Err(_) => tokio::select! {
                    biased;
                    _ = under_way.join_next() => continue,
                    more = inbox.recv() => match more {
                        Some(caller) => caller,
                        None => break,
                    },
                },
            };
            if size + caller.0.len() > MOST {
                left = Some(caller);
            } else {
                size += caller.0.len();
                callers.push(caller);
            }
        }
        while under_way.len() >= AT_ONCE {
            under_way.join_next().await;
        }
        let run = run.clone();
        under_way.spawn(async move { serve(callers, &*run).await });
    }
    // The last ones are carried out, too.
    under_way.join_all().await;
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
