//! A batch of N must end where N batches of one end.

use super::Fixture;
use super::flows::{flow, plan, recover, task};
use super::names::Names;
use super::snapshot::Snapshot;
use super::world::*;
use crate::clock::Clock;
use crate::verbs::*;
use orchestrator_core::flow::Plan;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{ErrorClass, JobId, JobState, Key, LimitRule, Millis, NewJob, Outcome, TaskSpec};
use std::future::Future;
use std::sync::Arc;

const ROUNDS: u32 = 60;

/// One store, with the names under which the other knows its jobs.
struct Side {
    world: World,
    names: Names,
}

/// Applies the same operations to two stores, whole batches to one and batches of one to the other,
/// and compares them after each round. All work stands in one line and one tier under no limits, so
/// that nothing about the order is left to the store.
pub async fn batches_equal_singles(fixture: &dyn Fixture, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut whole = Side { world: World::new(fixture).await, names: Names::default() };
    let mut single = Side { world: World::new(fixture).await, names: Names::default() };
    let flows = [chain(), fan_out()];
    let mut held: Vec<Held> = vec![];
    for round in 0..ROUNDS {
        let op = random_op(&mut rng, &flows, whole.names.len(), &held);
        let got = whole.apply(&op, usize::MAX).await;
        let expected = single.apply(&op, 1).await;
        assert_eq!(got, expected, "answers of round {round}, seed {seed}: {op:?}");
        held.extend(got.leased);
        let (got, expected) =
            (Snapshot::of(&*whole.world.store).await, Snapshot::of(&*single.world.store).await);
        if let Err(difference) = got.same_as(&expected) {
            panic!(
                "a batch does not equal single calls in round {round}, seed {seed}, after {op:?}: {difference}"
            );
        }
    }
    assert!(held.len() > ROUNDS as usize / 4, "the rounds should lease some work");
    assert_eq!(whole.world.clock.now(), single.world.clock.now());
}

/// Three tasks, one after the other, of which the second may be missing; not for long.
fn chain() -> Arc<Plan> {
    let tasks = [task("a"), task("b").needs(["a"]).optional(), task("c").needs(["b"])];
    plan(flow(tasks).timeout(Millis::secs(90)))
}

/// A task per item, two at once, and what joins them.
fn fan_out() -> Arc<Plan> {
    let each = task("each").for_each(serde_json::json!([1, 2, 3])).concurrency(2);
    plan(flow([each, task("join").needs(["each"])]))
}

/// An operation, with jobs by number.
#[derive(Clone, Debug)]
enum Op {
    Submit(Vec<NewJob>),
    Lease(u32),
    Extend(Vec<Held>),
    Settle(Vec<Settlement>),
    Expired(u32),
    Control(Vec<Wish>),
    SetLimits(Vec<LimitChange>),
    Advance(Millis),
}

/// What an operation answered, with jobs by number.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    submitted: Vec<Submitted>,
    leased: Vec<Held>,
    beats: Vec<Beat>,
    settled: Vec<Settled>,
    swept: Vec<(Held, Settled)>,
    timed_out: Vec<JobId>,
    controlled: Vec<Controlled>,
}

fn random_op(rng: &mut fastrand::Rng, flows: &[Arc<Plan>], jobs: usize, held: &[Held]) -> Op {
    let size = rng.usize(1..=8);
    let any_held = |rng: &mut fastrand::Rng| {
        let recent = held.len().saturating_sub(12);
        (!held.is_empty()).then(|| held[rng.usize(recent..held.len())])
    };
    match rng.u8(0..10) {
        0..=1 => Op::Submit((0..size).map(|_| any_job(rng, flows, jobs)).collect()),
        2..=4 => Op::Lease(size as u32),
        5..=6 => Op::Settle((0..size).filter_map(|_| any_held(rng).map(|held| any_end(held, rng))).collect()),
        7 => match rng.u8(0..3) {
            0 => Op::Extend((0..size).filter_map(|_| any_held(rng)).collect()),
            1 => Op::Expired(size as u32),
            _ => Op::SetLimits((0..size).map(|_| any_rule(rng)).collect()),
        },
        8 => Op::Control((0..size).map(|_| any_wish(rng, jobs)).collect()),
        _ => Op::Advance(Millis(rng.u64(1..40_000))),
    }
}

fn any_job(rng: &mut fastrand::Rng, flows: &[Arc<Plan>], jobs: usize) -> NewJob {
    if rng.u8(0..3) == 0 {
        let new = NewJob::of_flow(flows[rng.usize(0..flows.len())].clone());
        return if rng.u8(0..4) == 0 { new.after(Names::numbered(rng.usize(1..=jobs + 1))) } else { new };
    }
    let spec = TaskSpec { max_crashes: 2, ..spec().with_timeout(Some(Millis::secs(45))) };
    let new = NewJob::with_spec(Arc::new(spec)).tenant(["a", "b", "c"][rng.usize(0..3)]);
    match rng.u8(0..6) {
        n @ 0..=2 => {
            new.key(Key::new(["x", "y", "z"][usize::from(n)])).payload(json(["1", "2"][rng.usize(0..2)]))
        }
        3 => new.run_at(START + Millis(rng.u64(0..600_000))),
        _ => new,
    }
}

fn any_end(held: Held, rng: &mut fastrand::Rng) -> Settlement {
    let leg = || Leg { checkpoint: json("[7]"), limits: Default::default(), delay: Millis(0) };
    let outcome = match rng.u8(0..6) {
        0 | 1 => done(),
        2 => failed(ErrorClass::Network),
        3 => failed(ErrorClass::Validation),
        4 => Outcome::Continue(leg()),
        _ => Outcome::Released,
    };
    Settlement { held, outcome, jitter: 0.0 }
}

fn any_wish(rng: &mut fastrand::Rng, jobs: usize) -> Wish {
    let expect = [None, None, Some(JobState::Running), Some(JobState::Failed)][rng.usize(0..4)];
    Wish { command: any_command(rng, jobs), expect }
}

fn any_command(rng: &mut fastrand::Rng, jobs: usize) -> Command {
    let id = Names::numbered(rng.usize(1..=jobs + 1));
    match rng.u8(0..6) {
        0 => Command::Cancel(id),
        1 | 2 => Command::Retry(id),
        3 => Command::Pause(id),
        4 => Command::Resume(id),
        _ => recover(id, None),
    }
}

fn any_rule(rng: &mut fastrand::Rng) -> LimitChange {
    LimitChange {
        key: key(["host:*", "host:a"][rng.usize(0..2)]),
        rule: rng.bool().then(|| LimitRule::at_most(rng.u32(0..5))),
        origin: [RuleOrigin::Config, RuleOrigin::Operator][rng.usize(0..2)],
    }
}

impl Side {
    /// Applies an operation in batches of at most `size`.
    async fn apply(&mut self, op: &Op, size: usize) -> Answers {
        let Side { world, names } = self;
        let store = &*world.store;
        let mut answers = Answers::default();
        match op.clone() {
            Op::Submit(jobs) => {
                let jobs = jobs.into_iter().map(|job| names.new_job(job)).collect();
                for answer in in_batches(jobs, size, |batch| store.submit(batch)).await {
                    if let Submitted::Created { id, .. } = answer {
                        names.push(id);
                    }
                    answers.submitted.push(names.submitted(answer));
                }
            }
            Op::Lease(slots) => {
                for slots in parts(slots, size) {
                    let grant = store.lease(ask(slots)).await.expect("lease");
                    answers.leased.extend(grant.tasks.iter().map(|leased| names.held(leased.held())));
                }
            }
            Op::Extend(held) => {
                let held = held.into_iter().map(|held| names.own(held)).collect();
                answers.beats = in_batches(held, size, |batch| store.extend(batch, TTL)).await;
            }
            Op::Settle(batch) => {
                let own = |s: Settlement| Settlement { held: names.own(s.held), ..s };
                let batch = batch.into_iter().map(own).collect();
                answers.settled = in_batches(batch, size, |batch| store.settle(batch)).await;
            }
            Op::Expired(limit) => {
                for limit in parts(limit, size) {
                    let swept = store.expired(SweepAsk { limit, jitter: 0.0 }).await.expect("expired");
                    let swept = names.swept(swept);
                    answers.swept.extend(swept.ended);
                    answers.timed_out.extend(swept.timed_out);
                }
            }
            Op::Control(wishes) => {
                let wishes = wishes.into_iter().map(|wish| names.wish(wish)).collect();
                let done = in_batches(wishes, size, |batch| store.control(batch)).await;
                answers.controlled = done.into_iter().map(|answer| names.controlled(answer)).collect();
            }
            Op::SetLimits(changes) => {
                for batch in changes.chunks(size.min(changes.len().max(1))) {
                    store.set_limits(batch.to_vec()).await.expect("set_limits");
                }
            }
            Op::Advance(span) => world.advance(span),
        }
        answers
    }
}

/// A number as a sum of numbers of at most `size`.
fn parts(n: u32, size: usize) -> Vec<u32> {
    if size == 1 { vec![1; n as usize] } else { vec![n] }
}

async fn in_batches<T, A, F>(all: Vec<T>, size: usize, verb: impl Fn(Vec<T>) -> F) -> Vec<A>
where
    F: Future<Output = crate::error::StoreResult<Vec<A>>>,
{
    let mut answers = vec![];
    let mut rest = all.into_iter().peekable();
    while rest.peek().is_some() {
        let batch = rest.by_ref().take(size).collect();
        answers.extend(verb(batch).await.expect("the store should carry out the verb"));
    }
    answers
}
