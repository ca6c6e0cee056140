//! Who waits for the end of which job.
//!
//! What ends in this process wakes its waiters at once; what other processes end, and what ends only
//! because another job did, is found by asking the store now and then. A wake-up is a hint: a waiter always looks at the store.

use crate::Engine;
use orchestrator_core::planted::{Bug, planted};
use orchestrator_core::{JobId, Millis};
use orchestrator_store::{JobView, StoreError, StoreResult};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The pause between two looks at the store grows up to this many times the first one.
const SLOWEST_POLL: u32 = 5;

/// What came of waiting for a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Waited {
    /// The job has ended.
    Ended(JobView),
    /// The time was up before; the job as it was seen last.
    TimedOut(JobView),
}

impl Waited {
    /// The job as it was seen last.
    pub fn job(&self) -> &JobView {
        match self {
            Waited::Ended(job) | Waited::TimedOut(job) => job,
        }
    }

    /// The same, to keep.
    pub fn into_job(self) -> JobView {
        match self {
            Waited::Ended(job) | Waited::TimedOut(job) => job,
        }
    }
}

/// Why nobody can wait for a job.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// There is none.
    #[error("there is no job {0}: its id is mistyped, or it is in another database")]
    NotFound(JobId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The waiters of this process, by job.
#[derive(Default)]
pub(crate) struct Waiters {
    /// How many wait. Read before the map is locked: with nobody waiting, a wake-up costs nothing.
    count: AtomicUsize,
    jobs: Mutex<HashMap<JobId, Waiting>>,
}

struct Waiting {
    bell: Arc<Notify>,
    waiters: usize,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Waiting>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the waiters of jobs to look again.
    pub fn wake(&self, jobs: impl IntoIterator<Item = JobId>) {
        if self.count.load(Ordering::SeqCst) == 0 || planted(Bug::NeverLookAgain) {
            return;
        }
        let waiting = self.lock();
        for job in jobs {
            if let Some(entry) = waiting.get(&job) {
                entry.bell.notify_waiters();
            }
        }
    }

    fn register(&self, job: JobId) -> Registered<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut waiting = self.lock();
        let entry = waiting.entry(job).or_insert_with(|| Waiting { bell: Arc::default(), waiters: 0 });
        entry.waiters += 1;
        Registered { bell: entry.bell.clone(), job, waiters: self }
    }
}

/// One waiter's place; gone when it is dropped.
struct Registered<'a> {
    waiters: &'a Waiters,
    job: JobId,
    bell: Arc<Notify>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.lock();
        if let Some(entry) = waiting.get_mut(&self.job) {
            entry.waiters -= 1;
            if entry.waiters == 0 {
                waiting.remove(&self.job);
            }
        }
        self.waiters.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Engine {
    /// Waits until a job has ended, at most `limit`. Trouble of the store that may pass is waited
    /// out.
    pub async fn wait(&self, id: JobId, limit: Option<Duration>) -> Result<Waited, WaitError> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let place = self.0.waiters.register(id);
        let first = Duration::from(self.0.config.poll_every).max(Duration::from(Millis(1)));
        let mut pause = first;
        loop {
            // Listens before it looks, so that no end falls in between.
            let mut rung = pin!(place.bell.notified());
            rung.as_mut().enable();
            let seen = look(self.store().job(id).await, id)?;
            let now = Instant::now();
            match seen {
                Ok(job) if job.state.is_terminal() => return Ok(Waited::Ended(job)),
                Ok(job) if end.is_some_and(|end| end <= now) => return Ok(Waited::TimedOut(job)),
                Err(error) if end.is_some_and(|end| end <= now) => return Err(error.into()),
                _ => {}
            }
            let next_look = now + pause;
            pause = (pause * 2).min(first * SLOWEST_POLL);
            if planted(Bug::NeverLookAgain) {
                pause = Duration::from_secs(86_400 * 365);
            }
            tokio::select! {
                biased;
                () = rung => {}
                () = sleep_until(end.map_or(next_look, |end| end.min(next_look))) => {}
            }
        }
    }
}

/// Tells what ends the waiting from what may pass.
fn look(answer: StoreResult<Option<JobView>>, id: JobId) -> Result<StoreResult<JobView>, WaitError> {
    match answer {
        Ok(Some(job)) => Ok(Ok(job)),
        Ok(None) => Err(WaitError::NotFound(id)),
        Err(error) if error.is_transient() => Ok(Err(error)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestrator_core::Timestamp;

    #[test]
    fn nothing_is_left_of_a_waiter_that_went() {
        let waiters = Waiters::default();
        let job = JobId::from_parts(Timestamp::from_millis(1), 1);
        let one = waiters.register(job);
        let two = waiters.register(job);
        drop(one);
        assert_eq!((waiters.count.load(Ordering::SeqCst), waiters.lock().len()), (1, 1));
        drop(two);
        assert_eq!((waiters.count.load(Ordering::SeqCst), waiters.lock().len()), (0, 0));
    }
}
