//! Examples of pausing and resuming jobs.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Beat, Command, Controlled, Settled};
use orchestrator_core::TaskState::{Completed, Pending, Queued, Retrying, Running};
use orchestrator_core::flow::Flow;
use orchestrator_core::{ErrorClass, JobId, JobState, Millis, Outcome};

/// Two tasks side by side, and one behind them.
fn wide() -> Flow {
    flow([task("a"), task("b"), task("c").needs(["a", "b"])])
}

async fn pause(world: &World, id: JobId, into: JobState) {
    assert_eq!(world.control(Command::Pause(id)).await, Controlled::Done(into));
    assert_eq!(world.job_state(id).await, into);
}

async fn resume(world: &World, id: JobId) {
    assert_eq!(world.control(Command::Resume(id)).await, Controlled::Done(JobState::Running));
}

pub(in crate::conformance::examples) async fn nothing_new_starts(world: &World) {
    let id = world.start(wide()).await;
    pause(world, id, JobState::Paused).await;
    let held = world.named(id, "a").await;
    assert_eq!((held.state, held.held, held.since, held.due), (Queued, true, None, None));
    assert!(!world.named(id, "c").await.held, "what needs others waits for them, not for a resume");
    assert_eq!(world.lease(9).await, []);
    let line = world.line().await;
    assert_eq!((line.paused, line.ready + line.parked, line.oldest_queued), (2, 0, None));
    world.advance(Millis::secs(9));
    resume(world, id).await;
    let back = world.named(id, "a").await;
    assert_eq!((back.held, back.since), (false, Some(START)), "it has waited all the while");
    world.run_all(&["a", "b", "c"]).await;
    use JobState as J;
    assert_eq!(world.life(id).await, [J::Pending, J::Paused, J::Running, J::Completed]);
    assert_eq!(world.task_life(id, 0).await.len(), 3, "a pause is no change of its tasks");
}

pub(in crate::conformance::examples) async fn what_runs_may_finish(world: &World) {
    let id = world.start(wide()).await;
    let (a, b) = (world.take("a").await, world.take("b").await);
    pause(world, id, JobState::Pausing).await;
    assert_eq!(world.extend(a.held(), TTL).await, Beat::Until(START + TTL), "its lease holds");
    let answer = world.settle(a.held(), done()).await;
    assert_eq!(answer, Settled::Applied { state: Completed, due: None, dead: None, job_ended: false });
    assert_eq!(world.job_state(id).await, JobState::Pausing);
    world.complete(&b).await;
    assert_eq!(world.job_state(id).await, JobState::Paused);
    let next = world.named(id, "c").await;
    assert_eq!((next.state, next.held, next.since), (Queued, true, None), "its turn came, but not now");
    assert_eq!(world.lease(9).await, []);
    world.advance(Millis::secs(5));
    resume(world, id).await;
    assert_eq!(world.named(id, "c").await.since, Some(world.now()));
    world.run_all(&["c"]).await;
    use JobState as J;
    assert_eq!(
        world.life(id).await,
        [J::Pending, J::Running, J::Pausing, J::Paused, J::Running, J::Completed]
    );
}

pub(in crate::conformance::examples) async fn a_job_may_end_while_it_is_pausing(world: &World) {
    let id = world.start(flow([task("a")])).await;
    let leased = world.take("a").await;
    pause(world, id, JobState::Pausing).await;
    world.complete(&leased).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
    assert_eq!(world.control(Command::Resume(id)).await, Controlled::Refused(JobState::Completed));
}

pub(in crate::conformance::examples) async fn resumed_before_it_came_to_rest(world: &World) {
    let id = world.start(wide()).await;
    let a = world.take("a").await;
    pause(world, id, JobState::Pausing).await;
    resume(world, id).await;
    world.complete(&a).await;
    world.run_all(&["b", "c"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}

pub(in crate::conformance::examples) async fn a_place_in_line_is_kept(world: &World) {
    let paused = world.start(flow([task("a")])).await;
    let other = world.add(job()).await;
    pause(world, paused, JobState::Paused).await;
    let behind = world.add(job()).await;
    resume(world, paused).await;
    assert_eq!(world.work_off(9).await, [paused, other, behind]);
}

pub(in crate::conformance::examples) async fn a_task_given_back_meanwhile_keeps_its_place(world: &World) {
    let id = world.start(flow([task("a")])).await;
    let a = world.take("a").await;
    let other = world.add(job()).await;
    pause(world, id, JobState::Pausing).await;
    assert_eq!(world.settle(a.held(), Outcome::Released).await.state(), Some(Queued));
    let held = world.named(id, "a").await;
    assert_eq!((held.state, held.held, world.job_state(id).await), (Queued, true, JobState::Paused));
    world.run("main", done()).await;
    assert_eq!(world.lease(9).await, [], "only the other one could start");
    let last = world.add(job()).await;
    resume(world, id).await;
    assert_eq!(world.work_off(9).await, [id, last], "before what came after it");
    assert_eq!(world.job_state(other).await, JobState::Completed);
}

pub(in crate::conformance::examples) async fn a_retry_falls_due_after_the_resume(world: &World) {
    let id = world.start(flow([task("a")])).await;
    let a = world.take("a").await;
    pause(world, id, JobState::Pausing).await;
    let due = START + Millis::secs(1);
    let answer = world.settle(a.held(), failed(ErrorClass::Network)).await;
    assert_eq!(answer, Settled::Applied { state: Retrying, due: Some(due), dead: None, job_ended: false });
    let held = world.named(id, "a").await;
    assert_eq!((held.state, held.held, held.due), (Retrying, true, Some(due)));
    world.advance(Millis::secs(5));
    assert_eq!(world.grant(9).await.next_at, None, "time alone does not help");
    assert_eq!(world.named(id, "a").await.state, Retrying);
    resume(world, id).await;
    assert_eq!(world.named(id, "a").await.state, Queued, "its moment has passed meanwhile");
    assert_eq!(world.task_life(id, 0).await, [(Queued, 0), (Running, 1), (Retrying, 1), (Queued, 1)]);
    world.run_all(&["a"]).await;
}

pub(in crate::conformance::examples) async fn a_moment_to_come_is_kept(world: &World) {
    let at = START + Millis::secs(60);
    let id = world.add(new(flow([task("a")])).run_at(at)).await;
    pause(world, id, JobState::Paused).await;
    assert_eq!((world.named(id, "a").await.due, world.line().await.paused), (Some(at), 1));
    resume(world, id).await;
    let waiting = world.named(id, "a").await;
    assert_eq!((waiting.due, waiting.held, world.line().await.scheduled), (Some(at), false, 1));
    assert_eq!(world.grant(9).await.next_at, Some(at));
    world.advance(Millis::secs(60));
    world.run_all(&["a"]).await;
}

/// Resumed and paused again in one breath, after its moment came: it has a place in line now, and keeps it.
pub(in crate::conformance::examples) async fn a_place_that_was_given_between_two_pauses_is_kept(
    world: &World,
) {
    let id = world.add(new(flow([task("a")])).run_at(START + Millis::secs(10))).await;
    pause(world, id, JobState::Paused).await;
    world.advance(Millis::secs(20));
    let both = [Command::Resume(id), Command::Pause(id)].map(Into::into).to_vec();
    let answers = world.store.control(both).await.unwrap();
    assert_eq!(answers, [Controlled::Done(JobState::Running), Controlled::Done(JobState::Paused)]);
    assert!(world.named(id, "a").await.held);
    resume(world, id).await;
    let back = world.named(id, "a").await;
    assert_eq!((back.state, back.since), (Queued, Some(world.now())));
    pause(world, id, JobState::Paused).await;
    assert_eq!(world.lease(9).await, [], "it is found in line again");
    resume(world, id).await;
    world.run_all(&["a"]).await;
}

pub(in crate::conformance::examples) async fn a_vanished_worker_of_a_pausing_job(world: &World) {
    let id = world.start(flow([task("a")])).await;
    world.take("a").await;
    pause(world, id, JobState::Pausing).await;
    world.advance(TTL);
    assert_eq!(world.sweep(9).await.ended[0].1.state(), Some(Queued));
    assert_eq!(world.job_state(id).await, JobState::Paused);
    assert_eq!(world.lease(9).await, []);
    resume(world, id).await;
    world.run_all(&["a"]).await;
}

pub(in crate::conformance::examples) async fn a_job_of_a_queue_can_be_paused(world: &World) {
    let id = world.add(job().limits(limits(&["host:a"]))).await;
    assert_eq!(world.life(id).await, [], "up to now its task told it all");
    pause(world, id, JobState::Paused).await;
    let view = world.job(id).await;
    assert_eq!((view.flow.is_none(), &*view.task().name, view.task().held), (true, "main", true));
    assert_eq!((view.deadline, view.max_recoveries, view.started), (None, 3, None));
    assert_eq!(world.lease(9).await, []);
    resume(world, id).await;
    let leased = world.take("main").await;
    assert_eq!((leased.flow.clone(), leased.limits.clone()), (None, limits(&["host:a"])));
    world.fail(&leased).await;
    assert_eq!(world.control(recover(id, None)).await, Controlled::Done(JobState::Running));
    let again = world.take("main").await;
    assert_eq!((again.counters.attempt, again.limits), (2, limits(&["host:a"])));
    use JobState as J;
    assert_eq!(world.life(id).await, [J::Paused, J::Running, J::Failed, J::Recovering, J::Running]);
}

pub(in crate::conformance::examples) async fn a_running_job_of_a_queue_can_be_paused(world: &World) {
    let id = world.add(job()).await;
    let leased = world.lease_one().await;
    pause(world, id, JobState::Pausing).await;
    assert_eq!(world.job(id).await.started, Some(START));
    let answer = world.settle(leased.held(), Outcome::Released).await;
    assert_eq!((answer.state(), world.job_state(id).await), (Some(Queued), JobState::Paused));
    resume(world, id).await;
    world.work_off(1).await;
    use JobState as J;
    assert_eq!(world.life(id).await, [J::Pausing, J::Paused, J::Running, J::Completed]);
}

pub(in crate::conformance::examples) async fn only_what_lives_is_paused(world: &World) {
    let id = world.start(wide()).await;
    assert_eq!(world.control(Command::Resume(id)).await, Controlled::Refused(JobState::Pending));
    pause(world, id, JobState::Paused).await;
    assert_eq!(world.control(Command::Pause(id)).await, Controlled::Refused(JobState::Paused));
    assert_eq!(world.control(recover(id, None)).await, Controlled::Refused(JobState::Paused));
    assert_eq!(world.control(Command::Cancel(id)).await, Controlled::Done(JobState::Cancelled));
    assert_eq!(world.control(Command::Pause(id)).await, Controlled::Refused(JobState::Cancelled));
    assert_eq!(world.line().await.paused, 0);
    let queue = world.add(job()).await;
    assert_eq!(world.control(Command::Resume(queue)).await, Controlled::Refused(JobState::Pending));
    world.complete(&world.lease_one().await).await;
    assert_eq!(world.control(Command::Pause(queue)).await, Controlled::Refused(JobState::Completed));
    assert_eq!(world.life(queue).await, [], "a refusal changes nothing");
}

pub(in crate::conformance::examples) async fn items_that_come_meanwhile_are_held(world: &World) {
    let each = task("each").for_each("{{ input }}").concurrency(1);
    let id = world.start_with(flow([each]), "[1,2]").await;
    let first = world.take("each[0]").await;
    pause(world, id, JobState::Pausing).await;
    world.complete(&first).await;
    let items = world.items_of(id, "each").await;
    assert_eq!((items[1].state, items[1].held), (Queued, true));
    assert_eq!((world.job_state(id).await, world.states(id).await), (JobState::Paused, vec![Running]));
    resume(world, id).await;
    world.run_all(&["each[1]"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
    assert_ne!(world.states(id).await, [Pending]);
}
