//! What a random sequence does. Few names of everything, so that operations meet.

use crate::conformance::snapshot::Names;
use crate::conformance::world::{done, json, key};
use crate::verbs::*;
use orchestrator_core::order::Priority;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{
    ErrorClass, Failure, JobId, Key, LimitRule, Limits, Millis, NewJob, Outcome, Rate, RetryPolicy, TaskSpec,
    Timestamp, WorkerId,
};
use std::sync::Arc;

const QUEUES: [&str; 2] = ["q1", "q2"];
const HANDLERS: [&str; 2] = ["h1", "h2"];
const TENANTS: [&str; 3] = ["t1", "t2", "t3"];
const KEYS: [&str; 3] = ["k1", "k2", "k3"];
const LIMITS: [&str; 4] = ["host:a", "host:b", "res:x", "res:y"];
const RULES: [&str; 5] = ["host:*", "host:a", "res:*", "res:x", "free:z"];
/// The first two say the same.
const PAYLOADS: [&str; 3] = [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#, "3"];
const CLASSES: [ErrorClass; 4] =
    [ErrorClass::Network, ErrorClass::Transient, ErrorClass::Validation, ErrorClass::Permanent];

/// One operation, with jobs by number.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Submit(Vec<NewJob>),
    Lease(LeaseAsk),
    Extend(Vec<Held>, Millis),
    Settle(Vec<Settlement>),
    Expired(SweepAsk),
    Control(Vec<Command>),
    SetLimits(Vec<LimitChange>),
    Advance(Millis),
    Reopen,
}

pub(super) struct Generator {
    rng: fastrand::Rng,
    /// Whether jobs have limits. Without any the order between tenants is exact, and is compared.
    limited: bool,
    /// Whether the store can be reopened.
    keeps: bool,
    /// Every attempt that was ever granted; old ones serve as stale writers.
    granted: Vec<Held>,
}

impl Generator {
    pub fn new(seed: u64, keeps: bool) -> Generator {
        let mut rng = fastrand::Rng::with_seed(seed);
        let limited = rng.u8(0..3) > 0;
        Generator { rng, limited, keeps, granted: vec![] }
    }

    /// Remembers granted attempts.
    pub fn note(&mut self, granted: Vec<Held>) {
        self.granted.extend(granted);
    }

    pub fn next(&mut self, now: Timestamp, jobs: usize) -> Op {
        match self.rng.u8(0..100) {
            0..25 => Op::Submit(self.some(|g| g.job(now))),
            25..50 => Op::Lease(self.ask()),
            50..68 => Op::Settle(self.attempts().into_iter().map(|held| self.end(held)).collect()),
            68..72 => Op::Extend(self.attempts(), self.span()),
            72..78 => Op::Expired(SweepAsk { limit: self.rng.u32(1..=3), jitter: self.rng.f64() }),
            78..84 => Op::Control(self.some(|g| g.command(jobs))),
            84..88 => Op::SetLimits(self.some(Generator::rule)),
            88..90 if self.keeps => Op::Reopen,
            _ => Op::Advance(self.span()),
        }
    }

    /// A job by number; sometimes one that does not exist.
    pub fn any_job(&mut self, jobs: usize) -> JobId {
        Names::numbered(self.rng.usize(1..=jobs + 1))
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
        Millis(self.pick([1, 40, 500, 1000, 5000, 31_000, 61_000, 300_000]))
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
        let mut names = |all: [&'static str; 2]| match self.rng.u8(0..4) {
            0 => vec![Arc::from(all[0])],
            1 => vec![Arc::from(all[1])],
            _ => all.map(Arc::from).to_vec(),
        };
        let (queues, handlers) = (names(QUEUES), names(HANDLERS));
        LeaseAsk {
            worker: WorkerId::new(self.pick(["w1", "w2"])),
            queues,
            handlers,
            slots: self.pick([1, 2, 3, 20]),
            ttl: self.pick([Millis::secs(2), Millis::secs(30), Millis::mins(10)]),
            hold: Millis(0),
        }
    }

    /// Attempts to write with: mostly recent ones, also old ones, sometimes one that never was.
    fn attempts(&mut self) -> Vec<Held> {
        if self.granted.is_empty() {
            return vec![];
        }
        let count = self.granted.len();
        self.some(|g| {
            let from = if g.one_in(4) { 0 } else { count.saturating_sub(6) };
            let held = g.granted[g.rng.usize(from..count)];
            if g.one_in(20) { Held { attempt: held.attempt + 1, ..held } } else { held }
        })
    }

    fn end(&mut self, held: Held) -> Settlement {
        let outcome = match self.rng.u8(0..12) {
            0..4 => done(),
            4 => Outcome::Skipped(json("\"nothing to do\"")),
            5..9 => {
                let failure = Failure::new(self.pick(CLASSES), "it broke");
                Outcome::Failed(if self.one_in(4) { failure.retry_after(self.span()) } else { failure })
            }
            9 => Outcome::Released,
            _ => {
                let delay = if self.one_in(2) { Millis(0) } else { self.span() };
                Outcome::Continue(Leg { checkpoint: json("{\"leg\":2}"), limits: self.limits(), delay })
            }
        };
        Settlement { held, outcome, jitter: self.rng.f64() }
    }

    fn command(&mut self, jobs: usize) -> Command {
        let id = self.any_job(jobs);
        if self.one_in(3) { Command::Cancel(id) } else { Command::Retry(id) }
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
