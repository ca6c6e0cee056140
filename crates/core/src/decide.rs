//! The one place where the end of an attempt becomes the next state of its task.
//!
//! Stores call [`decide`] inside their transaction, after the fence (task and attempt number) held;
//! they compare and write, the rules are here.

use crate::outcome::Outcome;
use crate::planted::{Bug, planted};
use crate::spec::TaskSpec;
use crate::state::TaskState;
use crate::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What has happened to a task so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Counters {
    /// The number of the latest attempt. It only rises, and it fences: a write that carries another
    /// number changes nothing.
    pub attempt: u32,
    /// Attempts that ended in an error or a timeout.
    pub failures: u32,
    /// Attempts whose worker vanished.
    pub crashes: u32,
}

/// Why a task stands in the dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// The error will not pass.
    Final,
    /// Every retry was used.
    Exhausted,
    /// Its workers vanish: it may be what kills them.
    Poison,
}

impl DeadReason {
    /// The word for the reason in every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeadReason::Final => "final",
            DeadReason::Exhausted => "exhausted",
            DeadReason::Poison => "poison",
        }
    }

    /// The reason that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        [DeadReason::Final, DeadReason::Exhausted, DeadReason::Poison]
            .into_iter()
            .find(|r| r.as_str() == word)
    }
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a task goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To its end; a failed one with the reason for the dead letters.
    End(TaskState, Option<DeadReason>),
    /// Back into line, at the place that it had.
    Requeue,
    /// Out of the line until a moment.
    Wait(Timestamp),
}

/// What to write after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Where the task goes.
    pub next: Next,
    /// Its counters from now on.
    pub counters: Counters,
}

impl Decision {
    /// The state in which the task is after this decision.
    pub fn state(&self) -> TaskState {
        match self.next {
            Next::End(state, _) => state,
            Next::Requeue => TaskState::Queued,
            Next::Wait(_) => waiting_state(&self.counters),
        }
    }
}

/// The state of a task that waits for a moment: after a failure it is retrying, else just queued.
pub fn waiting_state(counters: &Counters) -> TaskState {
    if counters.failures > 0 { TaskState::Retrying } else { TaskState::Queued }
}

/// Decides what becomes of a task whose attempt had this outcome. `jitter` is in `[0, 1)`.
pub fn decide(
    spec: &TaskSpec,
    counters: Counters,
    outcome: &Outcome,
    now: Timestamp,
    jitter: f64,
) -> Decision {
    let keep = |next| Decision { next, counters };
    match outcome {
        Outcome::Completed(_) => keep(Next::End(TaskState::Completed, None)),
        Outcome::Skipped(_) => keep(Next::End(TaskState::Skipped, None)),
        Outcome::Released => keep(Next::Requeue),
        Outcome::Continue(leg) if leg.delay == Millis(0) => keep(Next::Requeue),
        Outcome::Continue(leg) => keep(Next::Wait(now + leg.delay)),
        Outcome::Failed(failure) => {
            let counters = Counters { failures: counters.failures + 1, ..counters };
            let dead = |reason| Decision { next: Next::End(TaskState::Failed, Some(reason)), counters };
            if !failure.class.is_retryable() {
                dead(DeadReason::Final)
            } else if counters.failures > spec.retry.max_retries && !planted(Bug::RetryForEver) {
                dead(DeadReason::Exhausted)
            } else {
                let wait = spec.retry.delay(counters.failures, jitter, failure.retry_after);
                Decision { next: Next::Wait(now + wait), counters }
            }
        }
        Outcome::Lost => {
            let crash = u32::from(!planted(Bug::UncountedCrash));
            let counters = Counters { crashes: counters.crashes + crash, ..counters };
            let next = if counters.crashes >= spec.max_crashes.max(1) {
                Next::End(TaskState::Failed, Some(DeadReason::Poison))
            } else {
                Next::Requeue
            };
            Decision { next, counters }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::limit::Limits;
    use crate::outcome::{ErrorClass, Failure, Leg};
    use crate::retry::RetryPolicy;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn run(spec: &TaskSpec, counters: Counters, outcome: Outcome) -> Decision {
        decide(spec, counters, &outcome, NOW, 0.0)
    }

    #[test]
    fn three_retries_mean_four_attempts() {
        let spec = TaskSpec::new("x").with_retry(RetryPolicy::with_retries(3));
        let mut counters = Counters::default();
        let mut attempts = 0;
        loop {
            attempts += 1;
            counters.attempt += 1;
            let decision = run(&spec, counters, Outcome::Failed(Failure::transient("no")));
            counters = decision.counters;
            if let Next::End(state, reason) = decision.next {
                assert_eq!((state, reason), (TaskState::Failed, Some(DeadReason::Exhausted)));
                break;
            }
            assert_eq!(decision.state(), TaskState::Retrying);
        }
        assert_eq!(attempts, 4);
    }

    #[test]
    fn a_final_error_is_not_retried() {
        let failure = Failure::new(ErrorClass::NotFound, "gone");
        let decision = run(&TaskSpec::new("x"), Counters::default(), Outcome::Failed(failure));
        assert_eq!(decision.next, Next::End(TaskState::Failed, Some(DeadReason::Final)));
    }

    #[test]
    fn a_release_and_a_leg_cost_nothing() {
        let counters = Counters { attempt: 7, failures: 2, crashes: 1 };
        let leg = Leg { checkpoint: Json::null(), limits: Limits::none(), delay: Millis(0) };
        for outcome in [Outcome::Released, Outcome::Continue(leg.clone())] {
            let decision = run(&TaskSpec::new("x"), counters, outcome);
            assert_eq!(decision, Decision { next: Next::Requeue, counters });
        }
        let later = Leg { delay: Millis(50), ..leg };
        let decision = run(&TaskSpec::new("x"), Counters::default(), Outcome::Continue(later));
        assert_eq!(decision.next, Next::Wait(NOW + Millis(50)));
        assert_eq!(decision.state(), TaskState::Queued);
    }

    #[test]
    fn crashes_have_their_own_cap() {
        let spec = TaskSpec { max_crashes: 2, ..TaskSpec::new("x") };
        let first = run(&spec, Counters { attempt: 1, ..Counters::default() }, Outcome::Lost);
        assert_eq!(first.next, Next::Requeue);
        assert_eq!((first.counters.crashes, first.counters.failures), (1, 0));
        let second = run(&spec, first.counters, Outcome::Lost);
        assert_eq!(second.next, Next::End(TaskState::Failed, Some(DeadReason::Poison)));
    }

    #[test]
    fn retry_after_is_kept() {
        let failure = Failure::new(ErrorClass::RateLimited, "slow down").retry_after(Millis::mins(10));
        let decision = run(&TaskSpec::new("x"), Counters::default(), Outcome::Failed(failure));
        assert_eq!(decision.next, Next::Wait(NOW + Millis::mins(10)));
    }

    fn any_outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Completed(Json::null())),
            Just(Outcome::Skipped(Json::null())),
            Just(Outcome::Released),
            Just(Outcome::Lost),
            (0u64..2).prop_map(|n| Outcome::Continue(Leg {
                checkpoint: Json::null(),
                limits: Limits::none(),
                delay: Millis(n)
            })),
            prop_oneof![Just(ErrorClass::Timeout), Just(ErrorClass::Validation), Just(ErrorClass::Network)]
                .prop_map(|class| Outcome::Failed(Failure::new(class, "e"))),
        ]
    }

    proptest! {
        /// Invariant 3: whatever the outcome, the move is in the table and no counter falls.
        #[test]
        fn every_decision_is_a_legal_move(
            outcome in any_outcome(), failures in 0u32..6, crashes in 0u32..4, attempt in 1u32..20, jitter in 0.0f64..1.0,
        ) {
            let counters = Counters { attempt, failures, crashes };
            let decision = decide(&TaskSpec::new("x"), counters, &outcome, NOW, jitter);
            // A task that waits out the delay of a leg after an earlier failure shows as retrying.
            prop_assert!(TaskState::Running.can_become(decision.state()), "{:?}", decision);
            prop_assert_eq!(decision.counters.attempt, attempt);
            prop_assert!(decision.counters.failures >= failures && decision.counters.crashes >= crashes);
        }
    }
}
