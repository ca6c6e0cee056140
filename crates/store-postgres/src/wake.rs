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
            Ok((client, wire, own)) => {
                backoff = Duration::from_millis(50);
                // What was told while nobody listened is not heard any more.
                changes.send_modify(|n| *n += 1);
                tokio::select! {
                    biased;
                    () = hear(wire, own, &changes) => {}
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

/// A connection that listens, and its number at the server.
async fn listen(connections: &Connections, channel: &str) -> StoreResult<(Client, Wire, i32)> {
    let (client, mut wire) = connections.own().await?;
    let listen = format!("LISTEN \"{channel}\"");
    let own = {
        let mut listening = pin!(async {
            client.batch_execute(&listen).await?;
            client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)
        });
        // The connection has to be driven while the statements run.
        loop {
            tokio::select! {
                biased;
                done = &mut listening => {
                    break done.map_err(|error| crate::error::at_open(connections.place(), &error))?;
                }
                message = poll_fn(|cx| wire.poll_message(cx)) => if !matches!(message, Some(Ok(_))) {
                    return Err(StoreError::Closed);
                },
            }
        }
    };
    Ok((client, wire, own))
}

/// Raises the bell for every word of others. Our own comes back, too, but was heard here before it was sent.
async fn hear(mut wire: Wire, own: i32, changes: &watch::Sender<u64>) {
    while let Some(Ok(message)) = poll_fn(|cx| wire.poll_message(cx)).await {
        if let AsyncMessage::Notification(word) = message
            && word.process_id() != own
        {
            changes.send_modify(|n| *n += 1);
        }
    }
}

async fn speak(client: &Client, channel: &str, news: &Notify) {
    let word = format!("NOTIFY \"{channel}\"");
    loop {
        news.notified().await;
        if client.batch_execute(&word).await.is_err() {
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
