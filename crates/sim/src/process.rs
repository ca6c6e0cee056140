//! One life of a process, as far as the rest of the world can tell: it runs, stands still, or is dead.

use std::future::pending;
use std::sync::{Mutex, PoisonError};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Which process, and in which of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The replica.
    pub replica: u8,
    /// Its life, from 1.
    pub life: u32,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "r{}.{}", self.replica, self.life)
    }
}

/// A process. All that goes in or out of it, and all that its handlers do, passes its gate.
pub struct Process {
    /// Its name.
    pub name: Name,
    dead: CancellationToken,
    frozen: Mutex<Option<Instant>>,
}

impl Process {
    /// A process that runs.
    pub fn new(name: Name) -> Self {
        Process { name, dead: CancellationToken::new(), frozen: Mutex::new(None) }
    }

    /// Passes when the process runs: later when it stands still, never when it is dead.
    pub async fn gate(&self) {
        loop {
            if self.is_dead() {
                pending::<()>().await;
            }
            let frozen = *self.frozen.lock().unwrap_or_else(PoisonError::into_inner);
            match frozen.filter(|until| *until > Instant::now()) {
                Some(until) => sleep_until(until).await,
                None => return,
            }
        }
    }

    /// Stops it until a moment.
    pub fn freeze(&self, until: Instant) {
        let mut frozen = self.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        *frozen = Some(frozen.map_or(until, |before| before.max(until)));
    }

    /// Ends it: from now on nothing comes out of it.
    pub fn end(&self) {
        self.dead.cancel();
    }

    /// Whether it has ended.
    pub fn is_dead(&self) -> bool {
        self.dead.is_cancelled()
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        self.dead.cancelled().await;
    }
}
