//! Safety: what must hold after every step of the store, told without the model's own rules.
//!
//! The oracle hears every answer of the store and keeps its own book of who holds what. The model's invariants
//! look at one state; the oracle looks at how one state came from another.

use crate::book::Book;
use crate::handler::INTERRUPTED;
use orchestrator_core::limit::LimitBook;
use orchestrator_core::{
    Failure, JobId, JobState, LimitKey, Limits, Outcome, Rate, TaskId, TaskSpec, Timestamp, WorkerId,
};
use orchestrator_store::model::{Model, Told};
use orchestrator_store::{
    AttemptEnd, Beat, Command, Controlled, EventId, Held, JournalEvent, LeaseAsk, LeaseGrant, LimitChange,
    Settled, Settlement, Swept,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something that must not be: of a kind, by which shortened scripts are compared, and in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Of which kind.
    pub kind: &'static str,
    /// What it is.
    pub what: String,
}

impl Violation {
    /// A violation of a kind.
    pub fn new(kind: &'static str, what: impl Into<String>) -> Self {
        Violation { kind, what: what.into() }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)
    }
}

/// When a step of the store was taken.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// In ticks of the run.
    pub tick: u64,
    /// By the store's clock.
    pub now: Timestamp,
}

/// What a check comes to.
pub type Check = Result<(), Violation>;

fn wrong(kind: &'static str, what: String) -> Check {
    Err(Violation::new(kind, what))
}

/// The most starts under a key that are remembered for its rate.
const STARTS: usize = 64;

struct Lease {
    attempt: u32,
    spec: Arc<TaskSpec>,
    limits: Limits,
    worker: WorkerId,
}

/// The end of a job.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The state in which it is, or was until it was revived.
    pub state: JobState,
    /// When, in ticks.
    pub at: u64,
}

/// The book of all that the store has answered.
pub struct Oracle {
    /// Nothing in the run may cost a lease.
    keeps_leases: bool,
    told: Told,
    /// The last event of the journal that was read.
    seen: EventId,
    live: BTreeMap<TaskId, Lease>,
    /// Leases that were taken away from their holders.
    taken: BTreeSet<Held>,
    attempts: BTreeMap<TaskId, u32>,
    rules: LimitBook,
    /// When tasks started under a key since its rate was last changed, by the store's clock.
    starts: BTreeMap<LimitKey, Vec<i64>>,
    book: Book,
    /// The jobs that are over.
    over: BTreeMap<JobId, JobState>,
    /// Every end of every job.
    ends: BTreeMap<JobId, Vec<Ended>>,
}

impl Oracle {
    /// An oracle that has heard nothing.
    pub fn new(keeps_leases: bool) -> Self {
        Oracle {
            keeps_leases,
            told: Told::default(),
            seen: EventId::START,
            live: BTreeMap::new(),
            taken: BTreeSet::new(),
            attempts: BTreeMap::new(),
            rules: LimitBook::new(),
            starts: BTreeMap::new(),
            book: Book::default(),
            over: BTreeMap::new(),
            ends: BTreeMap::new(),
        }
    }

    /// The store took jobs in.
    pub fn submitted(&mut self, model: &Model, moment: Moment) -> Check {
        self.moved(model, moment, &[])
    }

    /// The store handed out tasks.
    pub fn granted(&mut self, model: &Model, moment: Moment, ask: &LeaseAsk, grant: &LeaseGrant) -> Check {
        // Idle processes ask all the time; only what changed something is looked at.
        if grant.tasks.is_empty() && model.journal_len() as i64 == self.seen.entry {
            return Ok(());
        }
        if grant.tasks.len() > ask.slots as usize {
            return wrong("slots", format!("{} tasks for {} slots", grant.tasks.len(), ask.slots));
        }
        for leased in &grant.tasks {
            let (id, attempt) = (leased.task, leased.counters.attempt);
            if let Some(other) = self.live.get(&id) {
                return wrong(
                    "double lease",
                    format!(
                        "{id} was given to {} as attempt {attempt} while {} holds it as attempt {}",
                        ask.worker, other.worker, other.attempt
                    ),
                );
            }
            let before = self.attempts.insert(id, attempt).unwrap_or(0);
            if attempt <= before {
                return wrong(
                    "attempt number",
                    format!("{id} was given out as attempt {attempt}, after attempt {before}"),
                );
            }
            self.book.granted(leased)?;
            let (spec, limits) = (leased.spec.clone(), leased.limits.clone());
            let lease = Lease { attempt, spec, limits, worker: ask.worker.clone() };
            self.live.insert(id, lease);
            self.within_limits(&leased.limits, moment.now)?;
        }
        self.moved(model, moment, &[])
    }

    /// A task that has just started leaves every cap and every rate unbroken. A cap that was lowered takes no
    /// lease away, so only starts are looked at.
    fn within_limits(&mut self, limits: &Limits, now: Timestamp) -> Check {
        for key in limits.keys() {
            let rule = self.rules.rule(key);
            let running = self.running(key);
            if rule.concurrency.is_some_and(|cap| running > cap) {
                return wrong(
                    "limit",
                    format!("{running} run under {key}, which allows {:?}", rule.concurrency),
                );
            }
            if let Some(rate) = rule.rate {
                let starts = self.starts.entry(key.clone()).or_default();
                starts.push(now.as_millis());
                if starts.len() > STARTS {
                    starts.remove(0);
                }
                within_rate(key, starts, &rate)?;
            }
        }
        Ok(())
    }

    fn running(&self, key: &LimitKey) -> u32 {
        self.live.values().filter(|lease| lease.limits.keys().contains(key)).count() as u32
    }

    /// The store prolonged leases: those that are held, and no others.
    pub fn extended(&mut self, held: &[Held], beats: &[Beat]) -> Check {
        for (held, beat) in held.iter().zip(beats) {
            if matches!(beat, Beat::Until(_)) != self.holds(*held) {
                return wrong("fence", format!("the heartbeat of {held:?} was answered {beat:?}"));
            }
        }
        Ok(())
    }

    /// The store took outcomes: of attempts that hold their lease, and no others.
    pub fn settled(
        &mut self,
        model: &Model,
        moment: Moment,
        batch: &[Settlement],
        answers: &[Settled],
    ) -> Check {
        let mut applied = false;
        for (settlement, answer) in batch.iter().zip(answers) {
            let held = settlement.held;
            let holds = self.holds(held);
            if holds != matches!(answer, Settled::Applied { .. }) {
                return wrong(
                    "fence",
                    format!("{held:?} (holds its lease: {holds}) was answered {answer:?}"),
                );
            }
            applied |= holds;
            let ended = if holds { self.live.remove(&held.task) } else { None };
            if let Some(lease) = ended {
                self.book.ended(held.task, &lease.spec, &settlement.outcome, answer, moment.now)?;
                if let Outcome::Failed(Failure { message, .. }) = &settlement.outcome
                    && message == INTERRUPTED
                {
                    let what = "an error that its token caused is counted against the task";
                    return wrong("interrupted", format!("{held:?}: {what}"));
                }
            } else if self.keeps_leases && !self.taken.contains(&held) {
                return wrong("stale", format!("{held:?} is stale though nobody took its lease away"));
            }
        }
        if !applied && model.journal_len() as i64 != self.seen.entry {
            return wrong("fence", format!("stale outcomes changed something: {batch:?}"));
        }
        self.moved(model, moment, &[])
    }

    /// The store ended what was overdue.
    pub fn swept(&mut self, model: &Model, moment: Moment, swept: &Swept) -> Check {
        for (held, settled) in &swept.ended {
            if !self.holds(*held) || *settled == Settled::Stale {
                return wrong("sweep", format!("{held:?} was swept ({settled:?}) without a lease"));
            }
            let task = model.task(held.task);
            let last = task.as_ref().and_then(|task| task.history.last()).map(|record| record.how);
            if self.keeps_leases && last == Some(AttemptEnd::Lost) {
                return wrong(
                    "lost lease",
                    format!("{held:?} was lost though its process was never disturbed"),
                );
            }
            let outcome = match last {
                Some(AttemptEnd::Failed(class)) => Outcome::Failed(Failure::new(class, "")),
                _ => Outcome::Lost,
            };
            if let Some(lease) = self.live.remove(&held.task) {
                self.book.ended(held.task, &lease.spec, &outcome, settled, moment.now)?;
            }
            self.taken.insert(*held);
        }
        swept.timed_out.iter().for_each(|job| self.take_away(*job));
        self.moved(model, moment, &[])
    }

    /// The store is about to carry out commands.
    pub fn before_control(&mut self, model: &Model, commands: &[Command], moment: Moment) {
        self.book.before_control(model, commands, moment.now);
    }

    /// The store carried out commands.
    pub fn controlled(
        &mut self,
        model: &Model,
        moment: Moment,
        commands: &[Command],
        answers: &[Controlled],
    ) -> Check {
        let mut revived = vec![];
        for (command, answer) in commands.iter().zip(answers) {
            let Controlled::Done(_) = answer else { continue };
            match command {
                Command::Cancel(job) => self.take_away(*job),
                Command::Retry(_) | Command::Recover { .. } | Command::Requeue(_) => {
                    self.book.revived(command.job());
                    revived.push(command.job());
                }
                Command::Resume(job) => self.book.resumed(model, *job, moment.now)?,
                Command::Pause(_) | Command::Discard(_) => {}
            }
        }
        self.moved(model, moment, &revived)
    }

    /// The store wrote limit rules.
    pub fn limited(&mut self, changes: &[LimitChange]) {
        for change in changes {
            self.rules.set(change.key.clone(), change.rule);
        }
        // A rate is only held against starts under one and the same rule.
        self.starts.clear();
    }

    /// The store's clock was set.
    pub fn clock_set(&mut self) {
        self.starts.clear();
    }

    /// The keys under which nothing may run.
    pub fn stopped_keys(&self) -> Vec<LimitKey> {
        let stopped = self.rules.iter().filter(|(_, rule)| rule.concurrency == Some(0));
        stopped.map(|(key, _)| key.clone()).collect()
    }

    /// Every end of a job that was seen.
    pub fn ends(&self, job: JobId) -> &[Ended] {
        self.ends.get(&job).map_or(&[], Vec::as_slice)
    }

    /// What a worker holds.
    pub fn held_by(&self, worker: &WorkerId) -> Vec<TaskId> {
        self.live.iter().filter(|(_, lease)| lease.worker == *worker).map(|(task, _)| *task).collect()
    }

    fn holds(&self, held: Held) -> bool {
        self.live.get(&held.task).is_some_and(|lease| lease.attempt == held.attempt)
    }

    /// Every lease of a job is gone.
    fn take_away(&mut self, job: JobId) {
        self.book.stopped(job);
        let taken = self.live.extract_if(.., |task, _| task.job == job);
        self.taken.extend(taken.map(|(task, lease)| Held { task, attempt: lease.attempt }));
    }

    /// What holds after any step. `revived` are the jobs that it took up again.
    fn moved(&mut self, model: &Model, moment: Moment, revived: &[JobId]) -> Check {
        let news = model.journal(self.seen, u32::MAX);
        self.seen = news.next;
        for JournalEvent { event, .. } in news.events {
            if let Some(was) = self.over.get(&event.job())
                && !revived.contains(&event.job())
            {
                return wrong(
                    "terminal",
                    format!("{event:?}, though its job was {was} and nobody revived it"),
                );
            }
        }
        for (job, state) in model.states() {
            if !state.is_terminal() {
                self.over.remove(&job);
            } else if self.over.insert(job, state) != Some(state) {
                self.ends.entry(job).or_default().push(Ended { state, at: moment.tick });
            }
        }
        let claims = self.live.iter().map(|(task, lease)| Held { task: *task, attempt: lease.attempt });
        let claims: Vec<Held> = claims.collect();
        if let Some((held, _)) = claims.iter().zip(model.held(&claims)).find(|(_, holds)| !holds) {
            return wrong("lost lease", format!("the lease of {held:?} is gone and nobody was told"));
        }
        model.invariants_since(&mut self.told).map_err(|what| Violation::new("invariant", what))
    }
}

/// Starts in any window never exceed the rate over the window, and the burst.
fn within_rate(key: &LimitKey, starts: &[i64], rate: &Rate) -> Check {
    let Some(now) = starts.last() else { return Ok(()) };
    for (n, from) in starts.iter().enumerate() {
        let count = starts.len() - n;
        let most = (now - from) as f64 * f64::from(rate.count) / rate.per.0 as f64 + f64::from(rate.burst);
        if count as f64 > most + 1e-6 {
            return wrong("rate", format!("{count} starts under {key} in {} ms, against {rate}", now - from));
        }
    }
    Ok(())
}
