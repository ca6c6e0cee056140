//! The handlers of a run. What an attempt does follows from the seed, the job's number, the task and the attempt.

use crate::chance::{Chance, stream};
use crate::process::Process;
use crate::script::Habits;
use crate::world::World;
use async_trait::async_trait;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{ErrorClass, Failure, Json, Limits, Millis, Outcome};
use orchestrator_history::Run;
use orchestrator_store::Leased;
use orchestrator_worker::{Handler, Work};
use serde_json::json;
use std::future::pending;
use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The largest output that the pools of a run hand in.
pub const MAX_OUTPUT: usize = 2_000;

/// The error of a handler whose token fired. No store ever hears of it: the token says why it ended.
pub const INTERRUPTED: &str = "interrupted";

/// From this attempt on everything goes well, so that every run comes to an end.
const LAST_TROUBLE: u32 = 12;

/// Runs every task of a process.
pub struct SimHandler {
    world: Arc<World>,
    process: Arc<Process>,
}

/// What an attempt does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Habit {
    Complete,
    Fail,
    Panic,
    Hang,
    Deaf,
    Leg,
    Skip,
    GiveBack,
    TooLarge,
    Long,
}

impl Habit {
    /// What happens in this attempt.
    fn of(habits: &Habits, leased: &Leased, rng: &mut fastrand::Rng) -> Habit {
        let habits = [
            (habits.fail, Habit::Fail),
            (habits.panic, Habit::Panic),
            (habits.hang, Habit::Hang),
            (habits.deaf, Habit::Deaf),
            (habits.leg, Habit::Leg),
            (habits.skip, Habit::Skip),
            (habits.give_back, Habit::GiveBack),
            (habits.too_large, Habit::TooLarge),
            (habits.long, Habit::Long),
        ];
        let mut left = rng.u16(..1000);
        let mut habit = Habit::Complete;
        for (share, what) in habits {
            if left < share {
                habit = what;
                break;
            }
            left -= share;
        }
        let endless = matches!(habit, Habit::Hang | Habit::Deaf) && leased.spec.timeout.is_none();
        if leased.counters.attempt >= LAST_TROUBLE || endless { Habit::Complete } else { habit }
    }

    fn word(self) -> &'static str {
        match self {
            Habit::Complete => "completed",
            Habit::Fail => "failed",
            Habit::Panic => "panicked",
            Habit::Hang => "hung",
            Habit::Deaf => "deaf",
            Habit::Leg => "leg",
            Habit::Skip => "skipped",
            Habit::GiveBack => "gave back",
            Habit::TooLarge => "too large",
            Habit::Long => "long",
        }
    }
}

/// Tells the world when a handler is dropped without an answer.
struct AtWork<'a> {
    world: &'a World,
    run: Run,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.world.handler_dropped(self.run);
    }
}

impl SimHandler {
    /// The handlers of a process.
    pub fn new(world: Arc<World>, process: Arc<Process>) -> Self {
        SimHandler { world, process }
    }

    async fn pass(&self, span: u64) {
        sleep(Duration::from_millis(span)).await;
        self.process.gate().await;
    }

    fn chance(&self, leased: &Leased) -> fastrand::Rng {
        let mut what = crate::chance::Fnv::default();
        what.write(leased.payload.as_str().as_bytes());
        what.write(leased.name.as_bytes());
        let attempt = u64::from(leased.counters.attempt);
        stream(self.world.script.seed, "handler", &[what.finish(), attempt])
    }
}

#[async_trait]
impl Handler for SimHandler {
    async fn run(&self, work: Work) -> Outcome {
        self.process.gate().await;
        let leased = &work.leased;
        let mut rng = self.chance(leased);
        let habit = Habit::of(&self.world.script.handlers, leased, &mut rng);
        let run = self.world.handler_starts(self.process.name, leased);
        let _at_work = AtWork { world: &self.world, run };
        self.world.count("handlers", habit.word());
        let ttl = self.world.script.settings.lease_ttl;
        match habit {
            Habit::Long => self.pass(rng.u64(ttl..ttl * 3)).await,
            Habit::Hang => {
                work.cancelled.cancelled().await;
                // Some take a moment to clean up.
                self.pass(rng.u64(..200)).await;
            }
            Habit::Deaf => pending().await,
            _ if rng.one_of_thousand(300) => self.process.gate().await,
            _ => self.pass(rng.u64(..=self.world.script.handlers.span)).await,
        }
        if habit == Habit::Panic {
            self.world.handler_ends(run, None);
            // Past the panic hook: this one is meant to be.
            std::panic::resume_unwind(Box::new("a panic of the script"));
        }
        let outcome = outcome(habit, leased, &mut rng);
        let output = match &outcome {
            Outcome::Completed(output) if output.size() <= MAX_OUTPUT => Some(output.clone()),
            _ => None,
        };
        self.world.handler_ends(run, output);
        outcome
    }
}

fn outcome(habit: Habit, leased: &Leased, rng: &mut fastrand::Rng) -> Outcome {
    match habit {
        Habit::Fail => {
            let class = ErrorClass::ALL[rng.usize(..ErrorClass::ALL.len())];
            let failure = Failure::new(class, format!("an error of class {class}"));
            Outcome::Failed(if rng.one_of_thousand(200) {
                failure.retry_after(Millis(rng.u64(..15_000)))
            } else {
                failure
            })
        }
        Habit::Leg => {
            let keys = ["host:a", "host:b", "api:r"];
            let limits = keys.iter().filter(|_| rng.one_of_thousand(300)).filter_map(|key| key.parse().ok());
            Outcome::Continue(Leg {
                checkpoint: json!({ "after": leased.counters.attempt }).into(),
                limits: Limits::new(limits).unwrap_or_default(),
                delay: Millis(if rng.bool() { 0 } else { rng.u64(..4_000) }),
            })
        }
        Habit::Skip => Outcome::Skipped(Json::null()),
        Habit::GiveBack => Outcome::Released,
        Habit::TooLarge => Outcome::Completed(json!("x".repeat(MAX_OUTPUT)).into()),
        Habit::Hang if rng.bool() => Outcome::Failed(Failure::permanent(INTERRUPTED)),
        Habit::Complete | Habit::Long | Habit::Hang | Habit::Deaf | Habit::Panic => Outcome::Completed(
            json!({
                "job": leased.task.job.free_bits() as u64,
                "task": leased.name,
                "attempt": leased.counters.attempt,
                "items": [0, 1, 2],
            })
            .into(),
        ),
    }
}
