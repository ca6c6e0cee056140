//! The process that is killed.

use super::{CAP, HANDLER, Told, ask, payload};
use crate::conformance::world::{done, failed, json, key, limits};
use crate::contract::Store;
use crate::verbs::*;
use orchestrator_core::flow::def::BackoffDef;
use orchestrator_core::flow::{Flow, Plan, Task};
use orchestrator_core::outcome::Leg;
use orchestrator_core::{
    ErrorClass, Key, LimitRule, Millis, NewJob, Outcome, RetryPolicy, TaskSpec, WorkerId,
};
use std::sync::{Arc, Mutex};

/// So few that they are submitted again and again.
const KEYS: u32 = 1500;
/// So short that the dead one's leases have run out soon.
const TTL: Millis = Millis(40);

/// Submits, leases, settles and sweeps from several hands at once, and tells each answer when it
/// has come. Never returns: whoever calls it is killed.
pub async fn work_until_killed(store: &dyn Store, seed: u64, tell: &mut (dyn FnMut(String) + Send)) {
    let rule = Some(LimitRule::at_most(CAP.1));
    let cap = LimitChange { key: key(CAP.0), rule, origin: RuleOrigin::Config };
    store.set_limits(vec![cap]).await.expect("set_limits");
    let tell = Mutex::new(tell);
    let hand = |n: u64| {
        let rng = fastrand::Rng::with_seed(seed.wrapping_mul(4) + n);
        Hand { store, tell: &tell, rng, held: vec![], flows: [chain(), fan_out()].map(Arc::new) }.work()
    };
    tokio::join!(hand(0), hand(1), hand(2), hand(3));
}

/// One of the hands that work at once.
struct Hand<'a, 'b> {
    store: &'a dyn Store,
    tell: &'a Mutex<&'b mut (dyn FnMut(String) + Send)>,
    rng: fastrand::Rng,
    held: Vec<Held>,
    flows: [Arc<Plan>; 2],
}

impl Hand<'_, '_> {
    async fn work(mut self) {
        loop {
            match self.rng.u8(0..10) {
                0..4 => self.submit().await,
                4..6 => self.lease().await,
                6..9 => self.settle().await,
                _ => self.sweep().await,
            }
            // Some stores answer without ever waiting; the other hands want their turn.
            tokio::task::yield_now().await;
        }
    }

    fn tell(&self, told: Told) {
        (self.tell.lock().expect("telling does not panic"))(told.to_string());
    }

    async fn submit(&mut self) {
        let numbers: Vec<u32> = (0..self.rng.usize(1..=4)).map(|_| self.rng.u32(0..KEYS)).collect();
        let jobs = numbers.iter().map(|n| self.job(*n)).collect();
        let answers = self.store.submit(jobs).await.expect("submit");
        for (n, answer) in numbers.into_iter().zip(answers) {
            assert!(
                !matches!(answer, Submitted::Conflict { .. }),
                "{n} always has the same payload: {answer:?}"
            );
            self.tell(Told::Submitted(n, answer.id()));
        }
    }

    fn job(&mut self, n: u32) -> NewJob {
        let job = match n % 3 {
            0 => NewJob::with_spec(Arc::new(spec())).limits(limits(&[CAP.0])),
            1 => NewJob::with_spec(Arc::new(spec())),
            _ => NewJob::of_flow(self.flows[(n / 3 % 2) as usize].clone()),
        };
        let mut job = job.key(Key::new(n.to_string())).payload(payload(n));
        if self.rng.u8(0..5) == 0 {
            job = job.run_at(self.store.now() + Millis(3));
        }
        job
    }

    async fn lease(&mut self) {
        let ask = LeaseAsk { worker: WorkerId::new("killed"), ttl: TTL, ..ask(self.rng.u32(1..=5)) };
        for leased in self.store.lease(ask).await.expect("lease").tasks {
            self.tell(Told::Leased(leased.held()));
            self.held.push(leased.held());
        }
    }

    async fn settle(&mut self) {
        let count = self.rng.usize(0..=self.held.len());
        let held: Vec<Held> = self.held.drain(..count).collect();
        let batch = held.iter().map(|held| Settlement { held: *held, outcome: self.outcome(), jitter: 0.5 });
        let batch = batch.collect();
        for (held, answer) in held.iter().zip(self.store.settle(batch).await.expect("settle")) {
            self.tell(answer.state().map_or(Told::Stale(*held), |state| Told::Settled(*held, state)));
        }
    }

    fn outcome(&mut self) -> Outcome {
        let delay = Millis(self.rng.u64(0..3));
        match self.rng.u8(0..12) {
            0..5 => done(),
            5 => Outcome::Skipped(json("1")),
            6 => failed(ErrorClass::Permanent),
            7..9 => failed(ErrorClass::Transient),
            9 => Outcome::Released,
            _ => Outcome::Continue(Leg { checkpoint: json("[1]"), limits: limits(&[CAP.0]), delay }),
        }
    }

    async fn sweep(&mut self) {
        let ask = SweepAsk { limit: 10, jitter: self.rng.f64() };
        for (held, answer) in self.store.expired(ask).await.expect("expired").ended {
            let state = answer.state().expect("a sweep ends what is held");
            self.tell(Told::Settled(held, state));
        }
    }
}

fn spec() -> TaskSpec {
    let retry = RetryPolicy { max_retries: 2, initial: Millis(1), max: Millis(4), ..RetryPolicy::default() };
    TaskSpec { max_crashes: u32::MAX, ..TaskSpec::new(HANDLER).with_retry(retry) }
}

/// A task that is run as those of queues are.
fn task(name: &str) -> Task {
    let backoff = BackoffDef { initial: Some(Millis(1)), max: Some(Millis(4)), ..BackoffDef::default() };
    Task::new(name, HANDLER).retries(2).backoff(backoff).max_crashes(u32::MAX)
}

/// Three tasks, one after the other.
fn chain() -> Plan {
    let second =
        task("second").needs(["first"]).with(serde_json::json!({"after": "{{ tasks.first.output }}"}));
    let flow = Flow::new("chain").task(task("first")).task(second).task(task("third").needs(["second"]));
    flow.plan().expect("a sound flow")
}

/// Four items, two at once, and one task that joins them, under the limit.
fn fan_out() -> Plan {
    let items = task("items").for_each(serde_json::json!([1, 2, 3, 4])).concurrency(2);
    let (kind, name) = CAP.0.split_once(':').expect("a limit key");
    let join = task("join").needs(["items"]).limit(kind, name);
    Flow::new("fan-out").task(items).task(join).plan().expect("a sound flow")
}
