//! Examples of jobs that wait for jobs.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Command, Controlled};
use orchestrator_core::TaskState::{Cancelled, Pending, Queued};
use orchestrator_core::{ErrorClass, JobId, JobState, Millis, NewJob};

fn after(new: NewJob, jobs: &[JobId]) -> NewJob {
    jobs.iter().fold(new, |new, id| new.after(*id))
}

pub(in crate::conformance::examples) async fn a_job_begins_when_the_others_have_completed(world: &World) {
    let (a, b) = (world.add(job()).await, world.start(flow([task("b")])).await);
    let flow = flow([task("c")]);
    let id = world.add(after(new(flow), &[b, a, b])).await;
    let view = world.job(id).await;
    assert_eq!(
        (view.state, view.waits_for),
        (JobState::Pending, vec![a, b]),
        "each once, in order of submission"
    );
    assert_eq!(world.states(id).await, [Pending]);
    assert_eq!(world.work_off(1).await, [a]);
    assert_eq!((world.job(id).await.waits_for, world.states(id).await), (vec![b], vec![Pending]));
    world.advance(Millis(9));
    assert_eq!(world.work_off(1).await, [b]);
    let view = world.job(id).await;
    assert_eq!(
        (&*view.waits_for, view.task().state, view.task().since),
        (&[][..], Queued, Some(world.now()))
    );
    world.run_all(&["c"]).await;
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Running, JobState::Completed]);
}

pub(in crate::conformance::examples) async fn a_job_of_a_queue_can_wait(world: &World) {
    let first = world.add(job()).await;
    let id = world.add(after(job().limits(limits(&["host:a"])), &[first]).payload(json("[1]"))).await;
    let view = world.job(id).await;
    assert_eq!((view.state, view.task().state, &*view.task().name), (JobState::Pending, Pending, "main"));
    assert_eq!((view.flow.is_none(), view.max_recoveries, view.deadline), (true, 3, None));
    assert_eq!(view.task().input, Some(json("[1]")));
    assert_eq!(world.work_off(1).await, [first]);
    let leased = world.lease_one().await;
    assert_eq!(
        (leased.task.job, leased.payload.clone(), leased.limits.clone()),
        (id, json("[1]"), limits(&["host:a"]))
    );
    world.complete(&leased).await;
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Running, JobState::Completed]);
}

pub(in crate::conformance::examples) async fn what_has_completed_is_not_waited_for(world: &World) {
    let first = world.add(job()).await;
    world.work_off(1).await;
    let id = world.add(after(job(), &[first])).await;
    let view = world.job(id).await;
    assert_eq!((&*view.waits_for, view.task().state), (&[][..], Queued));
    assert_eq!(world.life(id).await, [JobState::Pending], "it is a job of its own from the start");
}

pub(in crate::conformance::examples) async fn a_bad_end_cancels_those_that_wait(world: &World) {
    let first = world.add(job()).await;
    let second = world.add(after(new(chain()), &[first])).await;
    let third = world.add(after(job(), &[first, second])).await;
    let fourth = world.add(after(job(), &[third])).await;
    world.fail(&world.lease_one().await).await;
    for id in [second, third, fourth] {
        let view = world.job(id).await;
        assert_eq!((view.state, view.ended), (JobState::Cancelled, Some(START)));
        assert!(view.tasks.iter().all(|task| task.state == Cancelled));
        assert_eq!((view.waits_for, view.started), (vec![], None));
    }
    let why = async |id| world.job(id).await.reason.expect("it says why");
    assert_eq!(why(second).await, format!("it was to run after job {first}, which is failed"));
    assert_eq!(
        why(third).await,
        format!("it was to run after job {first}, which is failed"),
        "the nearest cause"
    );
    assert_eq!(why(fourth).await, format!("it was to run after job {third}, which is cancelled"));
    assert_eq!(world.life(second).await, [JobState::Pending, JobState::Cancelled]);
    assert_eq!(world.control(Command::Retry(first)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.job_state(second).await, JobState::Cancelled, "a retry does not bring them back");
}

pub(in crate::conformance::examples) async fn a_job_behind_a_bad_end_is_cancelled_at_once(world: &World) {
    let bad = world.start(flow([task("a")])).await;
    world.control(Command::Cancel(bad)).await;
    let unknown = JobId::from_parts(START, 0xbad);
    let live = world.add(job()).await;
    let known = world.add(after(job(), &[live, bad])).await;
    let lost = world.add(after(new(chain()), &[unknown])).await;
    let reasons = [
        (known, format!("it was to run after job {bad}, which is cancelled")),
        (lost, format!("it was to run after job {unknown}, which does not exist")),
    ];
    for (id, reason) in reasons {
        let view = world.job(id).await;
        assert_eq!((view.state, view.reason, view.waits_for), (JobState::Cancelled, Some(reason), vec![]));
        assert_eq!(world.life(id).await, [JobState::Pending, JobState::Cancelled]);
    }
    assert_eq!(world.work_off(9).await, [live]);
}

pub(in crate::conformance::examples) async fn a_clock_starts_when_the_wait_is_over(world: &World) {
    let first = world.add(job()).await;
    let id = world.add(after(new(chain().timeout(Millis::mins(1))), &[first])).await;
    let behind = world.add(after(job(), &[id])).await;
    world.advance(Millis::mins(2));
    assert_eq!(world.sweep(9).await.timed_out, [], "nobody is late who may not start");
    assert_eq!(world.job(id).await.deadline, None);
    assert_eq!(world.work_off(1).await, [first]);
    assert_eq!(world.job(id).await.deadline, Some(world.now() + Millis::mins(1)));
    world.advance(Millis::mins(1));
    assert_eq!(world.sweep(9).await.timed_out, [id]);
    assert_eq!(world.job_state(behind).await, JobState::Cancelled);
}

pub(in crate::conformance::examples) async fn a_pause_before_the_start_stops_no_clock(world: &World) {
    let first = world.add(job()).await;
    let id = world.add(after(new(chain().timeout(Millis::mins(1))), &[first])).await;
    world.control(Command::Pause(id)).await;
    world.advance(Millis::mins(5));
    assert_eq!(world.work_off(1).await, [first]);
    world.advance(Millis::secs(10));
    assert_eq!(world.control(Command::Resume(id)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.job(id).await.deadline, Some(world.now() + Millis::mins(1)), "all of its time is left");
}

pub(in crate::conformance::examples) async fn a_job_that_waits_can_be_cancelled(world: &World) {
    let first = world.add(job()).await;
    let id = world.add(after(job(), &[first])).await;
    assert_eq!(world.control(Command::Cancel(id)).await, Controlled::Done(JobState::Cancelled));
    assert_eq!(world.job(id).await.waits_for, []);
    assert_eq!(world.work_off(9).await, [first]);
    assert_eq!(world.job_state(id).await, JobState::Cancelled);
}

pub(in crate::conformance::examples) async fn a_paused_job_begins_held(world: &World) {
    let first = world.add(job()).await;
    let id = world.add(after(new(chain()), &[first])).await;
    assert_eq!(world.control(Command::Pause(id)).await, Controlled::Done(JobState::Paused));
    assert_eq!(world.work_off(9).await, [first]);
    let task = world.named(id, "a").await;
    assert_eq!((task.state, task.held), (Queued, true));
    assert_eq!(world.control(Command::Resume(id)).await, Controlled::Done(JobState::Running));
    world.run_all(&["a", "b", "c"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}

pub(in crate::conformance::examples) async fn a_paused_job_that_waits_can_be_resumed(world: &World) {
    let first = world.add(job()).await;
    let id = world.add(after(new(flow([task("a")])), &[first])).await;
    world.control(Command::Pause(id)).await;
    assert_eq!(world.control(Command::Resume(id)).await, Controlled::Done(JobState::Running));
    assert_eq!(
        (world.states(id).await, world.lease(9).await.len()),
        (vec![Pending], 1),
        "it waits as before"
    );
    assert_eq!(world.job(id).await.waits_for, [first]);
}

pub(in crate::conformance::examples) async fn a_recovered_job_is_waited_for_again(world: &World) {
    let first = world.start(flow([task("a")])).await;
    world.run("a", failed(ErrorClass::Permanent)).await;
    world.control(recover(first, None)).await;
    let id = world.add(after(job(), &[first])).await;
    assert_eq!(world.job(id).await.waits_for, [first]);
    world.run_all(&["a", "main"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}
