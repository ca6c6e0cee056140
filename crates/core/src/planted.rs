//! Bugs that can be planted, to show that the tests would find them.
//!
//! Each stands where the guard stands that it takes away, as `if planted(Bug::...)`. Without the feature
//! `planted-bugs` the question has the answer no at compile time, and nothing of a bug is left in the program.
//! With it, a test executable that is started with [`VARIABLE`] set to the name of a bug has that bug from its
//! start to its end; the program `planted` starts them so, and demands that the named test fails.
//!
//! For tests only: a release build with the feature does not compile.

#[cfg(all(feature = "planted-bugs", not(debug_assertions)))]
compile_error!("planted bugs are for tests: never in a release build");

/// The environment variable that names the bug to plant.
pub const VARIABLE: &str = "ORCHESTRATOR_PLANTED_BUG";

macro_rules! bugs {
    ($($bug:ident = $name:literal: $breaks:literal,)*) => {
        /// A guard to take away.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug { $(#[doc = $breaks] $bug,)* }

        impl Bug {
            /// All of them, by layer.
            pub const ALL: &'static [Bug] = &[$(Bug::$bug),*];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Bug::$bug => $name,)* }
            }

            /// What it breaks, in one sentence.
            pub const fn breaks(self) -> &'static str {
                match self { $(Bug::$bug => $breaks,)* }
            }
        }
    };
}

bugs! {
    // The rules: `core`.
    ForgetJoinCounter = "forget-join-counter": "A join fires as soon as one of its needs is over.",
    SkipJoinRule = "skip-join-rule": "A task starts although what it needs has failed.",
    UncountedItem = "uncounted-item": "The end of a failed item is not counted, so its list never ends.",
    RetryForEver = "retry-for-ever": "Retries never run out.",
    RetryTooEarly = "retry-too-early": "A retry does not wait for the moment that the other side asked for.",
    UncountedCrash = "uncounted-crash": "A vanished worker is not counted, so a poison is never parked.",
    HardOptional = "hard-optional": "The failure of an optional task fails its job.",
    RecoverOnlyHeads = "recover-only-heads": "A recovery does not reset what comes after the failed task.",
    ReuseAttemptAfterRecovery = "reuse-attempt-after-recovery": "After a recovery attempts are numbered from one again.",
    PauseRunsTheClock = "pause-runs-the-clock": "A pause does not move the job's deadline.",
    BucketNeverEmpties = "bucket-never-empties": "A start takes nothing from its rate.",

    // The embedded store: `store-sqlite`.
    DropFence = "drop-fence": "An outcome is taken from an attempt that lost its lease to a later one.",
    BeatForAnother = "beat-for-another": "The heartbeat of an old attempt prolongs the lease of a later one.",
    ReuseAttempt = "reuse-attempt": "A task that was given back gets the same attempt number again.",
    LeakSlot = "leak-slot": "The end of a lease does not free its slots.",
    SkipSweepPage = "skip-sweep-page": "A sweep passes over the lease that is overdue the longest.",
    CancelLeavesRetry = "cancel-leaves-retry": "The retry of a cancelled job stays, and runs when it falls due.",
    ResumeForgetsHeld = "resume-forgets-held": "A resumed job leaves one of its tasks behind.",
    LoseDelayedOnOpen = "lose-delayed-on-open": "Tasks that wait for a moment are gone when the file is opened again.",
    ForgetMovedKeys = "forget-moved-keys": "A key that was moved into the index is taken for a new one.",
    WatermarkTooHigh = "watermark-too-high": "The index of keys claims jobs that came while it was written.",
    IgnoreOtherProcesses = "ignore-other-processes": "What other processes commit is not noticed.",
    KeepCacheAfterRollback = "keep-cache-after-rollback": "What a transaction remembered outlives its rollback.",
    LoseOrphanedLease = "lose-orphaned-lease": "A lease whose asker has gone is not given back.",
    AckBeforeCommit = "ack-before-commit": "Callers are answered before the commit.",
    AckFailedCommit = "ack-failed-commit": "Callers are answered as if a failed commit had succeeded.",
    CommitWithoutSync = "commit-without-sync": "A commit does not wait for the disk.",
    SplitCommit = "split-commit": "The end of a task and what follows from it are two commits.",

    // The pool: `worker`.
    DropOutcomeOnError = "drop-outcome-on-error": "An outcome is dropped when the source fails once.",
    BeatForgetsOne = "beat-forgets-one": "Heartbeats forget one of the attempts.",
    BeatEndsAtError = "beat-ends-at-error": "Heartbeats end for ever at the first error.",
    LostLeaseKeepsSlot = "lost-lease-keeps-slot": "An attempt whose lease was lost keeps its place in the pool.",
    ShutdownKeepsBuffer = "shutdown-keeps-buffer": "A pool that stops does not give back what waits in its buffer.",
    LoseLateGrant = "lose-late-grant": "A pool that stops drops what is granted meanwhile.",
    IgnoreTimeout = "ignore-timeout": "An attempt that takes too long is not ended.",
    ShutdownCounts = "shutdown-counts": "The error of a handler that a shutdown interrupts counts against its task.",

    // The engine: `engine`.
    SweeperEndsAtError = "sweeper-ends-at-error": "The sweeper ends for ever at its first error.",
    SweepOnePage = "sweep-one-page": "A sweep ends after its first page, whatever is left.",
    NeverLookAgain = "never-look-again": "Who waits for a job is not woken and does not look again.",
    AckFailedSubmit = "ack-failed-submit": "A submit that the store did not take is answered well.",
}

/// Whether this program has the bug.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub const fn planted(_bug: Bug) -> bool {
    false
}

/// Whether this process was started with the bug.
///
/// # Panics
/// When [`VARIABLE`] names no bug: a typing error must not pass for a bug that was not found.
#[cfg(feature = "planted-bugs")]
pub fn planted(bug: Bug) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<Bug>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var(VARIABLE).ok()?;
        let found = Bug::ALL.iter().copied().find(|bug| bug.name() == name);
        Some(found.unwrap_or_else(|| {
            let names: Vec<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
            panic!("{VARIABLE}={name} names no bug, only: {}", names.join(", "))
        }))
    });
    *chosen == Some(bug)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn without_the_feature_or_the_variable_there_is_no_bug() {
        if cfg!(not(feature = "planted-bugs")) || std::env::var_os(VARIABLE).is_none() {
            assert!(Bug::ALL.iter().all(|bug| !planted(*bug)));
        }
    }

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        assert_eq!(names.len(), Bug::ALL.len());
        for name in names {
            assert!(name.bytes().all(|c| c.is_ascii_lowercase() || c == b'-'), "{name}");
        }
    }
}
