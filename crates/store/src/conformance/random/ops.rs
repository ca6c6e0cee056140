//! What a random sequence does. Few names of everything, so that operations meet.

use super::flows::{self, Brief, BriefChange, INPUTS, NAMES};
use super::known::Known;
use crate::conformance::names::Names;
use crate::conformance::world::{done, json, key};
use crate::retention::{Bygone, Forget, RemovableAsk};
use crate::verbs::*;
use crate::views::JobFilter;
use orchestrator_core::flow::Plan;
use orchestrator_core::order::Priority;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{
    Document, ErrorClass, Failure, JobId, JobState, Json, Key, LimitRule, Limits, Meta, Millis, NewJob,
    Outcome, Rate, RetryPolicy, TaskId, TaskSpec, Timestamp, WorkerId,
};
use std::fmt;
use std::sync::Arc;

const QUEUES: [&str; 2] = ["q1", "q2"];
const HANDLERS: [&str; 2] = ["h1", "h2"];
const TENANTS: [&str; 3] = ["t1", "t2", "t3"];
const KEYS: [&str; 3] = ["k1", "k2", "k3"];
const LIMITS: [&str; 4] = ["host:a", "host:b", "res:x", "res:y"];
const RULES: [&str; 5] = ["host:*", "host:a", "res:*", "res:x", "free:z"];
/// The first two say the same.
const PAYLOADS: [&str; 3] = [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, "3"];
const CONTEXTS: [&str; 4] = [r#"{"a":1}"#, r#"{"a": 1.0, "b": {"x": [2]}}"#, r#"{"c":null,"a":1}"#, "{}"];
const CONTENTS: [&[u8; 2]; 2] = [b"\0\xff", b"xy"];
const CLASSES: [ErrorClass; 4] =
    [ErrorClass::Network, ErrorClass::Transient, ErrorClass::Validation, ErrorClass::Permanent];

/// With so many live jobs no more are submitted.
const ENOUGH: usize = 8;

/// One operation, with jobs by number.
#[derive(Clone)]
pub(super) enum Op {
    Submit(Vec<NewJob>),
    Lease(LeaseAsk),
    Extend(Vec<Held>, Millis),
    Settle(Vec<Settlement>),
    Expired(SweepAsk),
    Control(Vec<Wish>),
    SetQueues(Vec<QueueChange>),
    Register(Vec<WorkerNote>),
    ChangeFlows(Vec<FlowChange>),
    SetLimits(Vec<LimitChange>),
    Forget(Vec<Forget>),
    ForgetJournal(Timestamp, u32),
    Advance(Millis),
    Reopen,
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Submit(jobs) => write!(f, "Submit({:?})", jobs.iter().map(Brief).collect::<Vec<_>>()),
            Op::Lease(ask) => write!(f, "{ask:?}"),
            Op::Extend(held, ttl) => write!(f, "Extend({held:?}, {ttl})"),
            Op::Settle(batch) => write!(f, "Settle({batch:?})"),
            Op::Expired(ask) => write!(f, "{ask:?}"),
            Op::Control(wishes) => write!(f, "Control({wishes:?})"),
            Op::SetQueues(changes) => write!(f, "SetQueues({changes:?})"),
            Op::Register(workers) => write!(f, "Register({workers:?})"),
            Op::ChangeFlows(changes) => {
                write!(f, "ChangeFlows({:?})", changes.iter().map(BriefChange).collect::<Vec<_>>())
            }
            Op::SetLimits(changes) => write!(f, "SetLimits({changes:?})"),
            Op::Forget(jobs) => write!(f, "{jobs:?}"),
            Op::ForgetJournal(before, limit) => write!(f, "ForgetJournal({before:?}, {limit})"),
            Op::Advance(span) => write!(f, "Advance({span})"),
            Op::Reopen => f.write_str("Reopen"),
        }
    }
}

pub(super) struct Generator {
    rng: fastrand::Rng,
    /// Whether jobs have limits. Without any the order between tenants is exact, and is compared.
    limited: bool,
    /// Whether the store can be reopened.
    keeps: bool,
    flows: Vec<Arc<Plan>>,
    /// What there is to do something with.
    pub known: Known,
    /// Every attempt that was ever granted; old ones serve as stale writers.
    pub granted: Vec<Held>,
}

impl Generator {
    pub fn new(seed: u64, keeps: bool) -> Generator {
        let mut rng = fastrand::Rng::with_seed(seed);
        let limited = rng.u8(0..3) > 0;
        Generator {
            rng,
            limited,
            keeps,
            flows: flows::all(limited),
            known: Known::default(),
            granted: vec![],
        }
    }

    pub fn next(&mut self, now: Timestamp) -> Op {
        match self.rng.u8(0..104) {
            // Few jobs that get far tell more than many that hardly begin.
            0..14 if self.known.live.len() < ENOUGH => Op::Submit(self.some(|g| g.any_new(now))),
            0..38 => Op::Lease(self.ask()),
            38..63 => Op::Settle(self.attempts().into_iter().map(|held| self.end(held)).collect()),
            63..66 => Op::Extend(self.attempts(), self.span()),
            66..72 => Op::Expired(SweepAsk { limit: self.rng.u32(1..=3), jitter: self.rng.f64() }),
            72..84 if self.known.jobs > 0 => Op::Control(self.some(Generator::wish)),
            84..86 => Op::ChangeFlows(self.some(Generator::change)),
            86..89 => Op::SetLimits(self.some(Generator::rule)),
            89..91 if self.keeps => Op::Reopen,
            91..93 if self.known.jobs > 0 => Op::Forget(self.some(Generator::forget)),
            93 => Op::ForgetJournal(now - self.span(), self.pick([1, 3, 1000])),
            100..103 => Op::SetQueues(self.some(Generator::queue)),
            103 => Op::Register(self.some(Generator::worker)),
            _ => Op::Advance(self.span()),
        }
    }

    /// A job by number; sometimes one that does not exist.
    pub fn any_job(&mut self) -> JobId {
        Names::numbered(self.rng.usize(1..=self.known.jobs + 1))
    }

    /// A task by its job's number, mostly one that was granted once.
    pub fn any_task(&mut self) -> TaskId {
        match self.granted.len() {
            granted if granted > 0 && !self.one_in(5) => self.granted[self.rng.usize(0..granted)].task,
            _ => TaskId { job: self.any_job(), index: self.rng.u32(0..8) },
        }
    }

    /// Mostly one of those with which it makes sense.
    fn mostly<T: Copy>(&mut self, sensible: impl Fn(&Known) -> &Vec<T>, any: fn(&mut Generator) -> T) -> T {
        match sensible(&self.known).len() {
            some if some > 0 && !self.one_in(6) => sensible(&self.known)[self.rng.usize(0..some)],
            _ => any(self),
        }
    }

    /// A job to remove: mostly one that is over, sometimes by an end that it did not have.
    fn forget(&mut self) -> Forget {
        let any = |g: &mut Generator| Forget { job: g.any_job(), ended: Timestamp::from_millis(1) };
        let wish = self.mostly(|known| &known.over, any);
        if self.one_in(6) { Forget { ended: wish.ended + Millis(1), ..wish } } else { wish }
    }

    /// What to look for among the jobs that are over, behind any job or from the first one on.
    pub fn removable(&mut self, now: Timestamp) -> RemovableAsk {
        let mut moment = || (!self.one_in(4)).then(|| now - self.span());
        let bygone = Bygone { completed: moment(), failed: moment(), dead: moment() };
        let after = self.one_in(2).then(|| self.any_job());
        RemovableAsk { bygone, after, limit: self.pick([1, 2, 100]), look: self.pick([1, 3, 100]) }
    }

    /// Which jobs to look at.
    pub fn filter(&mut self, now: Timestamp) -> JobFilter {
        let states = self.pick([JobState::Running, JobState::Failed, JobState::Paused]);
        JobFilter {
            states: if self.one_in(2) { vec![states, JobState::Pending] } else { vec![] },
            flow: self.one_in(3).then(|| self.any_flow().name().clone()),
            recoverable: self.one_in(3),
            created_from: self.one_in(4).then(|| now - self.span()),
            created_before: self.one_in(4).then(|| now - self.span()),
            context: if self.one_in(4) { self.some(Generator::fact) } else { vec![] },
            newest_first: self.one_in(2),
            ..JobFilter::default()
        }
    }

    fn any_flow(&mut self) -> Arc<Plan> {
        self.flows[self.rng.usize(0..self.flows.len())].clone()
    }

    fn pick<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.rng.usize(0..N)]
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(0..n) == 0
    }

    fn some<T>(&mut self, one: impl Fn(&mut Generator) -> T) -> Vec<T> {
        (0..self.rng.usize(1..=4)).map(|_| one(self)).collect()
    }

    fn span(&mut self) -> Millis {
        Millis(self.pick([1, 40, 500, 1000, 1000, 5000, 5000, 31_000, 61_000, 300_000]))
    }

    /// A job of a queue or of a flow, and sometimes one that waits for others or repeats one.
    fn any_new(&mut self, now: Timestamp) -> NewJob {
        let mut job = if self.one_in(2) { self.job(now) } else { self.flow_job(now) };
        if self.one_in(5) {
            job.after = self.some(|g| g.mostly(|known| &known.live, Generator::any_job));
        }
        if self.one_in(10) {
            job = job.rerun_of(self.any_job());
        }
        if self.one_in(4) {
            job.meta = self.meta();
        }
        if self.one_in(5) {
            job = job.document(Document::new(self.pick(["a", "b"]), "text/plain", *self.pick(CONTENTS)));
        }
        job
    }

    /// What a job carries along, which may be nothing.
    fn meta(&mut self) -> Meta {
        Meta {
            context: (!self.one_in(4)).then(|| json(self.pick(CONTEXTS))),
            user: self.one_in(3).then(|| "ann".into()),
            ..Meta::default()
        }
    }

    /// A field of a context, and what it is to be.
    fn fact(&mut self) -> (Arc<str>, Json) {
        let (field, value) = self.pick([("a", "1"), ("a", "1.0"), ("b", "{\"x\":[2]}"), ("c", "null")]);
        (field.into(), json(value))
    }

    fn flow_job(&mut self, now: Timestamp) -> NewJob {
        let mut job = NewJob::of_flow(self.any_flow()).tenant(self.pick(TENANTS));
        let input = if self.one_in(3) { self.pick(INPUTS) } else { INPUTS[0] };
        job = job.payload(json(input));
        if self.one_in(3) {
            job = job.tenant(TENANTS[0]).key(Key { derived: self.one_in(2), ..Key::new(KEYS[0]) });
        }
        if self.one_in(6) {
            job = job.priority(self.pick(Priority::ALL));
        }
        if self.one_in(8) {
            job = job.run_at(now + self.span());
        }
        job
    }

    fn job(&mut self, now: Timestamp) -> NewJob {
        let retry = RetryPolicy { max_retries: self.rng.u32(0..3), ..RetryPolicy::default() };
        let timeout = self.pick([None, Some(Millis::secs(5)), Some(Millis::mins(5))]);
        let queue = self.pick(QUEUES);
        let spec = TaskSpec {
            max_crashes: self.rng.u32(1..4),
            ..TaskSpec::new(self.pick(HANDLERS)).on_queue(queue).with_retry(retry).with_timeout(timeout)
        };
        let mut job = NewJob::with_spec(Arc::new(spec)).tenant(self.pick(TENANTS)).limits(self.limits());
        if self.one_in(2) {
            let text = self.pick(KEYS);
            job = job.key(if self.one_in(3) { Key::within(text, Millis::secs(10)) } else { Key::new(text) });
            job = job.payload(json(self.pick(PAYLOADS)));
        }
        if self.one_in(3) {
            job = job.priority(self.pick(Priority::ALL));
        }
        if self.one_in(5) {
            let span = self.span();
            job = job.run_at(if self.one_in(4) { now - span } else { now + span });
        }
        job
    }

    fn limits(&mut self) -> Limits {
        let keys = if self.limited { self.rng.usize(0..3) } else { 0 };
        Limits::new((0..keys).map(|_| key(self.pick(LIMITS)))).expect("a few valid keys")
    }

    fn ask(&mut self) -> LeaseAsk {
        let mut names = |all: [&'static str; 2]| match self.rng.u8(0..8) {
            0 => vec![Arc::from(all[0])],
            1 => vec![Arc::from(all[1])],
            _ => all.map(Arc::from).to_vec(),
        };
        let (queues, handlers) = (names(QUEUES), names(HANDLERS));
        LeaseAsk {
            worker: WorkerId::new(self.pick(["w1", "w2"])),
            queues,
            handlers,
            slots: self.pick([1, 2, 3, 5, 20]),
            ttl: self.pick([Millis::secs(2), Millis::secs(30), Millis::mins(10)]),
            hold: Millis(0),
        }
    }

    /// Attempts to write with: mostly such that hold their lease, also old ones, sometimes one that never was.
    pub fn attempts(&mut self) -> Vec<Held> {
        if self.granted.is_empty() {
            return vec![];
        }
        self.some(|g| {
            let held = g.mostly(|known| &known.held, |g| g.granted[g.rng.usize(0..g.granted.len())]);
            if g.one_in(20) { Held { attempt: held.attempt + 1, ..held } } else { held }
        })
    }

    fn end(&mut self, held: Held) -> Settlement {
        let outcome = match self.rng.u8(0..16) {
            0..8 => done(),
            8 => Outcome::Skipped(json("\"nothing to do\"")),
            9..13 => {
                let failure = Failure::new(self.pick(CLASSES), "it broke");
                Outcome::Failed(if self.one_in(4) { failure.retry_after(self.span()) } else { failure })
            }
            13 => Outcome::Released,
            _ => {
                let delay = if self.one_in(2) { Millis(0) } else { self.span() };
                Outcome::Continue(Leg { checkpoint: json("{\"leg\":2}"), limits: self.limits(), delay })
            }
        };
        Settlement { held, outcome, jitter: self.rng.f64() }
    }

    fn command(&mut self) -> Command {
        match self.rng.u8(0..16) {
            0 => Command::Cancel(self.any_job()),
            1 | 2 => Command::Retry(self.mostly(|known| &known.bad, Generator::any_job)),
            3..6 => Command::Pause(self.mostly(|known| &known.live, Generator::any_job)),
            6..10 => Command::Resume(self.mostly(|known| &known.paused, Generator::any_job)),
            10..13 => {
                let from = if self.one_in(2) { Some(self.pick(NAMES)) } else { None };
                let job = self.mostly(|known| &known.bad, Generator::any_job);
                Command::Recover { job, from: from.map(Arc::from) }
            }
            13 | 14 => Command::Requeue(self.mostly(|known| &known.dead, Generator::any_task)),
            _ => Command::Discard(self.mostly(|known| &known.dead, Generator::any_task)),
        }
    }

    /// A command, which sometimes counts on a state.
    fn wish(&mut self) -> Wish {
        use JobState::{Completed, Failed, Paused, Pending, Running};
        let expect =
            self.one_in(4).then(|| self.pick([Pending, Running, Running, Failed, Paused, Completed]));
        Wish { command: self.command(), expect }
    }

    /// Mostly queues go on, or nothing would.
    fn queue(&mut self) -> QueueChange {
        QueueChange { queue: self.pick(QUEUES).into(), paused: self.one_in(3) }
    }

    fn worker(&mut self) -> WorkerNote {
        WorkerNote {
            name: WorkerId::new(self.pick(["w1", "w2", "w3"])),
            host: "here".into(),
            version: "1".into(),
            queues: vec![self.pick(QUEUES).into()],
            handlers: vec![],
            slots: self.rng.u32(1..9),
            gone: self.one_in(4),
        }
    }

    fn change(&mut self) -> FlowChange {
        let plan = self.any_flow();
        if self.one_in(3) { FlowChange::Retire(plan.name().clone()) } else { FlowChange::Apply(plan) }
    }

    fn rule(&mut self) -> LimitChange {
        let cap = self.pick([None, Some(0), Some(1), Some(2)]);
        let rate = self.one_in(3).then(|| {
            let per = self.pick([Millis(700), Millis::secs(5)]);
            Rate::new(self.rng.u32(1..4), per).with_burst(self.rng.u32(1..3))
        });
        let rule = (!self.one_in(3)).then_some(LimitRule { concurrency: cap, rate });
        let origin = self.pick([RuleOrigin::Config, RuleOrigin::Operator]);
        LimitChange { key: key(self.pick(RULES)), rule, origin }
    }
}
