//! Which tests must catch which bug.

use orchestrator_core::planted::Bug;
use std::fmt;

/// Where in a package a test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Beside the code.
    Lib,
    /// In the tests of this name.
    Tests(&'static str),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Lib => f.write_str("lib"),
            Target::Tests(name) => f.write_str(name),
        }
    }
}

/// One test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    /// Its package.
    pub package: &'static str,
    /// Where it is.
    pub target: Target,
    /// Its full name there.
    pub name: &'static str,
    /// How much it is to do.
    pub env: &'static [(&'static str, &'static str)],
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.package, self.target, self.name)?;
        self.env.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

const fn test(package: &'static str, target: Target, name: &'static str) -> Test {
    Test { package, target, name, env: &[] }
}

/// A unit test of the core.
const fn core(name: &'static str) -> Test {
    test("orchestrator-core", Target::Lib, name)
}

/// A test of flows in the core.
const fn flows(name: &'static str) -> Test {
    test("orchestrator-core", Target::Tests("flows"), name)
}

/// A test of engine and pool on the model store.
const fn engine(name: &'static str) -> Test {
    test("orchestrator-engine", Target::Tests("it"), name)
}

/// A test of the embedded store.
const fn sqlite(name: &'static str) -> Test {
    test("orchestrator-store-sqlite", Target::Tests("it"), name)
}

/// A unit test of the pool.
const fn worker(name: &'static str) -> Test {
    test("orchestrator-worker", Target::Lib, name)
}

/// The simulator: engine, pool and core on the model store, under faults.
const SIM: Test = Test { env: &[("SIM_SEEDS", "300")], ..test("sim", Target::Tests("sim"), "seeds_hold") };

/// What a disk holds after a power cut, rebuilt from the system calls of a real process.
const POWER_CUTS: Test = Test {
    env: &[("POWER_CUTS", "20")],
    ..test("orchestrator-store-sqlite", Target::Tests("powercut"), "nothing_acked_is_lost")
};

/// The examples of the conformance suite, on the model: what they say of the core they say of every store.
const MODEL_EXAMPLES: Test = test("orchestrator-store", Target::Tests("model"), "examples");

/// The examples of the conformance suite, on the embedded store.
const EXAMPLES: Test = test("orchestrator-store-sqlite", Target::Tests("conformance"), "examples");

/// The embedded store beside the model.
const RANDOM: Test = Test {
    env: &[("RANDOM_SEQUENCES", "150")],
    ..test("orchestrator-store-sqlite", Target::Tests("conformance"), "random_sequences")
};

/// The bugs, in the order of [`Bug::ALL`], each with the tests that must catch it.
pub const CATCHERS: &[(Bug, &[Test])] = &[
    (Bug::ForgetJoinCounter, &[flows("joins::a_diamond_joins_once_when_both_sides_have_ended"), SIM]),
    (Bug::SkipJoinRule, &[flows("joins::each_rule_holds_for_its_ends"), SIM]),
    (Bug::UncountedItem, &[flows("each::a_failed_item_fails_the_whole_when_all_have_ended"), SIM]),
    (Bug::RetryForEver, &[MODEL_EXAMPLES, SIM]),
    (Bug::RetryTooEarly, &[core("decide::tests::retry_after_is_kept"), SIM]),
    (Bug::UncountedCrash, &[core("decide::tests::crashes_have_their_own_cap"), SIM]),
    (Bug::HardOptional, &[flows("joins::without_an_optional_task_the_flow_goes_on"), SIM]),
    (Bug::RecoverOnlyHeads, &[flows("recover::handlers_of_a_failure_are_reset_with_it"), SIM]),
    (Bug::ReuseAttemptAfterRecovery, &[flows("recover::attempts_are_never_numbered_twice"), SIM]),
    (Bug::PauseRunsTheClock, &[MODEL_EXAMPLES, SIM]),
    (Bug::BucketNeverEmpties, &[core("rate::tests::a_burst_then_a_steady_pace"), SIM]),
    (Bug::DropFence, &[EXAMPLES, RANDOM]),
    (Bug::BeatForAnother, &[EXAMPLES, RANDOM]),
    (Bug::ReuseAttempt, &[EXAMPLES, RANDOM]),
    (Bug::LeakSlot, &[EXAMPLES, RANDOM]),
    (Bug::SkipSweepPage, &[EXAMPLES, RANDOM]),
    (Bug::CancelLeavesRetry, &[EXAMPLES, RANDOM]),
    (Bug::ResumeForgetsHeld, &[EXAMPLES, RANDOM]),
    (Bug::LoseDelayedOnOpen, &[EXAMPLES, RANDOM]),
    (Bug::ForgetMovedKeys, &[sqlite("keys::keys_are_known_before_while_and_after_they_are_moved")]),
    (Bug::WatermarkTooHigh, &[sqlite("keys::keys_are_known_before_while_and_after_they_are_moved")]),
    (Bug::IgnoreOtherProcesses, &[sqlite("processes::a_key_has_one_job_whoever_submits_it")]),
    (Bug::KeepCacheAfterRollback, &[sqlite("faults::what_was_rolled_back_is_not_remembered")]),
    (Bug::LoseOrphanedLease, &[sqlite("held::an_ask_that_is_dropped_leaves_no_lease")]),
    (Bug::AckBeforeCommit, &[POWER_CUTS]),
    (Bug::AckFailedCommit, &[sqlite("disk::a_full_disk_is_an_answer_and_never_a_false_ack")]),
    (Bug::CommitWithoutSync, &[POWER_CUTS]),
    (Bug::SplitCommit, &[POWER_CUTS]),
    (Bug::DropOutcomeOnError, &[engine("faults::work_goes_on_when_the_source_heals"), SIM]),
    (Bug::BeatForgetsOne, &[engine("leases::heartbeats_keep_a_long_task_past_its_ttl"), SIM]),
    (Bug::BeatEndsAtError, &[engine("leases::a_heartbeat_that_fails_is_repeated_soon"), SIM]),
    (Bug::LostLeaseKeepsSlot, &[engine("stopping::a_cancelled_task_makes_room_for_the_next"), SIM]),
    (
        Bug::ShutdownKeepsBuffer,
        &[engine("shutdown::waiting_tasks_go_back_at_once_while_others_still_run"), SIM],
    ),
    (Bug::LoseLateGrant, &[engine("shutdown::a_lease_that_is_granted_while_the_pool_stops_goes_back")]),
    (Bug::IgnoreTimeout, &[engine("running::an_attempt_that_takes_too_long_is_cancelled_and_retried"), SIM]),
    (
        Bug::ShutdownCounts,
        &[worker("pool::runner::tests::a_shutdown_costs_no_attempt_but_keeps_what_got_done"), SIM],
    ),
    (Bug::SweeperEndsAtError, &[SIM]),
    (Bug::SweepOnePage, &[engine("waiting::sweeps_go_page_by_page"), SIM]),
    (Bug::NeverLookAgain, &[engine("waiting::a_waiter_hears_of_a_cancel"), SIM]),
    (Bug::AckFailedSubmit, &[SIM]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_catcher() {
        let listed: Vec<Bug> = CATCHERS.iter().map(|(bug, _)| *bug).collect();
        assert_eq!(listed, Bug::ALL, "in the same order, each once");
        for (bug, tests) in CATCHERS {
            assert!(!tests.is_empty(), "{}", bug.name());
        }
    }
}
