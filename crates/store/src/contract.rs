//! The two traits that a backend implements.

use crate::error::StoreResult;
use crate::journal::{EventId, JournalPage, JournalRange};
use crate::retention::*;
use crate::verbs::*;
use crate::views::*;
use async_trait::async_trait;
use orchestrator_core::{Document, JobId, NewJob, TaskId, Timestamp};
use std::sync::Arc;
use tokio::sync::watch;

/// The verbs that change something. Each is one transaction, all of it or nothing, and is durable
/// when it is answered. Answers stand in the order of the batch.
#[async_trait]
pub trait Store: Catalog {
    /// Takes jobs in. A key that is live or completed answers with the job that has it; a key whose
    /// job ended badly gets a new job, linked to the old one. Jobs of one batch see each other.
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>>;

    /// Hands out tasks to a worker, best first: by tier (risen by waiting), lines in turn, then by
    /// stamp. Only tasks whose limits all have room, and which then hold a slot of each. A task
    /// that fell due meanwhile stands in line like the others. A call that is dropped before its
    /// answer leaves no lease behind, unless the process dies or the store cannot be written just then.
    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant>;

    /// Prolongs leases. A lease that is not held any more answers [`Beat::Lost`].
    async fn extend(&self, held: Vec<Held>, ttl: orchestrator_core::Millis) -> StoreResult<Vec<Beat>>;

    /// Ends attempts. Fenced: where the attempt does not hold its lease, nothing changes but the
    /// record of the attempt to write, and the answer is [`Settled::Stale`].
    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>>;

    /// Ends attempts whose lease ran out ([`orchestrator_core::Outcome::Lost`]) or that took longer
    /// than they may (a failure of class timeout), at most `limit` of them, the longest overdue first.
    /// Before those, jobs whose deadline has passed, which count against the limit too.
    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept>;

    /// Carries out what an operator asks of jobs.
    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>>;

    /// Pauses queues, and lets them go on; any name will do, also one that no job has named yet. What is taken in or
    /// falls due after the answer stays in line while its queue is paused. What runs may finish.
    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()>;

    /// Says that workers are there, or that they are gone. Whoever says nothing for a day is forgotten.
    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()>;

    /// Commits a write that changes nothing that can be seen, so that it shows whether the store takes any.
    async fn check(&self) -> StoreResult<()>;

    /// Changes the registry of flows. A submit brings its flow along, so a job never depends on this.
    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>>;

    /// Writes or strikes limit rules; they hold for the next lease on.
    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()>;

    /// Removes jobs that have ended, each with all that belongs to it: tasks, attempts, dead letters, and its key. A
    /// key goes back to the newest job that is left of those that had it, and is free where there is none. Counts by
    /// line are of what is there, so they fall. What named a removed job, names none; numbers of jobs are never given
    /// out again.
    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>>;

    /// Removes entries of the journal, from the oldest on, as long as they are older than a moment: at most `limit`.
    /// Says how many went. The newest entry stays, so that the numbers go on from it.
    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32>;
}

/// Reads and facts. What they say was true at some moment between call and answer.
#[async_trait]
pub trait Catalog: Send + Sync + 'static {
    /// The store's clock.
    fn now(&self) -> Timestamp;

    /// Ends what is under way, gives up what this process holds of the database, and refuses everything after
    /// that. Work that was handed out stays handed out.
    async fn close(&self);

    /// Whether this process is the one that does what one is enough for, such as removing old jobs. Of several
    /// processes on a file all may be; doing it twice must do no harm.
    async fn leads(&self) -> bool;

    /// A number that rises when work may have become ready. A hint only: the next lease is the
    /// truth. Register before asking for a lease.
    fn changes(&self) -> watch::Receiver<u64>;

    /// One job with its tasks and their attempts.
    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>>;

    /// One task.
    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>>;

    /// The items that a task of a job was expanded into, in order, from after the index `after`.
    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>>;

    /// Whether each attempt still holds its lease.
    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>>;

    /// The ids of jobs that start with `prefix`, newest first: at most `limit`.
    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>>;

    /// Jobs in order of submission, or the newest first, from after `page.after`, which may be removed meanwhile.
    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>>;

    /// Counts by line.
    async fn stats(&self) -> StoreResult<Stats>;

    /// Jobs by day, the newest first: at most so many days, without those on which nothing happened.
    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>>;

    /// The queues that are paused, in order.
    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>>;

    /// The workers that said something of themselves within the last day, in order of their names.
    async fn workers(&self) -> StoreResult<Vec<WorkerView>>;

    /// The document of a job.
    async fn document(&self, id: JobId) -> StoreResult<Option<Document>>;

    /// The dead letters, oldest job first, from after the task `after`.
    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>>;

    /// The flows of the registry in order of their names: the current version of each, or every version of one.
    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>>;

    /// One version of a flow; without a number, the current one.
    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>>;

    /// Every limit rule and every key that is in use, in order.
    async fn limits(&self) -> StoreResult<Vec<LimitView>>;

    /// Jobs that ended long enough ago, in order of submission. The look ends at the first job that was created at or
    /// after the latest of the moments that are asked for; one that ended before it is behind it only where a clock
    /// was set back.
    async fn removable(&self, ask: RemovableAsk) -> StoreResult<RemovablePage>;

    /// The journal from after an event, by pages that hold at most `limit` events. Events of jobs that were removed
    /// count, but are left out: so a page may be empty though more come after it.
    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage>;

    /// What is kept of the journal. Cheap: it looks at both ends.
    async fn journal_range(&self) -> StoreResult<JournalRange>;
}
