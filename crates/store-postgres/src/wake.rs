//! Wake-ups between processes. Hints only: a lost one costs the time until somebody asks anyway.
//!
//! One connection listens and tells. However many transactions commit, a process tells the others at most once per
//! pause, because every NOTIFY takes a lock that all commits share.

use crate::connect::{Connections, Wire};
use orchestrator_store::{StoreError, StoreResult};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::task::AbortOnDropHandle;

/// The pause between two words to the others.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest pause before the next try to connect.
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);

/// Tells other processes, and hears them, until it is dropped.
pub struct Wakes {
    news: Arc<Notify>,
    _task: AbortOnDropHandle<()>,
}

impl Wakes {
    /// Starts to listen; `changes` is raised by what others tell.
    pub fn start(connections: Connections, changes: watch::Sender<u64>) -> Self {
        let news = Arc::new(Notify::new());
        let task = tokio::spawn(run(connections, changes, news.clone()));
        Wakes { news, _task: AbortOnDropHandle::new(task) }
    }

    /// Lets the others know that there may be work.
    pub fn tell(&self) {
        self.news.notify_one();
    }
}

async fn run(connections: Connections, changes: watch::Sender<u64>, news: Arc<Notify>) {
    let channel = channel(connections.schema());
    let mut backoff = Duration::from_millis(50);
    loop {
        match listen(&connections, &channel).await {
            Ok((client, wire)) => {
                backoff = Duration::from_millis(50);
                // What was told while nobody listened is not heard any more.
                changes.send_modify(|n| *n += 1);
                tokio::select! {
                    biased;
                    () = hear(wire, &changes) => {}
                    () = speak(&client, &channel, &news) => {}
                }
                tracing::debug!("the connection for wake-ups has ended, connecting again");
            }
            Err(error) => tracing::debug!(%error, "cannot listen for wake-ups, trying again"),
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
}

async fn listen(connections: &Connections, channel: &str) -> StoreResult<(Client, Wire)> {
    let (client, mut wire) = connections.own().await?;
    let listen = format!("LISTEN \"{channel}\"");
    {
        // The connection has to be driven while the statement runs.
        let mut listening = pin!(client.batch_execute(&listen));
        loop {
            tokio::select! {
                biased;
                done = &mut listening => {
                    done.map_err(|error| crate::error::at_open(connections.place(), &error))?;
                    break;
                }
                message = poll_fn(|cx| wire.poll_message(cx)) => if !matches!(message, Some(Ok(_))) {
                    return Err(StoreError::Closed);
                },
            }
        }
    }
    Ok((client, wire))
}

/// Raises the bell for every word of others, and of our own, which does no harm.
async fn hear(mut wire: Wire, changes: &watch::Sender<u64>) {
    while let Some(Ok(message)) = poll_fn(|cx| wire.poll_message(cx)).await {
        if let AsyncMessage::Notification(_) = message {
            changes.send_modify(|n| *n += 1);
        }
    }
}

async fn speak(client: &Client, channel: &str, news: &Notify) {
    loop {
        news.notified().await;
        if client.execute("SELECT pg_notify($1, '')", &[&channel]).await.is_err() {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// Each schema has a channel of its own.
fn channel(schema: &str) -> String {
    let mut name: String = format!("orchestrator_{schema}").chars().filter(|c| *c != '"').collect();
    // Longer names are cut by the server, and then nobody hears.
    while name.len() > 60 {
        name.pop();
    }
    name
}
