//! Random sequences of operations, on a store and on the model, compared after each step.

mod flows;
mod known;
mod ops;

use super::Fixture;
use super::names::Names;
use super::snapshot::Snapshot;
use super::world::START;
use crate::clock::{Clock, ManualClock};
use crate::contract::{Catalog, Store};
use crate::journal::EventId;
use crate::model::ModelStore;
use crate::retention::RemovableAsk;
use crate::verbs::*;
use crate::views::Page;
use known::Known;
use ops::{Generator, Op};
use std::fmt::Debug;
use std::sync::Arc;

/// How many of the last operations a failure shows.
const SHOWN: usize = 25;

/// Runs `sequences` sequences of `steps` operations; the n-th has the seed `seed + n`. After each
/// step the store must have answered as the model did and look like it from outside. A failure
/// says how to repeat it: one sequence with the seed that it names.
pub async fn random_sequences(fixture: &dyn Fixture, sequences: u32, steps: u32, seed: u64) {
    let keeps = keeps_data(fixture).await;
    for n in 0..sequences {
        let seed = seed.wrapping_add(u64::from(n));
        let mut pair = Pair::new(fixture).await;
        let mut generator = Generator::new(seed, keeps);
        let mut trace: Vec<String> = vec![];
        for step in 1..=steps {
            generator.known = Known::of(&pair.model, &pair.ours, &generator.granted).await;
            let op = generator.next(pair.model.now());
            trace.push(format!("{step}: {op:?}"));
            let result = match pair.apply(fixture, op).await {
                Ok(leased) => {
                    generator.granted.extend(leased);
                    pair.compare(&mut generator).await
                }
                Err(difference) => Err(difference),
            };
            if let Err(difference) = result {
                let last = trace[trace.len().saturating_sub(SHOWN)..].join("\n  ");
                panic!(
                    "the store and the model differ at step {step} of the sequence with seed {seed}\n{difference}\n\
                     the last operations (jobs by number):\n  {last}\n\
                     to repeat: random_sequences(fixture, 1, {steps}, {seed})"
                );
            }
        }
    }
}

/// Whether the fixture's stores can be opened again. Asked before, because a store that was handed
/// over for reopening does not come back.
async fn keeps_data(fixture: &dyn Fixture) -> bool {
    let clock = Arc::new(ManualClock::new(START));
    let store = fixture.fresh(clock.clone()).await;
    fixture.reopen(store, clock).await.is_some()
}

/// The store and the model, on one clock, with the jobs of both in order of submission.
struct Pair {
    clock: Arc<ManualClock>,
    store: Option<Arc<dyn Store>>,
    model: ModelStore,
    ours: Names,
    theirs: Names,
}

impl Pair {
    async fn new(fixture: &dyn Fixture) -> Pair {
        let clock = Arc::new(ManualClock::new(START));
        let store = Some(fixture.fresh(clock.clone()).await);
        let model = ModelStore::new(clock.clone());
        Pair { clock, store, model, ours: Names::default(), theirs: Names::default() }
    }

    fn store(&self) -> &dyn Store {
        &**self.store.as_ref().expect("a store is only away while it is reopened")
    }

    /// Does one operation on both sides and compares the answers. Says which leases were granted.
    async fn apply(&mut self, fixture: &dyn Fixture, op: Op) -> Result<Vec<Held>, String> {
        let no = |error: crate::StoreError| format!("the store failed: {error}");
        match op {
            Op::Submit(jobs) => {
                let own = |names: &Names| jobs.iter().cloned().map(|job| names.new_job(job)).collect();
                let got = self.store().submit(own(&self.theirs)).await.map_err(no)?;
                let expected = self.model.submit(own(&self.ours)).await.map_err(no)?;
                same("number of answers", got.len(), expected.len())?;
                for (got, expected) in got.into_iter().zip(expected) {
                    if let Submitted::Created { id, .. } = expected {
                        self.ours.push(id);
                    }
                    if let Submitted::Created { id, .. } = got {
                        self.theirs.push(id);
                    }
                    same("submitted", self.theirs.submitted(got), self.ours.submitted(expected))?;
                }
            }
            Op::Lease(ask) => {
                let mut grant = self.store().lease(ask.clone()).await.map_err(no)?;
                for leased in &mut grant.tasks {
                    leased.task = self.ours.own(self.theirs.held(leased.held())).task;
                }
                self.model.with(|model, now| model.apply_grant(&ask, &grant, now))?;
                return Ok(grant.tasks.iter().map(|leased| self.ours.held(leased.held())).collect());
            }
            Op::Extend(held, ttl) => {
                let own = |names: &Names| held.iter().map(|held| names.own(*held)).collect();
                let got = self.store().extend(own(&self.theirs), ttl).await.map_err(no)?;
                same("beats", got, self.model.extend(own(&self.ours), ttl).await.map_err(no)?)?;
            }
            Op::Settle(batch) => {
                let own = |names: &Names| {
                    batch.iter().cloned().map(|s| Settlement { held: names.own(s.held), ..s }).collect()
                };
                let got = self.store().settle(own(&self.theirs)).await.map_err(no)?;
                same("settled", got, self.model.settle(own(&self.ours)).await.map_err(no)?)?;
            }
            Op::Expired(ask) => {
                let got = self.store().expired(ask).await.map_err(no)?;
                let expected = self.model.expired(ask).await.map_err(no)?;
                let told = |swept: Swept| (swept.timed_out, swept.ended, swept.more);
                same("swept", told(self.theirs.swept(got)), told(self.ours.swept(expected)))?;
            }
            Op::Control(wishes) => {
                let own = |names: &Names| wishes.iter().map(|wish| names.wish(wish.clone())).collect();
                let named = |names: &Names, answers: Vec<Controlled>| {
                    answers.into_iter().map(|answer| names.controlled(answer)).collect::<Vec<_>>()
                };
                let got = self.store().control(own(&self.theirs)).await.map_err(no)?;
                let expected = self.model.control(own(&self.ours)).await.map_err(no)?;
                same("controlled", named(&self.theirs, got), named(&self.ours, expected))?;
            }
            Op::SetQueues(changes) => {
                self.store().set_queues(changes.clone()).await.map_err(no)?;
                self.model.set_queues(changes).await.map_err(no)?;
            }
            Op::Register(workers) => {
                self.store().register(workers.clone()).await.map_err(no)?;
                self.model.register(workers).await.map_err(no)?;
            }
            Op::ChangeFlows(changes) => {
                let got = self.store().change_flows(changes.clone()).await.map_err(no)?;
                same("changed", got, self.model.change_flows(changes).await.map_err(no)?)?;
            }
            Op::SetLimits(changes) => {
                self.store().set_limits(changes.clone()).await.map_err(no)?;
                self.model.set_limits(changes).await.map_err(no)?;
            }
            Op::Forget(jobs) => {
                let own = |names: &Names| jobs.iter().map(|wish| names.forget(*wish)).collect();
                let got = self.store().forget(own(&self.theirs)).await.map_err(no)?;
                same("forgot", got, self.model.forget(own(&self.ours)).await.map_err(no)?)?;
            }
            Op::ForgetJournal(before, limit) => {
                let got = self.store().forget_journal(before, limit).await.map_err(no)?;
                let expected = self.model.forget_journal(before, limit).await.map_err(no)?;
                same("entries of the journal that went", got, expected)?;
                let ours = self.model.journal_range().await.map_err(no)?;
                same("what is kept of the journal", self.store().journal_range().await.map_err(no)?, ours)?;
                let first = EventId { entry: 1, index: 0 };
                let got = self.store().journal(first, 1).await.map_err(no)?.missed;
                same("a gap", got, self.model.journal(first, 1).await.map_err(no)?.missed)?;
            }
            Op::Advance(span) => self.clock.advance(span),
            Op::Reopen => {
                let store = self.store.take().expect("a store is only away while it is reopened");
                let clock: Arc<dyn Clock> = self.clock.clone();
                self.store = fixture.reopen(store, clock).await;
                if self.store.is_none() {
                    return Err("the fixture reopened a store before, and now it does not".to_owned());
                }
            }
        }
        Ok(vec![])
    }

    /// Compares all that can be seen, and one of each thing by itself.
    async fn compare(&self, generator: &mut Generator) -> Result<(), String> {
        self.model
            .with(|model, _| model.invariants())
            .map_err(|broken| format!("the model itself is broken: {broken}"))?;
        same("the store's time", self.store().now(), self.model.now())?;
        let got = Snapshot::named(self.store(), &self.theirs).await;
        got.same_as(&Snapshot::named(&self.model, &self.ours).await)?;
        self.compare_looks(generator).await.map_err(|error| format!("the store failed: {error}"))?
    }

    /// Looks at single things in both.
    async fn compare_looks(&self, generator: &mut Generator) -> crate::StoreResult<Result<(), String>> {
        let (store, model, ours, theirs) = (self.store(), &self.model, &self.ours, &self.theirs);
        let id = generator.any_job();
        let got = store.job(theirs.id(id)).await?.map(|job| theirs.view(job));
        let expected = model.job(ours.id(id)).await?.map(|job| ours.view(job));
        let job = same(&format!("looks at job {id}"), got, expected);

        let id = generator.any_task();
        let got = store.task(theirs.own_task(id)).await?.map(|task| theirs.task_view(task));
        let expected = model.task(ours.own_task(id)).await?.map(|task| ours.task_view(task));
        let task = same(&format!("looks at task {id}"), got, expected);

        let attempts = generator.attempts();
        let own = |names: &Names| attempts.iter().map(|held| names.own(*held)).collect();
        let held = same("held leases", store.held(own(theirs)).await?, model.held(own(ours)).await?);

        let filter = generator.filter(model.now());
        let page = |names: &Names, after| Page { after: Some(names.id(after)), limit: 3 };
        let got = store.list(filter.clone(), page(theirs, id.job)).await?;
        let expected = model.list(filter.clone(), page(ours, id.job)).await?;
        let got: Vec<_> = got.into_iter().map(|job| theirs.name(job.id)).collect();
        let expected: Vec<_> = expected.into_iter().map(|job| ours.name(job.id)).collect();
        let list = same(&format!("jobs of a page behind {} by {filter:?}", id.job), got, expected);

        let ask = generator.removable(model.now());
        let own = |names: &Names| RemovableAsk { after: ask.after.map(|id| names.id(id)), ..ask };
        let got = theirs.removable(store.removable(own(theirs)).await?);
        let expected = ours.removable(model.removable(own(ours)).await?);
        let removable = same(&format!("removable jobs by {ask:?}"), got, expected);
        Ok(job.and(task).and(held).and(list).and(removable))
    }
}

fn same<T: PartialEq + Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected {
        Ok(())
    } else {
        Err(format!("{what} differ\n  got      {got:?}\n  expected {expected:?}"))
    }
}
