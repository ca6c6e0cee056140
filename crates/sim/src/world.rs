//! What all processes of a run share: the store, its clock, the oracle, the history, the trace.
//!
//! The first violation ends the run; nothing is checked after it.

use crate::chance::{Chance, Fnv, stream};
use crate::clock::SimClock;
use crate::oracle::{Check, Moment, Oracle, Violation};
use crate::process::Name;
use crate::script::{Faults, Script, Settings};
use crate::tally::Tally;
use orchestrator_core::{JobId, Json, Timestamp};
use orchestrator_history::{Answer, Call, CallId, Event, History, Run};
use orchestrator_store::model::{Model, ModelStore};
use orchestrator_store::{Clock, Held, Leased, Settled, Settlement, Store};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a handler may take to end when it is told to, in milliseconds.
const A_MOMENT: u64 = 250;

/// One run's world.
pub struct World {
    /// What is run.
    pub script: Script,
    /// The store's clock.
    pub clock: Arc<SimClock>,
    /// The one store, behind all the faults.
    pub store: ModelStore,
    /// Fires at the first violation.
    pub over: CancellationToken,
    /// Whether the lines of the trace are kept.
    tracing: bool,
    state: Mutex<State>,
}

struct State {
    oracle: Oracle,
    history: History,
    lines: Vec<String>,
    digest: Fnv,
    tally: Tally,
    violation: Option<Violation>,
    healed: bool,
    /// What was on its way when the faults ended has arrived.
    settled: bool,
    closed: bool,
    outage: Option<Outage>,
    bells: BTreeMap<Name, watch::Sender<u64>>,
    rung: u64,
    /// The handlers that are at work.
    running: BTreeMap<Run, AtWork>,
    jobs: BTreeMap<u32, JobId>,
}

/// A handler at work.
struct AtWork {
    process: Name,
    /// The tick by which it has to be gone, where an attempt may not take for ever.
    latest: Option<u64>,
}

/// A span in which the store serves nobody.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// Until when.
    pub until: Instant,
    /// Whether calls are kept until then, or refused.
    pub hang: bool,
}

/// What is left of a run.
pub struct Remains {
    /// What went wrong first.
    pub violation: Option<Violation>,
    /// The trace, where it was kept.
    pub lines: Vec<String>,
    /// A digest of the whole trace.
    pub digest: u64,
    /// What was exercised.
    pub tally: Tally,
}

impl World {
    /// An empty store and nobody in it; to be made inside the runtime.
    pub fn new(script: Script, tracing: bool) -> Self {
        let clock = Arc::new(SimClock::starting_now());
        let state = State {
            oracle: Oracle::new(script.keeps_leases()),
            history: History::new(),
            lines: vec![],
            digest: Fnv::default(),
            tally: Tally::default(),
            violation: None,
            healed: false,
            settled: false,
            closed: false,
            outage: None,
            bells: BTreeMap::new(),
            rung: 0,
            running: BTreeMap::new(),
            jobs: BTreeMap::new(),
        };
        World {
            store: ModelStore::new(clock.clone()),
            script,
            clock,
            over: CancellationToken::new(),
            tracing,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time by the store.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Writes a line into the trace.
    pub fn trace(&self, who: impl Display, what: impl FnOnce() -> String) {
        self.write_down(who, what, true);
    }

    /// The same for what happens all the time: it is in the digest only.
    pub fn trace_quietly(&self, who: impl Display, what: impl FnOnce() -> String) {
        self.write_down(who, what, false);
    }

    fn write_down(&self, who: impl Display, what: impl FnOnce() -> String, keep: bool) {
        if !self.tracing {
            return;
        }
        let line = format!("{:>9.3} s  {who:<6} {}", self.clock.ticks() as f64 / 1000.0, what());
        let mut state = self.lock();
        state.digest.write(line.as_bytes());
        if keep {
            state.lines.push(line);
        }
    }

    /// Counts something that happened.
    pub fn count(&self, what: &'static str, how: &'static str) {
        self.lock().tally.count(what, how);
    }

    /// Ends the run, unless it has ended before.
    pub fn fail(&self, violation: Violation) {
        self.trace("!!", || violation.to_string());
        self.lock().violation.get_or_insert(violation);
        self.over.cancel();
    }

    /// Looks at a step of the store, right after it.
    pub fn check(&self, look: impl FnOnce(&mut Oracle, &Model, Moment) -> Check) {
        let moment = Moment { tick: self.clock.ticks(), now: self.now() };
        let checked = {
            let mut state = self.lock();
            if state.closed || state.violation.is_some() {
                return;
            }
            self.store.inspect(|model| look(&mut state.oracle, model, moment))
        };
        if let Err(violation) = checked {
            self.fail(violation);
        }
    }

    /// Asks the oracle something.
    pub fn ask<T>(&self, question: impl FnOnce(&Oracle) -> T) -> T {
        question(&self.lock().oracle)
    }

    /// The faults that may happen now.
    pub fn faults(&self) -> Faults {
        if self.lock().healed { Faults::default() } else { self.script.faults.clone() }
    }

    /// Whether nothing is broken, nor on its way since something was.
    pub fn is_healthy(&self) -> bool {
        self.script.is_calm() || self.lock().settled
    }

    /// Notes that whatever was on its way when the faults ended has arrived.
    pub fn is_settled(&self) {
        self.lock().settled = true;
    }

    /// The outage that is on.
    pub fn outage(&self) -> Option<Outage> {
        self.lock().outage.filter(|outage| outage.until > Instant::now())
    }

    /// Lets the store fail for a while.
    pub fn begin_outage(&self, outage: Outage) {
        self.lock().outage = Some(outage);
    }

    /// Sets the store's clock.
    pub fn jump(&self, by: i64) {
        self.clock.jump(by);
        self.lock().oracle.clock_set();
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.clock.heal();
        let mut state = self.lock();
        state.oracle.clock_set();
        state.healed = true;
        state.outage = None;
    }

    /// Ends the run: whatever is dropped from now on leaves no trace.
    pub fn close(&self) -> Remains {
        let mut state = self.lock();
        state.closed = true;
        Remains {
            violation: state.violation.take(),
            lines: std::mem::take(&mut state.lines),
            digest: state.digest.finish(),
            tally: std::mem::take(&mut state.tally),
        }
    }

    /// A process listens for hints that work may be ready.
    pub fn listen(&self, process: Name, bell: watch::Sender<u64>) {
        self.lock().bells.insert(process, bell);
    }

    /// Tells processes that work may be ready, in any order; some never hear it.
    pub fn ring(&self, by: Name) {
        let lost = self.faults().lost_hint;
        let (bells, rung) = {
            let mut state = self.lock();
            state.rung += 1;
            (state.bells.clone(), state.rung)
        };
        let mut rng = stream(self.script.seed, "hints", &[rung]);
        let mut bells: Vec<_> = bells.into_iter().collect();
        rng.shuffle(&mut bells);
        for (name, bell) in bells {
            if name != by && !self.script.settings.hints {
                continue;
            }
            if rng.one_of_thousand(lost) {
                self.count("faults", "lost hint");
                continue;
            }
            bell.send_modify(|n| *n += 1);
        }
    }

    /// The job that a number of the script stands for, once it was taken in.
    pub fn job(&self, number: u32) -> Option<JobId> {
        self.lock().jobs.get(&number).copied()
    }

    /// Notes which job a number of the script stands for.
    pub fn name_job(&self, number: u32, job: JobId) {
        self.lock().jobs.insert(number, job);
    }

    /// Takes outcomes, right at the store.
    pub async fn settle(&self, who: impl Display, batch: Vec<Settlement>) -> Vec<Settled> {
        let Ok(answers) = self.store.settle(batch.clone()).await else { return vec![] };
        let stale = answers.iter().filter(|answer| **answer == Settled::Stale).count() as u64;
        {
            let mut state = self.lock();
            state.tally.add("settlements", "stale", stale);
            state.tally.add("settlements", "applied", answers.len() as u64 - stale);
        }
        self.trace(who, || {
            let pairs = batch.iter().zip(&answers);
            let shown = pairs.map(|(s, answer)| format!("{} {:?} -> {answer:?}", shown(s.held), s.outcome));
            format!("settle {}", shown.collect::<Vec<_>>().join("; "))
        });
        self.check(|oracle, model, moment| oracle.settled(model, moment, &batch, &answers));
        answers
    }

    /// Notes that a client asks.
    pub fn call(&self, call: Call) -> CallId {
        let tick = self.clock.ticks();
        self.lock().history.call(tick, call)
    }

    /// Notes what a client heard.
    pub fn answer(&self, id: CallId, answer: Answer) {
        let tick = self.clock.ticks();
        self.lock().history.answer(tick, id, answer);
    }

    /// Notes something else.
    pub fn note(&self, event: Event) {
        let tick = self.clock.ticks();
        self.lock().history.note(tick, event);
    }

    /// The history so far.
    pub fn history(&self) -> History {
        self.lock().history.clone()
    }

    /// A handler begins.
    pub fn handler_starts(&self, process: Name, leased: &Leased) -> Run {
        let run = Run { task: leased.task, attempt: leased.counters.attempt };
        self.trace(process, || format!("start  {} ({})", shown(leased.held()), leased.name));
        self.note(Event::Started { run, limits: leased.limits.keys().to_vec() });
        let Settings { cancel_grace, .. } = self.script.settings;
        let latest = leased.spec.timeout.map(|limit| self.clock.ticks() + limit.0 + cancel_grace + A_MOMENT);
        self.lock().running.insert(run, AtWork { process, latest });
        run
    }

    /// Forgets a handler that is not at work any more. False if it is known already. Where nothing hinders its
    /// pool, it ends in time.
    fn handler_gone(&self, run: Run) -> bool {
        let gone = self.lock().running.remove(&run);
        let Some(AtWork { process, latest }) = gone else { return false };
        let late = latest.is_some_and(|latest| latest < self.clock.ticks());
        if late && self.script.keeps_leases() {
            let what = format!("{process} let {run:?} go on past its time");
            self.fail(Violation::new("timeout", what));
        }
        true
    }

    /// A handler has an answer; `output` if it is a good one.
    pub fn handler_ends(&self, run: Run, output: Option<Json>) {
        self.handler_gone(run);
        self.note(Event::Finished { run, output });
    }

    /// A handler is dropped. It may have ended long ago.
    pub fn handler_dropped(&self, run: Run) {
        if !self.is_closed() && self.handler_gone(run) {
            self.note(Event::Aborted { run });
            self.count("handlers", "aborted");
        }
    }

    /// A process is gone, and its handlers with it.
    pub fn process_gone(&self, process: Name) {
        let runs: Vec<Run> = {
            let mut state = self.lock();
            state.bells.remove(&process);
            state.running.iter().filter(|(_, at)| at.process == process).map(|(run, _)| *run).collect()
        };
        runs.into_iter().for_each(|run| self.handler_dropped(run));
    }

    /// Whether the run is over, so that what is dropped now means nothing.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }
}

/// An attempt in the trace: the number of the job, the index of the task, the attempt.
pub fn shown(held: Held) -> String {
    format!("{}/{}#{}", held.task.job.free_bits(), held.task.index, held.attempt)
}
