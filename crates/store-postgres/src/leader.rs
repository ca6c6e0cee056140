//! One of the processes leads: it alone sweeps. It leads as long as its session holds a lock of the server, so a leader
//! that dies, hangs or is cut off is followed by another as soon as the server has ended its session.

use crate::connect::Connections;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;
use tokio_util::task::AbortOnDropHandle;

/// How often a leader shows that it is still there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// How long a process that has just started waits to become the leader before it takes it that there is another.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// What the lock is called, beside the schema.
pub const LOCK: &str = "orchestrator leader";

/// Whether this process leads.
pub struct Leader {
    leads: watch::Receiver<bool>,
    task: AbortOnDropHandle<()>,
}

impl Leader {
    /// Stands for election until it is dropped.
    pub fn start(connections: Connections) -> Self {
        let (tell, leads) = watch::channel(false);
        let task = tokio::spawn(stand(connections, tell));
        Leader { leads, task: AbortOnDropHandle::new(task) }
    }

    /// Leads no more: the session ends, and another process follows at once.
    pub fn leave(&self) {
        self.task.abort();
    }

    /// Whether this process leads now. Waits a moment where that is not settled yet.
    pub async fn leads(&self) -> bool {
        let mut leads = self.leads.clone();
        if *leads.borrow() {
            return true;
        }
        timeout(FIRST_WAIT, leads.wait_for(|leads| *leads)).await.is_ok_and(|seen| seen.is_ok())
    }
}

async fn stand(connections: Connections, tell: watch::Sender<bool>) {
    loop {
        if let Ok((client, wire)) = connections.own().await {
            tokio::select! {
                biased;
                _ = wire => {}
                () = lead(&client, connections.schema(), &tell) => {}
            }
        }
        tell.send_replace(false);
        sleep(Duration::from_millis(200)).await;
    }
}

/// Waits for the lock, then holds it until the session ends.
async fn lead(client: &Client, schema: &str, tell: &watch::Sender<bool>) {
    // This session waits and then sits still: neither may be cut short.
    let patient = "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0";
    if client.batch_execute(patient).await.is_err() {
        return;
    }
    let lock = "SELECT pg_advisory_lock(hashtext($1), hashtext($2))";
    if client.execute(lock, &[&LOCK, &schema]).await.is_err() {
        return;
    }
    tracing::info!("this process leads: it sweeps for all");
    tell.send_replace(true);
    loop {
        sleep(SIGN_OF_LIFE).await;
        // A leader that cannot reach the server has to take it that another leads.
        match timeout(SIGN_OF_LIFE, client.batch_execute("SELECT 1")).await {
            Ok(Ok(())) => {}
            _ => return,
        }
    }
}
