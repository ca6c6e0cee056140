//! Examples of the counts by day.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::retention::Forgot;
use crate::verbs::Command;
use crate::views::DayStats;
use orchestrator_core::{JobState, Key, Millis, Outcome};

/// The day on which the examples start. They start at 22:00.
const FIRST: &str = "2023-11-14";

fn on(day: &str) -> DayStats {
    DayStats { day: day.to_owned(), ..DayStats::default() }
}

pub(super) async fn jobs_are_counted_by_day(world: &World) {
    let daily = async |days| world.store.daily(days).await.unwrap();
    assert_eq!(daily(9).await, []);
    let id = world.add(job().key(Key::new("k"))).await;
    assert_eq!(world.submit(job().key(Key::new("k"))).await.id(), id, "no new one");
    world.store.submit(vec![job(); 4]).await.unwrap();
    let leased = world.lease(3).await;
    world.complete(&leased[0]).await;
    world.settle(leased[1].held(), Outcome::Skipped(json("1"))).await;
    assert_eq!(daily(9).await, [DayStats { created: 5, completed: 2, ..on(FIRST) }]);

    world.advance(Millis::hours(2));
    world.fail(&leased[2]).await;
    let cancelled = world.lease_one().await.task.job;
    world.control(Command::Cancel(cancelled)).await;
    let next = DayStats { failed: 1, cancelled: 1, ..on("2023-11-15") };
    let first = DayStats { created: 5, completed: 2, ..on(FIRST) };
    assert_eq!(daily(9).await, [next.clone(), first], "an end counts on its own day");
    assert_eq!(daily(1).await, std::slice::from_ref(&next));
    assert_eq!(daily(0).await, []);

    world.advance(Millis::hours(48));
    world.add(job()).await;
    let third = DayStats { created: 1, ..on("2023-11-17") };
    assert_eq!(daily(2).await, [third, next], "a day on which nothing happened is left out");
}

pub(super) async fn an_end_that_was_taken_back_stays(world: &World) {
    let id = world.add(job()).await;
    world.fail(&world.lease_one().await).await;
    world.control(Command::Retry(id)).await;
    world.complete(&world.lease_one().await).await;
    let expected = DayStats { created: 1, reopened: 1, failed: 1, completed: 1, ..on(FIRST) };
    assert_eq!(world.store.daily(9).await.unwrap(), [expected]);
}

pub(super) async fn what_is_removed_stays_counted(world: &World) {
    let id = world.add(job()).await;
    world.complete(&world.lease_one().await).await;
    assert_eq!(world.forget(id).await, Forgot::Done);
    let expected = DayStats { created: 1, completed: 1, ..on(FIRST) };
    assert_eq!(world.store.daily(9).await.unwrap(), [expected]);
}

pub(super) async fn flows_count_once(world: &World) {
    world.start(chain()).await;
    world.run_all(&["a", "b", "c"]).await;
    let failed = world.start(chain()).await;
    world.fail(&world.take("a").await).await;
    let waits = world.add(job().after(failed)).await;
    assert_eq!(world.job(waits).await.state, JobState::Cancelled);
    let late = world.start(chain().description("late").timeout(Millis::mins(1))).await;
    let nothing = flow([task("a").when("false")]);
    world.start(nothing).await;
    let queue = world.add(job()).await;
    world.control(Command::Pause(queue)).await;
    world.control(Command::Cancel(queue)).await;
    world.advance(Millis::mins(2));
    assert_eq!(world.sweep(9).await.timed_out, [late]);
    world.control(recover(failed, None)).await;
    let again = world.take("a").await;
    world.fail(&again).await;
    let expected = DayStats {
        created: 6,
        reopened: 1,
        completed: 2,
        failed: 2,
        timed_out: 1,
        cancelled: 2,
        ..on(FIRST)
    };
    assert_eq!(world.store.daily(9).await.unwrap(), [expected]);
}
