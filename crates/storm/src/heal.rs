//! How soon work goes on by itself after a fault.

use crate::Failure;
use crate::operator::Known;
use crate::tools::Tools;
use crate::watch::Counts;
use orchestrator_history::{Finding, Kind};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

/// Work goes on at the latest so long after the fault is over.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether it does.
pub const LOOK: Duration = Duration::from_millis(50);

/// What was there when the fault was over.
pub struct Before {
    /// How many jobs were taken in.
    added: u64,
    /// How many tasks were done, where that could be told.
    done: Option<u64>,
}

impl Before {
    /// Looks.
    pub async fn look(tools: &Tools, known: &Known) -> Result<Before, Failure> {
        Ok(Before { added: known.added(), done: Counts::now(tools).await?.map(|counts| counts.done) })
    }
}

/// After how long it went on; nothing where it did not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Healed {
    /// A job was taken in.
    pub submits: Option<Duration>,
    /// A task was done.
    pub works: Option<Duration>,
}

impl Healed {
    /// Waits until both go on.
    pub async fn wait(tools: &Tools, known: &Known, mut before: Before) -> Result<Healed, Failure> {
        let began = Instant::now();
        let mut healed = Healed::default();
        while (healed.submits.is_none() || healed.works.is_none()) && began.elapsed() < PATIENCE {
            if healed.submits.is_none() && known.added() > before.added {
                healed.submits = Some(began.elapsed());
            }
            if healed.works.is_none()
                && let Some(counts) = Counts::now(tools).await?
            {
                // What could not be counted before is counted from the first look on.
                let done = *before.done.get_or_insert(counts.done);
                healed.works = (counts.done > done).then(|| began.elapsed());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(healed)
    }

    /// What did not go on.
    pub fn findings(&self, after: &str) -> Vec<Finding> {
        let missing = [("submits", self.submits), ("work", self.works)];
        let missing = missing.into_iter().filter(|(_, after)| after.is_none());
        missing
            .map(|(what, _)| {
                let what = format!("{what} did not go on within {PATIENCE:?} after {after}");
                Finding { kind: Kind::Stuck, what }
            })
            .collect()
    }
}

impl Display for Healed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let told = |after: Option<Duration>| {
            after.map_or("never".to_owned(), |span| format!("{:.2} s", span.as_secs_f64()))
        };
        write!(f, "submits {}, work {}", told(self.submits), told(self.works))
    }
}
