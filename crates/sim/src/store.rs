//! The store as one process has it: everything that may happen between a caller and its store.
//!
//! A call waits for its turn (the process may stand still), takes time, may be refused, takes effect on the one
//! model, and may lose its answer. What the store does, it does at one moment, and the oracle looks at it then.

mod lease;
mod read;

use crate::chance::{Chance, stream};
use crate::oracle::Violation;
use crate::process::Process;
use crate::world::{World, shown};
use async_trait::async_trait;
use lease::Unanswered;
use orchestrator_core::{Millis, NewJob, Timestamp};
use orchestrator_store::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until};

/// The store of one process.
pub struct SimStore {
    world: Arc<World>,
    process: Arc<Process>,
    bell: watch::Sender<u64>,
    /// How often each verb was called.
    calls: Mutex<BTreeMap<&'static str, u64>>,
    /// When a sweep heard last that more is overdue.
    more: Mutex<Option<Instant>>,
}

impl SimStore {
    /// The way of a process to the store.
    pub fn new(world: Arc<World>, process: Arc<Process>) -> Self {
        let bell = watch::Sender::new(0);
        world.listen(process.name, bell.clone());
        SimStore { world, process, bell, calls: Mutex::default(), more: Mutex::default() }
    }

    /// The way to the store. `Err` where the call never takes effect.
    async fn enter(&self, verb: &'static str, writes: bool) -> StoreResult<Call<'_>> {
        self.process.gate().await;
        let n = {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let n = calls.entry(verb).or_default();
            *n += 1;
            *n
        };
        let name = self.process.name;
        let seed = self.world.script.seed;
        let rng = stream(seed, verb, &[u64::from(name.replica), u64::from(name.life), n]);
        let mut call = Call { store: self, verb, writes, rng, stalls_after: false };
        call.travel_there().await;
        call.refused().await?;
        if self.process.is_dead() {
            // Whether a request had left before the process died is anybody's guess.
            if call.rng.bool() {
                std::future::pending::<()>().await;
            }
            self.world.count("faults", "effect after the process died");
        }
        Ok(call)
    }
}

/// A call on its way.
struct Call<'a> {
    store: &'a SimStore,
    verb: &'static str,
    writes: bool,
    rng: fastrand::Rng,
    stalls_after: bool,
}

impl Call<'_> {
    fn count(&self, how: &'static str) {
        self.store.world.count("faults", how);
    }

    /// The time until the effect.
    async fn travel_there(&mut self) {
        let faults = self.store.world.faults();
        let ttl = self.store.world.script.settings.lease_ttl;
        if self.rng.one_of_thousand(faults.stall) {
            self.count("stalled call");
            self.stalls_after = self.rng.bool();
            if !self.stalls_after {
                if self.verb == "settle" {
                    self.count("settlement past its lease");
                }
                return sleep(self.between(ttl * 11 / 10, ttl * 5 / 2)).await;
            }
        }
        if self.rng.one_of_thousand(faults.slow) {
            self.count("slow call");
            return sleep(self.between(200, 2_500)).await;
        }
        self.latency().await;
    }

    /// What a healthy call takes: nothing, a turn of the scheduler, or some milliseconds.
    async fn latency(&mut self) {
        let most = self.store.world.script.settings.latency;
        match self.rng.u8(..4) {
            0 => yield_now().await,
            1 if most > 0 => sleep(self.between(0, most)).await,
            _ => {}
        }
    }

    fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng.u64(least..=most))
    }

    /// Whether the store turns the call away.
    async fn refused(&mut self) -> StoreResult<()> {
        while let Some(outage) = self.store.world.outage() {
            if !outage.hang {
                self.count("refused by an outage");
                return Err(StoreError::Database { source: "the store is down".into() });
            }
            self.count("kept by an outage");
            sleep_until(outage.until).await;
        }
        let faults = self.store.world.faults();
        if self.rng.one_of_thousand(faults.error) {
            self.count("error before the effect");
            return Err(match self.rng.u8(..3) {
                0 => StoreError::Busy { waited_ms: 5_000 },
                1 => StoreError::NotWritable { source: "no space left".into() },
                _ => StoreError::Database { source: "disk I/O error".into() },
            });
        }
        if self.writes && self.rng.one_of_thousand(faults.unknown_before) {
            self.count("unknown before the effect");
            return Err(StoreError::Unknown { source: "the connection was cut".into() });
        }
        Ok(())
    }

    /// The way back. `Err` where the effect stands and the answer is lost.
    async fn leave(mut self) -> StoreResult<()> {
        let faults = self.store.world.faults();
        let lost = self.writes && self.rng.one_of_thousand(faults.unknown_after);
        if self.stalls_after {
            let ttl = self.store.world.script.settings.lease_ttl;
            sleep(self.between(ttl * 11 / 10, ttl * 5 / 2)).await;
        } else {
            self.latency().await;
        }
        self.store.process.gate().await;
        if lost {
            self.count("unknown after the effect");
            self.store
                .world
                .trace(self.store.process.name, || format!("the answer of {} is lost", self.verb));
            return Err(StoreError::Unknown { source: "the connection was cut".into() });
        }
        Ok(())
    }
}

#[async_trait]
impl Store for SimStore {
    async fn submit(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        let call = self.enter("submit", true).await?;
        let answers = self.world.store.submit(jobs.clone()).await?;
        self.world.trace(self.process.name, || {
            let shown = jobs.iter().zip(&answers).map(|(job, answer)| {
                let key = job.key.as_ref().map_or("-", |key| &*key.text);
                format!("{} {key} {} -> {answer:?}", job.name(), job.payload)
            });
            format!("submit {}", shown.collect::<Vec<_>>().join("; "))
        });
        self.world.check(|oracle, model, moment| oracle.submitted(model, moment));
        self.world.ring(self.process.name);
        call.leave().await?;
        Ok(answers)
    }

    async fn lease(&self, ask: LeaseAsk) -> StoreResult<LeaseGrant> {
        let call = self.enter("lease", true).await?;
        let grant = self.world.store.lease(ask.clone()).await?;
        let shown = || {
            let tasks =
                grant.tasks.iter().map(|leased| format!("{} ({})", shown(leased.held()), leased.name));
            format!("lease  {} -> {}", ask.slots, tasks.collect::<Vec<_>>().join(", "))
        };
        if grant.tasks.is_empty() {
            self.world.trace_quietly(self.process.name, shown);
        } else {
            self.world.trace(self.process.name, shown);
        }
        self.world.check(|oracle, model, moment| oracle.granted(model, moment, &ask, &grant));
        let mut unanswered = Unanswered::new(self, &grant);
        let answer = call.leave().await;
        unanswered.forget();
        answer?;
        Ok(grant)
    }

    async fn extend(&self, held: Vec<Held>, ttl: Millis) -> StoreResult<Vec<Beat>> {
        let call = self.enter("extend", true).await?;
        let beats = self.world.store.extend(held.clone(), ttl).await?;
        self.world.trace_quietly(self.process.name, || {
            let beats = held.iter().zip(&beats).map(|(held, beat)| format!("{} {beat:?}", shown(*held)));
            format!("extend {}", beats.collect::<Vec<_>>().join(", "))
        });
        self.world.check(|oracle, _, _| oracle.extended(&held, &beats));
        call.leave().await?;
        Ok(beats)
    }

    async fn settle(&self, batch: Vec<Settlement>) -> StoreResult<Vec<Settled>> {
        let mut call = self.enter("settle", true).await?;
        let answers = self.world.settle(self.process.name, batch.clone()).await;
        self.world.ring(self.process.name);
        if call.rng.one_of_thousand(self.world.faults().duplicate) {
            // A retransmission: the same request arrives once more, and nobody waits for its answer.
            call.count("settlement twice");
            let pause = call.between(0, self.world.script.settings.lease_ttl * 2);
            let world = self.world.clone();
            tokio::spawn(async move {
                sleep(pause).await;
                world.settle("again", batch).await;
            });
        }
        call.leave().await?;
        Ok(answers)
    }

    async fn expired(&self, ask: SweepAsk) -> StoreResult<Swept> {
        self.goes_on_sweeping();
        let call = self.enter("expired", true).await?;
        let swept = self.world.store.expired(ask).await?;
        let nothing = swept.ended.is_empty() && swept.timed_out.is_empty();
        if nothing {
            self.world.trace_quietly(self.process.name, || "sweep  nothing".to_owned());
        } else {
            self.world.trace(self.process.name, || {
                let ended = swept.ended.iter().map(|(held, settled)| format!("{} {settled:?}", shown(*held)));
                let jobs = swept.timed_out.iter().map(|job| format!("job {} timed out", job.free_bits()));
                format!("sweep  {}", ended.chain(jobs).collect::<Vec<_>>().join("; "))
            });
            self.count_sweep(&swept);
            self.world.check(|oracle, model, moment| oracle.swept(model, moment, &swept));
            self.world.ring(self.process.name);
        }
        call.leave().await?;
        if swept.more && !nothing {
            *self.more.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        Ok(swept)
    }

    async fn control(&self, wishes: Vec<Wish>) -> StoreResult<Vec<Controlled>> {
        let call = self.enter("control", true).await?;
        let commands: Vec<Command> = wishes.iter().map(|wish| wish.command.clone()).collect();
        self.world.check(|oracle, model, moment| {
            oracle.before_control(model, &commands, moment);
            Ok(())
        });
        let answers = self.world.store.control(wishes.clone()).await?;
        self.world.trace(self.process.name, || {
            let shown = wishes.iter().zip(&answers);
            let shown = shown.map(|(wish, answer)| format!("{:?} -> {answer:?}", wish.command));
            format!("control {}", shown.collect::<Vec<_>>().join("; "))
        });
        self.world.check(|oracle, model, moment| oracle.controlled(model, moment, &commands, &answers));
        self.world.ring(self.process.name);
        call.leave().await?;
        Ok(answers)
    }

    async fn set_queues(&self, changes: Vec<QueueChange>) -> StoreResult<()> {
        let call = self.enter("set_queues", true).await?;
        self.world.store.set_queues(changes).await?;
        self.world.ring(self.process.name);
        call.leave().await
    }

    async fn register(&self, workers: Vec<WorkerNote>) -> StoreResult<()> {
        let call = self.enter("register", true).await?;
        self.world.store.register(workers).await?;
        call.leave().await
    }

    async fn check(&self) -> StoreResult<()> {
        let call = self.enter("check", true).await?;
        self.world.store.check().await?;
        call.leave().await
    }

    async fn change_flows(&self, changes: Vec<FlowChange>) -> StoreResult<Vec<FlowChanged>> {
        let call = self.enter("change_flows", true).await?;
        let answers = self.world.store.change_flows(changes).await?;
        call.leave().await?;
        Ok(answers)
    }

    async fn set_limits(&self, changes: Vec<LimitChange>) -> StoreResult<()> {
        let call = self.enter("set_limits", true).await?;
        self.world.store.set_limits(changes.clone()).await?;
        self.world.trace(self.process.name, || format!("limits {changes:?}"));
        self.world.check(|oracle, _, _| {
            oracle.limited(&changes);
            Ok(())
        });
        self.world.ring(self.process.name);
        call.leave().await
    }

    async fn forget(&self, jobs: Vec<Forget>) -> StoreResult<Vec<Forgot>> {
        let call = self.enter("forget", true).await?;
        let answers = self.world.store.forget(jobs).await?;
        call.leave().await?;
        Ok(answers)
    }

    async fn forget_journal(&self, before: Timestamp, limit: u32) -> StoreResult<u32> {
        let call = self.enter("forget_journal", true).await?;
        let gone = self.world.store.forget_journal(before, limit).await?;
        call.leave().await?;
        Ok(gone)
    }
}

impl SimStore {
    /// A sweep that heard of more overdue attempts asks for them at once, not at its next turn.
    fn goes_on_sweeping(&self) {
        let heard = self.more.lock().unwrap_or_else(PoisonError::into_inner).take();
        if heard.is_some_and(|heard| heard < Instant::now()) {
            let what = format!("{} left overdue attempts lying until its next turn", self.process.name);
            self.world.fail(Violation::new("sweep", what));
        }
    }

    fn count_sweep(&self, swept: &Swept) {
        for (held, _) in &swept.ended {
            let task = self.world.store.inspect(|model| model.task(held.task));
            let last = task.as_ref().and_then(|task| task.history.last()).map(|record| record.how);
            let how = if last == Some(AttemptEnd::Lost) { "lost" } else { "timeout" };
            self.world.count("sweeps", how);
        }
        swept.timed_out.iter().for_each(|_| self.world.count("sweeps", "deadline"));
    }
}
