//! A walk over the jobs that are old enough, page by page: archive, sync, remove, rest.

use super::{Archive, Retention};
use orchestrator_core::{JobId, JobState, TaskId};
use orchestrator_store::{
    Catalog, Forgot, JobFilter, JobView, Page, Removable, RemovableAsk, Store, StoreError, StoreResult,
};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// So many jobs are read whole at a time.
const WHOLE: u32 = 50;
/// So many items of a `for_each` are read at a time.
const ITEMS: u32 = 500;
/// How long to rest after a transaction, at least and at most.
const REST: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(5));

/// What a walk has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Jobs that were removed.
    pub jobs: u64,
    /// Their tasks, items among them.
    pub tasks: u64,
    /// Jobs that were archived.
    pub archived: u64,
    /// Entries of the journal that were removed.
    pub journal: u64,
}

/// Why a walk did not come to its end. What it removed by then was archived.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive cannot be written. Nothing is removed that it does not hold.
    #[error("cannot write to the archive {}: {source}; nothing was removed that is not in it", path.display())]
    Archive {
        /// The directory or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process writes to the archive, so it is at the same work.
    #[error("another process writes to the archive {} just now", path.display())]
    Elsewhere {
        /// The directory.
        path: PathBuf,
    },
}

/// A walk, which goes on where it ended.
pub(super) struct Walk<'a> {
    store: &'a dyn Store,
    retention: &'a Retention,
    after: Option<JobId>,
}

impl<'a> Walk<'a> {
    /// From the oldest job on.
    pub fn new(store: &'a dyn Store, retention: &'a Retention) -> Self {
        Walk { store, retention, after: None }
    }

    /// Removes what is old enough, up to what is too young or until it is stopped.
    pub async fn on(
        &mut self,
        stop: &CancellationToken,
        mut told: impl FnMut(&Pruned) + Send,
    ) -> Result<Pruned, RetentionError> {
        let mut pruned = Pruned::default();
        let mut archive = None;
        while !stop.is_cancelled() {
            let before = self.after;
            let (jobs, more) = self.page().await?;
            if !jobs.is_empty() {
                if let (None, Some(dir)) = (&archive, &self.retention.archive) {
                    // Only now: where nothing is to be written, nothing is made.
                    archive = Some(Archive::open(dir.clone()).await.inspect_err(|_| self.after = before)?);
                }
                let removed = self.remove(&jobs, before, archive.as_mut(), &mut pruned).await;
                // What stayed because of an error is met again by the next walk.
                let started = removed.inspect_err(|_| self.after = before)?;
                told(&pruned);
                self.rest(started, stop).await;
            }
            if !more {
                break;
            }
        }
        self.forget_journal(stop, &mut pruned).await?;
        told(&pruned);
        Ok(pruned)
    }

    /// Counts what is old enough.
    pub async fn count(&mut self) -> Result<Pruned, RetentionError> {
        let mut pruned = Pruned::default();
        loop {
            let (jobs, more) = self.page().await?;
            pruned.jobs += jobs.len() as u64;
            pruned.tasks += jobs.iter().map(|job| u64::from(job.tasks)).sum::<u64>();
            if !more {
                return Ok(pruned);
            }
        }
    }

    /// The next jobs that may go, as many as one transaction should remove, and whether there may be more.
    async fn page(&mut self) -> StoreResult<(Vec<Removable>, bool)> {
        let page = self.retention.page;
        let bygone = self.retention.bygone(self.store.now());
        let ask = RemovableAsk { bygone, after: self.after, limit: page.jobs.max(1), look: page.look.max(1) };
        let mut found = self.store.removable(ask).await?;
        let mut tasks = 0;
        let fits = found.jobs.iter().take_while(|job| {
            tasks += u64::from(job.tasks);
            tasks <= u64::from(page.tasks)
        });
        let fits = fits.count().max(1);
        if fits < found.jobs.len() {
            found.jobs.truncate(fits);
            found.next = found.jobs.last().map(|job| job.job);
        }
        // At the end the walk stays behind the last one that was looked at before.
        let more = found.next.is_some();
        self.after = found.next.or(self.after);
        Ok((found.jobs, more))
    }

    /// Removes jobs, archived first where that is asked for. Says when the transaction began.
    async fn remove(
        &self,
        jobs: &[Removable],
        behind: Option<JobId>,
        archive: Option<&mut Archive>,
        pruned: &mut Pruned,
    ) -> Result<Instant, RetentionError> {
        let wishes = match archive {
            None => jobs.to_vec(),
            Some(archive) => {
                let written = self.write(jobs, behind, archive).await?;
                archive.sync().await?;
                pruned.archived += written.len() as u64;
                written
            }
        };
        let started = Instant::now();
        let forgot = self.store.forget(wishes.iter().map(Removable::forget).collect()).await?;
        for (job, _) in wishes.iter().zip(forgot).filter(|(_, forgot)| *forgot == Forgot::Done) {
            pruned.jobs += 1;
            pruned.tasks += u64::from(job.tasks);
        }
        Ok(started)
    }

    /// Writes jobs to the archive, as they were found. Says which; one that was taken up again since is not among them.
    async fn write(
        &self,
        jobs: &[Removable],
        behind: Option<JobId>,
        archive: &mut Archive,
    ) -> Result<Vec<Removable>, RetentionError> {
        let mut wanted: BTreeMap<JobId, Removable> = jobs.iter().map(|job| (job.job, *job)).collect();
        let mut written = vec![];
        let day = self.store.now();
        let ended = JobState::ALL.iter().copied().filter(|state| state.is_terminal());
        let filter = JobFilter { states: ended.collect(), ..JobFilter::default() };
        let mut after = behind;
        while !wanted.is_empty() {
            let page = self.store.list(filter.clone(), Page { after, limit: WHOLE }).await?;
            let Some(last) = page.last().map(|job| job.id) else { break };
            after = Some(last);
            for job in page {
                let Some(seen) = wanted.remove(&job.id).filter(|seen| job.ended == Some(seen.ended)) else {
                    continue;
                };
                archive.write(day, &whole(self.store, job).await?).await?;
                written.push(seen);
            }
        }
        Ok(written)
    }

    async fn forget_journal(&self, stop: &CancellationToken, pruned: &mut Pruned) -> StoreResult<()> {
        let Some(span) = self.retention.journal else { return Ok(()) };
        let limit = self.retention.page.journal.max(1);
        while !stop.is_cancelled() {
            let started = Instant::now();
            let gone = self.store.forget_journal(self.store.now() - span, limit).await?;
            pruned.journal += u64::from(gone);
            if gone < limit {
                break;
            }
            self.rest(started, stop).await;
        }
        Ok(())
    }

    /// Leaves the store to the others for a multiple of the time that a transaction took.
    async fn rest(&self, started: Instant, stop: &CancellationToken) {
        let pause = (started.elapsed() * self.retention.rest).clamp(REST.0, REST.1);
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = sleep(pause) => {}
        }
    }
}

/// A job with the items of its tasks behind the tasks.
async fn whole(store: &dyn Catalog, mut job: JobView) -> StoreResult<JobView> {
    let groups: Vec<u32> =
        job.tasks.iter().filter(|task| task.items.is_some()).map(|task| task.index).collect();
    for index in groups {
        let group = TaskId { job: job.id, index };
        let mut after = None;
        loop {
            let items = store.items(group, after, ITEMS).await?;
            let Some(last) = items.last() else { break };
            after = Some(last.index);
            job.tasks.extend(items);
        }
    }
    Ok(job)
}
