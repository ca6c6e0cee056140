//! Says who works here: at the start, now and then, and at the end. Nothing depends on it, so trouble is only noted.

use super::Shared;
use orchestrator_core::Millis;
use orchestrator_store::WorkerNote;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the last word may take.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What a pool tells of itself beside what it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The machine that it runs on.
    pub host: Arc<str>,
    /// What it is and of which version.
    pub version: Arc<str>,
    /// How often it says so.
    pub every: Millis,
}

/// Says it again and again.
pub(super) async fn run(shared: Arc<Shared>) {
    let Some(introduction) = &shared.config.introduction else { return };
    loop {
        say(&shared, introduction, false).await;
        sleep(introduction.every.into()).await;
    }
}

/// Says that nobody works here any more.
pub(super) async fn gone(shared: &Shared) {
    if let Some(introduction) = &shared.config.introduction {
        // Whoever says nothing is forgotten anyway.
        let _ = timeout(LAST_WORD, say(shared, introduction, true)).await;
    }
}

async fn say(shared: &Shared, introduction: &Introduction, gone: bool) {
    let note = WorkerNote {
        name: shared.config.worker.clone(),
        host: introduction.host.clone(),
        version: introduction.version.clone(),
        queues: shared.config.queues.clone(),
        handlers: shared.registry.names().cloned().collect(),
        slots: u32::try_from(shared.config.max_workers).unwrap_or(u32::MAX),
        gone,
    };
    if let Err(error) = shared.source.register(note).await {
        tracing::debug!(%error, "cannot say who works here");
    }
}
