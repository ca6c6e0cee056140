//! Counts what is live, again and again, as anybody could: by `queue stats`.

use crate::tools::Tools;
use crate::{Failure, out};
use serde::Deserialize;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The time between two looks.
const EVERY: Duration = Duration::from_millis(500);
/// Nothing moves for so long only where something is stuck.
const STUCK: Duration = Duration::from_secs(60);
/// Progress is told so often.
const TOLD: Duration = Duration::from_secs(10);

/// Tasks by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    queued: u64,
    scheduled: u64,
    retrying: u64,
    in_progress: u64,
    paused: u64,
    /// Those that ended well.
    pub done: u64,
    skipped: u64,
    error: u64,
    cancelled: u64,
    timed_out: u64,
}

impl Counts {
    /// Those that have not ended.
    pub fn live(&self) -> u64 {
        self.queued + self.scheduled + self.retrying + self.in_progress + self.paused
    }

    /// Counts now; `None` where the binary cannot tell.
    pub async fn now(tools: &Tools) -> Result<Option<Counts>, Failure> {
        let said = tools.run(&["queue", "stats", "--json"]).await?;
        Ok(if said.code == Some(0) { Some(serde_json::from_str(&said.stdout)?) } else { None })
    }
}

/// Counts until nobody listens.
pub async fn keep_counting(tools: Tools, told: watch::Sender<Counts>) -> Result<(), Failure> {
    let (started, mut last) = (Instant::now(), Instant::now());
    while !told.is_closed() {
        if let Some(counts) = Counts::now(&tools).await? {
            if last.elapsed() > TOLD {
                last = Instant::now();
                let seconds = started.elapsed().as_secs();
                out::note(format!("  {seconds:>4} s  {} tasks done, {} live", counts.done, counts.live()));
            }
            told.send_replace(counts);
        }
        tokio::time::sleep(EVERY).await;
    }
    Ok(())
}

/// Waits until nothing is live, or until nothing has moved for long. Answers whether all is through.
pub async fn drain(mut counts: watch::Receiver<Counts>) -> bool {
    let (mut last, mut moved) = (Counts::default(), Instant::now());
    let mut empty = 0;
    loop {
        // A look that was begun before the last submit may not have seen it.
        empty = if counts.borrow_and_update().live() == 0 { empty + 1 } else { 0 };
        if empty > 2 {
            return true;
        }
        let now = *counts.borrow();
        if now != last {
            (last, moved) = (now, Instant::now());
        } else if moved.elapsed() > STUCK {
            return false;
        }
        let _ = tokio::time::timeout(STUCK, counts.changed()).await;
    }
}
