//! Examples of jobs that take too long.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Command, Controlled, Settled};
use orchestrator_core::TaskState::{Completed, Queued, TimedOut};
use orchestrator_core::flow::Flow;
use orchestrator_core::{JobState, Millis};

fn timed(minutes: u64) -> Flow {
    chain().timeout(Millis::mins(minutes))
}

pub(in crate::conformance::examples) async fn a_job_ends_when_its_time_is_up(world: &World) {
    let id = world.start(timed(1)).await;
    world.run_all(&["a"]).await;
    let leased = world.take("b").await;
    world.advance(Millis(59_999));
    world.extend(leased.held(), TTL).await;
    assert_eq!(world.sweep(9).await.timed_out, []);
    world.advance(Millis(1));
    let swept = world.sweep(9).await;
    assert_eq!((swept.timed_out, swept.ended, swept.more), (vec![id], vec![], false));
    assert_eq!(world.states(id).await, [Completed, TimedOut, TimedOut]);
    let job = world.job(id).await;
    assert_eq!((job.state, job.ended, job.deadline), (JobState::TimedOut, Some(world.now()), None));
    assert_eq!(job.reason.as_deref(), Some("it took longer than 1m"));
    assert_eq!(world.settle(leased.held(), done()).await, Settled::Stale);
    assert_eq!(world.dead().await, [], "no task of it failed");
    let line = world.line().await;
    assert_eq!((line.timed_out, line.failed, line.running), (2, 0, 0));
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Running, JobState::TimedOut]);
    assert_eq!(world.sweep(9).await.timed_out, [], "once");
}

pub(in crate::conformance::examples) async fn a_job_that_never_started_times_out_too(world: &World) {
    let id = world.start(timed(1)).await;
    world.advance(Millis::hours(1));
    assert_eq!(world.sweep(9).await.timed_out, [id]);
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::TimedOut]);
    assert_eq!(world.states(id).await, [TimedOut; 3]);
}

pub(in crate::conformance::examples) async fn jobs_come_before_attempts_and_count(world: &World) {
    let late = world.start(timed(2)).await;
    let early = world.start(timed(1)).await;
    let same = world.start(timed(1)).await;
    let running = world.start(timed(60)).await;
    let leased = world.lease(9).await;
    let attempt = leased.iter().find(|leased| leased.task.job == running).map(|leased| leased.held());
    world.advance(Millis::mins(3));
    let swept = world.sweep(2).await;
    assert_eq!((swept.timed_out, swept.ended, swept.more), (vec![early, same], vec![], true));
    let swept = world.sweep(2).await;
    assert_eq!((swept.timed_out, swept.more), (vec![late], false));
    let ended: Vec<_> = swept.ended.iter().map(|(held, end)| (*held, end.state())).collect();
    assert_eq!(ended, [(attempt.expect("it runs"), Some(Queued))], "the others' attempts are gone with them");
}

pub(in crate::conformance::examples) async fn a_pause_stops_the_clock(world: &World) {
    let id = world.start(timed(1)).await;
    world.advance(Millis::secs(40));
    world.control(Command::Pause(id)).await;
    assert_eq!(world.job(id).await.deadline, None);
    world.advance(Millis::hours(5));
    assert_eq!(world.sweep(9).await.timed_out, []);
    world.control(Command::Resume(id)).await;
    let deadline = world.now() + Millis::secs(20);
    assert_eq!(world.job(id).await.deadline, Some(deadline), "what was left is left");
    world.advance(Millis(19_999));
    assert_eq!(world.sweep(9).await.timed_out, []);
    world.advance(Millis(1));
    assert_eq!(world.sweep(9).await.timed_out, [id]);
}

pub(in crate::conformance::examples) async fn the_clock_stands_still_from_the_pause_on(world: &World) {
    let id = world.start(timed(1)).await;
    let leased = world.take("a").await;
    world.control(Command::Pause(id)).await;
    assert_eq!((world.job_state(id).await, world.job(id).await.deadline), (JobState::Pausing, None));
    world.advance(Millis::secs(25));
    world.complete(&leased).await;
    world.advance(Millis::secs(25));
    world.control(Command::Resume(id)).await;
    assert_eq!(world.job(id).await.deadline, Some(START + Millis::secs(110)));
}

pub(in crate::conformance::examples) async fn a_recovery_gives_new_time(world: &World) {
    let id = world.start(timed(1)).await;
    world.run_all(&["a"]).await;
    world.advance(Millis::mins(1));
    world.sweep(9).await;
    world.advance(Millis::mins(5));
    assert!(world.job(id).await.is_recoverable());
    assert_eq!(world.control(recover(id, None)).await, Controlled::Done(JobState::Running));
    let job = world.job(id).await;
    assert_eq!((job.deadline, job.reason, job.ended), (Some(world.now() + Millis::mins(1)), None, None));
    assert_eq!(world.states(id).await[..2], [Completed, Queued]);
    world.run_all(&["b", "c"]).await;
    use JobState as J;
    assert_eq!(
        world.life(id).await,
        [J::Pending, J::Running, J::TimedOut, J::Recovering, J::Running, J::Completed]
    );
}

pub(in crate::conformance::examples) async fn a_queue_has_no_deadline(world: &World) {
    let id = world.add(job()).await;
    assert_eq!(world.job(id).await.deadline, None);
    world.advance(Millis::hours(24 * 365));
    assert_eq!(world.sweep(9).await.timed_out, []);
    assert_eq!(world.work_off(1).await, [id]);
}
