//! The suite finds bugs: each one planted here must be caught by the examples and by the random
//! sequences.

mod attempts;
mod broken;
mod plans;

use async_trait::async_trait;
use broken::Broken;
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::{Clock, Store};
use std::sync::Arc;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    None,
    IgnoresKeys,
    TakesAnyPayload,
    ForgetsDelays,
    DropsTheFence,
    LosesStaleRecords,
    LeavesASlotEmpty,
    HandsOutWorstFirst,
    GivesNoHint,
    AllowsOneTooMany,
    ConfigBeatsOperator,
    ExtendsTooLong,
    RetriesFinalErrors,
    LosesCheckpoints,
    SweepsOnlyOnce,
    SweepsTooMany,
    AcksCancelWithoutDoing,
    RetriesWithoutAsking,
    HidesDeadLetters,
    SkipsTheFirstOfAPage,
    LosesEvents,
    ForgetsOnReopen,
    ServesPausedQueues,
    IgnoresExpectations,
    LosesDocuments,
    TakesAnyDocument,
    ForgetsMeta,
    MiscountsDays,
    // Of flows.
    ForgetsANeed,
    ForgetsAJoin,
    FiresAJoinTwice,
    LetsTooManyItemsRun,
    IgnoresConditions,
    IgnoresOptional,
    IgnoresJoinRules,
    IgnoresTaskPriorities,
    IgnoresTheDeadline,
    IgnoresWhatToWaitFor,
    ComparesDerivedKeys,
    AcksPauseWithoutDoing,
    LosesHeldTasksOnResume,
    KeepsACancelledLease,
    RecoversTooMuch,
    CountsRetries,
    ReusesAttemptNumbers,
    RequeuesEverything,
    DiscardsNothing,
    RetiresNothing,
    ForgetsTimings,
    HidesReasons,
    LosesJobEvents,
    ForgetsWhoseEventsTheyAre,
    RepeatsTheEntryOfAPage,
    // Of what is over.
    AcksForgetWithoutDoing,
    ForgetsAnyEnd,
    ForgetsTooMuchJournal,
    HidesGaps,
    ShowsAJournalThatWent,
    RemovesUndecided,
    LooksForEver,
}

const BUGS: [Bug; 59] = [
    Bug::IgnoresKeys,
    Bug::TakesAnyPayload,
    Bug::ForgetsDelays,
    Bug::DropsTheFence,
    Bug::LosesStaleRecords,
    Bug::LeavesASlotEmpty,
    Bug::HandsOutWorstFirst,
    Bug::GivesNoHint,
    Bug::AllowsOneTooMany,
    Bug::ConfigBeatsOperator,
    Bug::ExtendsTooLong,
    Bug::RetriesFinalErrors,
    Bug::LosesCheckpoints,
    Bug::SweepsOnlyOnce,
    Bug::SweepsTooMany,
    Bug::AcksCancelWithoutDoing,
    Bug::RetriesWithoutAsking,
    Bug::HidesDeadLetters,
    Bug::SkipsTheFirstOfAPage,
    Bug::LosesEvents,
    Bug::ForgetsOnReopen,
    Bug::ServesPausedQueues,
    Bug::IgnoresExpectations,
    Bug::LosesDocuments,
    Bug::TakesAnyDocument,
    Bug::ForgetsMeta,
    Bug::MiscountsDays,
    Bug::ForgetsANeed,
    Bug::ForgetsAJoin,
    Bug::FiresAJoinTwice,
    Bug::LetsTooManyItemsRun,
    Bug::IgnoresConditions,
    Bug::IgnoresOptional,
    Bug::IgnoresJoinRules,
    Bug::IgnoresTaskPriorities,
    Bug::IgnoresTheDeadline,
    Bug::IgnoresWhatToWaitFor,
    Bug::ComparesDerivedKeys,
    Bug::AcksPauseWithoutDoing,
    Bug::LosesHeldTasksOnResume,
    Bug::KeepsACancelledLease,
    Bug::RecoversTooMuch,
    Bug::CountsRetries,
    Bug::ReusesAttemptNumbers,
    Bug::RequeuesEverything,
    Bug::DiscardsNothing,
    Bug::RetiresNothing,
    Bug::ForgetsTimings,
    Bug::HidesReasons,
    Bug::LosesJobEvents,
    Bug::ForgetsWhoseEventsTheyAre,
    Bug::RepeatsTheEntryOfAPage,
    Bug::AcksForgetWithoutDoing,
    Bug::ForgetsAnyEnd,
    Bug::ForgetsTooMuchJournal,
    Bug::HidesGaps,
    Bug::ShowsAJournalThatWent,
    Bug::RemovesUndecided,
    Bug::LooksForEver,
];

#[async_trait]
impl Fixture for Bug {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        Arc::new(Broken::new(*self, clock))
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        Some(if *self == Bug::ForgetsOnReopen { self.fresh(clock).await } else { store })
    }
}

#[tokio::test]
async fn the_wrapper_itself_is_sound() {
    conformance::examples(&Bug::None).await;
    conformance::random_sequences(&Bug::None, 5, 50, 1).await;
}

/// Whether a part of the suite panics.
async fn panics(part: impl Future<Output = ()> + 'static) -> bool {
    let local = tokio::task::LocalSet::new();
    let run = local.spawn_local(part);
    local.run_until(run).await.is_err_and(|error| error.is_panic())
}

#[tokio::test]
async fn the_examples_catch_every_bug() {
    for bug in BUGS {
        let caught = panics(async move { conformance::examples(&bug).await }).await;
        assert!(caught, "the examples did not notice: {bug:?}");
    }
}

#[tokio::test]
async fn the_random_sequences_catch_every_bug() {
    for bug in BUGS {
        let caught = panics(async move { conformance::random_sequences(&bug, 100, 50, 1).await }).await;
        assert!(caught, "the sequences did not notice: {bug:?}");
    }
}
