//! Examples of dead letters: run again, or put away.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Command, Controlled};
use orchestrator_core::TaskState::{Completed, Failed, Pending, Queued, Skipped};
use orchestrator_core::{ErrorClass, JobId, JobState, TaskId};

pub(in crate::conformance::examples) async fn a_requeue_runs_it_and_what_comes_after(world: &World) {
    let id = world.start(flow([task("a"), task("b").needs(["a"]), task("x"), task("y").needs(["x"])])).await;
    let leased = world.lease(9).await;
    world.fail(&leased[0]).await;
    assert_eq!(world.states(id).await[..2], [Failed, Skipped]);
    let letter = world.dead().await[0].task;
    assert_eq!(
        world.control(Command::Requeue(letter)).await,
        Controlled::Refused(JobState::Running),
        "not before the job has ended"
    );
    world.fail(&leased[1]).await;
    assert_eq!(world.job_state(id).await, JobState::Failed);
    assert_eq!(world.control(Command::Requeue(letter)).await, Controlled::Done(JobState::Running));
    assert_eq!(world.states(id).await, [Queued, Pending, Failed, Skipped], "the other branch stays as it is");
    assert_eq!(world.dead().await.len(), 1);
    world.run_all(&["a", "b"]).await;
    let job = world.job(id).await;
    assert_eq!((job.state, job.recoveries), (JobState::Failed, 0), "the other branch is still bad");
}

pub(in crate::conformance::examples) async fn a_discard_only_puts_it_away(world: &World) {
    let id = world.start(chain()).await;
    world.run("a", failed(ErrorClass::Permanent)).await;
    let letter = world.dead().await[0].task;
    assert_eq!(world.line().await.dead, 1);
    assert_eq!(world.control(Command::Discard(letter)).await, Controlled::Done(JobState::Failed));
    assert_eq!(world.dead().await, []);
    let task = world.named(id, "a").await;
    assert_eq!((task.state, task.dead, task.history.len()), (Failed, None, 1), "it stays failed");
    let line = world.line().await;
    assert_eq!((line.failed, line.dead, line.oldest_failed), (1, 0, None));
    for command in [Command::Discard(letter), Command::Requeue(letter)] {
        assert_eq!(world.control(command.clone()).await, Controlled::NoSuchTask, "{command:?}");
    }
    assert_eq!(
        world.control(recover(id, None)).await,
        Controlled::Done(JobState::Running),
        "that still works"
    );
    world.run_all(&["a", "b", "c"]).await;
}

pub(in crate::conformance::examples) async fn those_of_queues_too(world: &World) {
    let id = world.add(job()).await;
    world.fail(&world.lease_one().await).await;
    let letter = TaskId::only(id);
    assert_eq!(world.control(Command::Requeue(letter)).await, Controlled::Done(JobState::Running));
    assert_eq!((world.state(id).await, world.dead().await), (Queued, vec![]));
    let again = world.lease_one().await;
    assert_eq!((again.counters.attempt, again.counters.failures), (2, 0));
    world.fail(&again).await;
    assert_eq!(world.control(Command::Discard(letter)).await, Controlled::Done(JobState::Failed));
    assert_eq!(world.control(Command::Requeue(letter)).await, Controlled::NoSuchTask);
    assert_eq!(world.control(Command::Retry(id)).await, Controlled::Done(JobState::Running));
}

pub(in crate::conformance::examples) async fn what_is_no_dead_letter(world: &World) {
    let id = world.start(chain()).await;
    world.run_all(&["a"]).await;
    let unknown = TaskId { job: JobId::from_parts(START, 0xbad), index: 0 };
    let cases = [
        (TaskId { job: id, index: 0 }, Controlled::NoSuchTask),
        (TaskId { job: id, index: 1 }, Controlled::NoSuchTask),
        (TaskId { job: id, index: 99 }, Controlled::NoSuchTask),
        (unknown, Controlled::NotFound),
    ];
    for (task, answer) in cases {
        assert_eq!(world.control(Command::Requeue(task)).await, answer, "{task}");
        assert_eq!(world.control(Command::Discard(task)).await, answer, "{task}");
    }
    assert_eq!(world.states(id).await, [Completed, Queued, Pending]);
}

pub(in crate::conformance::examples) async fn they_stand_in_order_of_jobs_and_tasks(world: &World) {
    let two = || flow([task("a"), task("b"), on("c", "other")]);
    let (first, second) = (world.start(two()).await, world.start(two()).await);
    let mut leased = world.store.lease(ask_for(&["default"], &[HANDLER, "other"], 9)).await.unwrap().tasks;
    leased.sort_by_key(|leased| std::cmp::Reverse(leased.task));
    for attempt in &leased {
        world.fail(attempt).await;
    }
    let all = [(first, 0), (first, 1), (first, 2), (second, 0), (second, 1), (second, 2)];
    let all = all.map(|(job, index)| TaskId { job, index });
    let tasks =
        |dead: Vec<crate::views::DeadLetter>| dead.into_iter().map(|dead| dead.task).collect::<Vec<_>>();
    assert_eq!(tasks(world.dead().await), all);
    let page =
        async |after, limit| tasks(world.store.dead_letters(Default::default(), after, limit).await.unwrap());
    assert_eq!(page(None, 2).await, all[..2]);
    assert_eq!(page(Some(all[1]), 3).await, all[2..5], "a page may start inside a job");
    assert_eq!(page(Some(all[5]), 3).await, []);
    let other = crate::views::LineFilter { queue: None, handler: Some("other".into()) };
    assert_eq!(tasks(world.store.dead_letters(other, None, 9).await.unwrap()), [all[2], all[5]]);
}
