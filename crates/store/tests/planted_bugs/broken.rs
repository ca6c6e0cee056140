//! The model store with one bug.

use crate::Bug;
use crate::attempts::Forgotten;
use crate::plans::Forged;
use async_trait::async_trait;
use orchestrator_core::{
    Document, ErrorClass, Event, JobId, JobState, LimitRule, Millis, NewJob, Outcome, TaskId, Timestamp, Work,
};
use orchestrator_store::model::ModelStore;
use orchestrator_store::*;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

pub struct Broken {
    inner: ModelStore,
    bug: Bug,
    forged: Forged,
    forgotten: Forgotten,
    /// Tasks that are handed out to nobody.
    lost: Mutex<HashSet<TaskId>>,
    /// Queues that are only said to be paused.
    paused: Mutex<BTreeMap<Arc<str>, Timestamp>>,
}

impl Broken {
    pub fn new(bug: Bug, clock: Arc<dyn Clock>) -> Broken {
        let inner = ModelStore::new(clock);
        Broken {
            inner,
            bug,
            forged: Forged::default(),
            forgotten: Forgotten::default(),
            lost: Mutex::default(),
            paused: Mutex::default(),
        }
    }

    fn show(&self, mut job: JobView) -> JobView {
        self.forged.hide_in(&mut job);
        let id = job.id;
        job.tasks = job.tasks.into_iter().map(|task| self.show_task(id, task)).collect();
        if self.bug == Bug::HidesReasons {
            job.reason = None;
        }
        job
    }

    fn show_task(&self, job: JobId, mut task: TaskView) -> TaskView {
        self.forgotten.hide(job, &mut task);
        match self.bug {
            Bug::LosesStaleRecords => task.history.retain(|record| record.how != AttemptEnd::Stale),
            Bug::ForgetsTimings => task.usual = None,
            _ => {}
        }
        task
    }

    /// One command, done wrong.
    async fn command(&self, Wish { command, expect }: Wish) -> StoreResult<Controlled> {
        let job = self.inner.job(command.job()).await?;
        let state = job.as_ref().map(|job| job.state);
        let expect = expect.filter(|_| self.bug != Bug::IgnoresExpectations);
        if let (Some(expected), Some(state)) = (expect, state)
            && expected != state
        {
            return Ok(Controlled::Changed(state));
        }
        let live = state.filter(|state| !state.is_terminal());
        let command = match (self.bug, command) {
            (Bug::AcksCancelWithoutDoing, Command::Cancel(_)) if live.is_some() => {
                return Ok(Controlled::Done(JobState::Cancelled));
            }
            (Bug::RetriesWithoutAsking, Command::Retry(_)) => {
                return Ok(state.map_or(Controlled::NotFound, Controlled::Done));
            }
            (Bug::AcksPauseWithoutDoing, Command::Pause(_)) if live == Some(JobState::Pending) => {
                return Ok(Controlled::Done(JobState::Paused));
            }
            (Bug::DiscardsNothing, Command::Discard(task)) => {
                let dead = self.inner.task(task).await?.is_some_and(|task| task.dead.is_some());
                return Ok(match state {
                    Some(state) if dead => Controlled::Done(state),
                    Some(_) => Controlled::NoSuchTask,
                    None => Controlled::NotFound,
                });
            }
            (Bug::RecoversTooMuch, Command::Recover { job: id, from: None }) => {
                let from = job.as_ref().map(|job| job.tasks[0].name.clone());
                Command::Recover { job: id, from }
            }
            (Bug::CountsRetries, Command::Retry(id))
                if job.as_ref().is_some_and(|job| job.flow.is_some()) =>
            {
                Command::Recover { job: id, from: None }
            }
            (Bug::RequeuesEverything, Command::Requeue(task)) => Command::Retry(task.job),
            (_, command) => command,
        };
        if let (Bug::LosesHeldTasksOnResume, Command::Resume(_), Some(job)) = (self.bug, &command, &job) {
            let held = job.tasks.iter().filter(|task| task.held);
            self.lost.lock().unwrap().extend(held.map(|task| TaskId { job: job.id, index: task.index }));
        }
        let answer = self.inner.control(vec![command.clone().into()]).await?.remove(0);
        let again = matches!(command, Command::Retry(_) | Command::Recover { .. } | Command::Requeue(_));
        if self.bug == Bug::ReusesAttemptNumbers && again && matches!(answer, Controlled::Done(_)) {
            self.forgotten.forget(&self.inner, command.job()).await;
        }
        Ok(answer)
    }
}

#[async_trait]
impl Store for Broken {
    async fn submit(&self, mut jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        for job in &mut jobs {
            match (self.bug, &mut job.key) {
                (Bug::IgnoresKeys, key) => *key = None,
                (Bug::ForgetsDelays, _) => job.run_at = None,
                (Bug::ForgetsMeta, _) => job.meta.context = None,
                (Bug::IgnoresWhatToWaitFor, _) => job.after = vec![],
                (Bug::ComparesDerivedKeys, Some(key)) => key.derived = false,
                _ => {}
            }
            if let Work::Flow(plan) = &mut job.work {
                *plan = self.forged.forge(plan.clone(), self.bug);
            }
        }
        let mut answers = self.inner.submit(jobs.clone()).await?;
        for (answer, new) in answers.iter_mut().zip(jobs) {
            if let (Bug::TakesAnyDocument, Submitted::Conflict { id }) = (self.bug, answer.clone())
                && let Some(job) = self.inner.job(id).await?
                && job.payload.same_value(&new.payload)
            {
                *answer = Submitted::Existing { id, state: job.state };
            }
            if let (Bug::TakesAnyPayload, Submitted::Conflict { id }) = (self.bug, answer.clone()) {
                *answer = Submitted::Existing { id, state: JobState::Pending };
            }
        }
        Ok(answers)
    }

    async fn lease(&self, mut ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        if self.bug == Bug::LeavesASlotEmpty && ask.slots > 1 {
            ask.slots -= 1;
        }
        let mut grant = self.inner.lease(ask).await?;
        grant.tasks.retain(|leased| !self.lost.lock().unwrap().contains(&leased.task));
        for leased in &mut grant.tasks {
            leased.counters.attempt -= self.forgotten.of(leased.task);
        }
        match self.bug {
            Bug::HandsOutWorstFirst => grant.tasks.reverse(),
            Bug::GivesNoHint => grant.next_at = None,
            Bug::ForgetsAJoin => grant.tasks.retain(|leased| &*leased.name != "join"),
            Bug::FiresAJoinTwice => {
                let join = grant.tasks.iter().find(|leased| &*leased.name == "join").cloned();
                grant.tasks.extend(join);
            }
            _ => {}
        }
        Ok(grant)
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        let ttl = if self.bug == Bug::ExtendsTooLong { Millis(ttl.0 + 1) } else { ttl };
        let meant = held.iter().map(|held| self.forgotten.meant(*held)).collect();
        let mut beats = self.inner.extend(meant, ttl).await?;
        for (beat, held) in beats.iter_mut().zip(held) {
            let job = self.inner.job(held.task.job).await?;
            if self.bug == Bug::KeepsACancelledLease
                && job.is_some_and(|job| job.state == JobState::Cancelled)
            {
                *beat = Beat::Until(self.now() + ttl);
            }
        }
        Ok(beats)
    }

    async fn settle(&self, mut batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        for settlement in &mut batch {
            settlement.held = self.forgotten.meant(settlement.held);
            match (self.bug, &mut settlement.outcome) {
                (Bug::DropsTheFence, _) => {
                    if let Some(task) = self.inner.task(settlement.held.task).await? {
                        settlement.held.attempt = task.counters.attempt;
                    }
                }
                (Bug::RetriesFinalErrors, Outcome::Failed(failure)) => failure.class = ErrorClass::Transient,
                (Bug::LosesCheckpoints, Outcome::Continue(leg)) => leg.checkpoint = Default::default(),
                _ => {}
            }
        }
        self.inner.settle(batch).await
    }

    async fn expired(&self, mut ask: SweepAsk) -> StoreResult<Swept> {
        if self.bug == Bug::SweepsTooMany {
            ask.limit += 1;
        }
        let mut swept = self.inner.expired(ask).await?;
        for (held, _) in &mut swept.ended {
            held.attempt -= self.forgotten.of(held.task);
        }
        if self.bug == Bug::SweepsOnlyOnce {
            swept.more = false;
        }
        Ok(swept)
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        let mut answers = vec![];
        for wish in wishes {
            answers.push(self.command(wish).await?);
        }
        Ok(answers)
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        if self.bug != Bug::ServesPausedQueues {
            return self.inner.set_queues(changes).await;
        }
        let mut shown = self.paused.lock().unwrap();
        for change in changes {
            if change.paused {
                shown.entry(change.queue).or_insert(self.now());
            } else {
                shown.remove(&change.queue);
            }
        }
        Ok(())
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        self.inner.register(workers).await
    }

    async fn check(&self) -> StoreResult<()> {
        self.inner.check().await
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        let mut answers = vec![];
        for change in changes {
            answers.push(match (self.bug, change) {
                (Bug::RetiresNothing, FlowChange::Retire(name)) => {
                    let known = self.inner.flow(name, None).await?.is_some();
                    if known { FlowChanged::Retired } else { FlowChanged::NotFound }
                }
                (_, change) => {
                    let change = match change {
                        FlowChange::Apply(plan) => FlowChange::Apply(self.forged.forge(plan, self.bug)),
                        retire => retire,
                    };
                    self.inner.change_flows(vec![change]).await?.remove(0)
                }
            });
        }
        Ok(answers)
    }

    async fn set_limits(&self, mut changes: Vec<LimitChange>) -> StoreResult<()> {
        for change in &mut changes {
            match (self.bug, &mut change.rule) {
                (Bug::AllowsOneTooMany, Some(LimitRule { concurrency: Some(cap), .. })) => *cap += 1,
                (Bug::ConfigBeatsOperator, _) => change.origin = RuleOrigin::Operator,
                _ => {}
            }
        }
        self.inner.set_limits(changes).await
    }

    async fn forget(&self, mut jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        let mut answers = vec![];
        for wish in &mut jobs {
            let ended = self.inner.job(wish.job).await?.and_then(|job| job.ended);
            match self.bug {
                Bug::ForgetsAnyEnd => wish.ended = ended.unwrap_or(wish.ended),
                Bug::AcksForgetWithoutDoing if ended == Some(wish.ended) => {
                    answers.push(Forgot::Done);
                    continue;
                }
                _ => {}
            }
            answers.extend(self.inner.forget(vec![*wish]).await?);
        }
        Ok(answers)
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        let limit = if self.bug == Bug::ForgetsTooMuchJournal { limit + 1 } else { limit };
        self.inner.forget_journal(before, limit).await
    }
}

#[async_trait]
impl Catalog for Broken {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    async fn close(&self) {
        self.inner.close().await;
    }

    async fn leads(&self) -> bool {
        self.inner.leads().await
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }

    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        Ok(self.inner.job(id).await?.map(|job| self.show(job)))
    }

    async fn task(&self, id: TaskId) -> StoreResult<Option<TaskView>> {
        Ok(self.inner.task(id).await?.map(|task| self.show_task(id.job, task)))
    }

    async fn items(&self, group: TaskId, after: Option<u32>, limit: u32) -> StoreResult<Vec<TaskView>> {
        let items = self.inner.items(group, after, limit).await?;
        Ok(items.into_iter().map(|task| self.show_task(group.job, task)).collect())
    }

    async fn held(&self, attempts: Vec<Held>) -> StoreResult<Vec<bool>> {
        let meant = attempts.into_iter().map(|held| self.forgotten.meant(held)).collect();
        self.inner.held(meant).await
    }

    async fn ids(&self, prefix: String, limit: u32) -> StoreResult<Vec<JobId>> {
        self.inner.ids(prefix, limit).await
    }

    async fn list(&self, filter: JobFilter, page: Page) -> StoreResult<Vec<JobView>> {
        let jobs = self.inner.list(filter, page).await?;
        let skip = usize::from(self.bug == Bug::SkipsTheFirstOfAPage);
        Ok(jobs.into_iter().skip(skip).map(|job| self.show(job)).collect())
    }

    async fn stats(&self) -> StoreResult<Stats> {
        self.inner.stats().await
    }

    async fn daily(&self, days: u32) -> StoreResult<Vec<DayStats>> {
        let mut daily = self.inner.daily(days).await?;
        if let (Bug::MiscountsDays, Some(newest)) = (self.bug, daily.first_mut()) {
            newest.created += std::mem::take(&mut newest.completed);
        }
        Ok(daily)
    }

    async fn paused_queues(&self) -> StoreResult<Vec<PausedQueue>> {
        if self.bug != Bug::ServesPausedQueues {
            return self.inner.paused_queues().await;
        }
        let shown = self.paused.lock().unwrap();
        let view =
            |(queue, since): (&Arc<str>, &Timestamp)| PausedQueue { queue: queue.clone(), since: *since };
        Ok(shown.iter().map(view).collect())
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        self.inner.workers().await
    }

    async fn document(&self, id: JobId) -> StoreResult<Option<Document>> {
        let document = self.inner.document(id).await?;
        Ok(document.filter(|_| self.bug != Bug::LosesDocuments))
    }

    async fn dead_letters(
        &self,
        filter: LineFilter,
        after: Option<TaskId>,
        limit: u32,
    ) -> StoreResult<Vec<DeadLetter>> {
        let mut dead = self.inner.dead_letters(filter, after, limit).await?;
        if self.bug == Bug::HidesDeadLetters {
            dead.pop();
        }
        Ok(dead)
    }

    async fn flows(&self, name: Option<Arc<str>>) -> StoreResult<Vec<FlowView>> {
        let flows = self.inner.flows(name).await?;
        Ok(flows.into_iter().map(|flow| self.forged.hide_view(flow)).collect())
    }

    async fn flow(&self, name: Arc<str>, version: Option<u32>) -> StoreResult<Option<FlowView>> {
        Ok(self.inner.flow(name, version).await?.map(|flow| self.forged.hide_view(flow)))
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.inner.limits().await
    }

    async fn removable(&self, mut ask: RemovableAsk) -> StoreResult<RemovablePage> {
        match self.bug {
            Bug::RemovesUndecided => ask.bygone.dead = ask.bygone.dead.max(ask.bygone.failed),
            Bug::LooksForEver => ask.look = u32::MAX,
            _ => {}
        }
        self.inner.removable(ask).await
    }

    async fn journal(&self, after: EventId, limit: u32) -> StoreResult<JournalPage> {
        let mut page = self.inner.journal(after, limit).await?;
        match self.bug {
            // Of a commit of several, the second.
            Bug::LosesEvents => page.events.retain(|told| told.id.index != 1),
            Bug::LosesJobEvents => {
                let lost =
                    |event: &Event| matches!(event, Event::Job(event) if event.state == JobState::Recovering);
                page.events.retain(|told| !lost(&told.event));
            }
            Bug::RepeatsTheEntryOfAPage if after.index > 0 => {
                let whole =
                    self.inner.journal(EventId { entry: after.entry - 1, index: u32::MAX }, limit).await?;
                page.events = whole.events;
            }
            Bug::ForgetsWhoseEventsTheyAre => page.events.iter_mut().for_each(|told| told.flow = None),
            Bug::HidesGaps => page.missed = false,
            _ => {}
        }
        Ok(page)
    }

    async fn journal_range(&self) -> StoreResult<JournalRange> {
        let range = self.inner.journal_range().await?;
        Ok(if self.bug == Bug::ShowsAJournalThatWent { JournalRange { oldest: 1, ..range } } else { range })
    }
}
