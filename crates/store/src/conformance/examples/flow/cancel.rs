//! Examples of ending a whole job on request.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Beat, Command, Controlled, Settled};
use orchestrator_core::TaskState::{Cancelled, Completed, Queued, Retrying, Running};
use orchestrator_core::outcome::Leg;
use orchestrator_core::{Counters, ErrorClass, Event, JobEvent, JobState, Millis, Outcome, TaskId};

pub(in crate::conformance::examples) async fn everything_ends_with_the_job(world: &World) {
    let each = task("each").for_each("{{ input }}").concurrency(1);
    let others = [task("done"), task("runs").limit("host", "a"), task("retries"), each];
    let [done_, runs, retries, each] = others;
    let last = task("last").needs(["runs", "each"]);
    let id = world.start_with(flow([done_, runs, retries, each, last]), "[1,2]").await;
    world.run_all(&["done"]).await;
    let running = world.take("runs").await;
    let leg = Leg { checkpoint: json("1"), limits: limits(&["host:a"]), delay: Millis(0) };
    world.settle(running.held(), Outcome::Continue(leg)).await;
    let running = world.take("runs").await;
    world.run("retries", failed(ErrorClass::Network)).await;
    assert_eq!(world.states(id).await[..3], [Completed, Running, Retrying]);

    world.advance(Millis(3));
    assert_eq!(world.control(Command::Cancel(id)).await, Controlled::Done(JobState::Cancelled));
    assert_eq!(world.states(id).await, [Completed, Cancelled, Cancelled, Cancelled, Cancelled]);
    let job = world.job(id).await;
    assert_eq!((job.state, job.ended, job.deadline), (JobState::Cancelled, Some(world.now()), None));
    assert_eq!((&job.reason, &job.output), (&None, &None));
    let ended = &job.tasks[1];
    assert_eq!((&ended.worker, &ended.checkpoint, ended.ended), (&None, &None, Some(world.now())));
    assert_eq!(ended.counters, Counters { attempt: 2, failures: 0, crashes: 0 }, "its counters are kept");
    assert_eq!(job.tasks[2].due, None);
    let items = world.items_of(id, "each").await;
    assert!(items.iter().all(|item| item.state == Cancelled), "also one that was not let in: {items:?}");
    assert_eq!(job.tasks[3].items.map(|items| (items.ended, items.failed)), Some((2, 2)));

    assert_eq!(world.running("host:a").await, 0);
    assert_eq!(world.store.held(vec![running.held()]).await.unwrap(), [false]);
    assert_eq!(world.extend(running.held(), TTL).await, Beat::Lost);
    assert_eq!(
        world.settle(running.held(), done()).await,
        Settled::Stale,
        "no completion after an acked cancel"
    );
    assert_eq!(world.dead().await, []);
    world.advance(Millis::hours(1));
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at, world.sweep(9).await.ended.len()), (0, None, 0));
    assert_eq!(world.line().await.cancelled, 6);
    for command in [Command::Cancel(id), Command::Retry(id), recover(id, None), Command::Resume(id)] {
        let answer = world.control(command.clone()).await;
        assert_eq!(answer, Controlled::Refused(JobState::Cancelled), "{command:?}");
    }
}

pub(in crate::conformance::examples) async fn the_job_is_told_last(world: &World) {
    let id = world.start(chain()).await;
    world.run_all(&["a"]).await;
    let before = world.events().await.len();
    world.control(Command::Cancel(id)).await;
    let told = world.events().await[before..].to_vec();
    let cancelled = |index| {
        let task = TaskId { job: id, index };
        Event::Task(orchestrator_core::TaskEvent { task, state: Cancelled, attempt: 0 })
    };
    let job = Event::Job(JobEvent { job: id, state: JobState::Cancelled });
    assert_eq!(told, [cancelled(1), cancelled(2), job], "what lived, what never did, then the job");
}

pub(in crate::conformance::examples) async fn one_cancel_leaves_others_alone(world: &World) {
    let id = world.start(chain()).await;
    let other = world.start(chain()).await;
    world.control(Command::Cancel(id)).await;
    assert_eq!(world.states(other).await[0], Queued);
    world.run_all(&["a", "b", "c"]).await;
    assert_eq!(world.job_state(other).await, JobState::Completed);
}
