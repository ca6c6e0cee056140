//! Whether the store takes writes. Asked for by everybody who checks the server's health, so the answer is shared.

use orchestrator_store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// An answer is good for so long.
const FRESH: Duration = Duration::from_secs(2);
/// A store that does not answer for so long does not take writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was found, and when.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Why the store takes no writes, if it does not: a stable word, and a text for people.
    pub trouble: Option<(&'static str, String)>,
    /// How long the check took.
    pub took: Duration,
    at: Instant,
}

/// Looks at the store.
pub struct Probe {
    store: Arc<dyn Store>,
    last: Mutex<Option<Finding>>,
}

impl Probe {
    /// Looks at this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Probe { store, last: Mutex::new(None) }
    }

    /// Whether the store takes writes, by a look that is two seconds old at most.
    pub async fn look(&self) -> Finding {
        // Whoever comes while somebody looks waits for that look.
        let mut last = self.last.lock().await;
        if let Some(finding) = last.as_ref().filter(|finding| finding.at.elapsed() < FRESH) {
            return finding.clone();
        }
        let started = Instant::now();
        let trouble = match timeout(PATIENCE, self.store.check()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some((error.code(), error.to_string())),
            Err(_) => {
                Some(("store_slow", format!("the store did not answer within {} s", PATIENCE.as_secs())))
            }
        };
        let finding = Finding { trouble, took: started.elapsed(), at: Instant::now() };
        *last = Some(finding.clone());
        finding
    }
}
