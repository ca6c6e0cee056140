//! Examples of tasks that need each other, in a row.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::Settled;
use crate::views::FlowRef;
use orchestrator_core::TaskState::{Completed, Failed, Pending, Queued, Retrying, Running, Skipped};
use orchestrator_core::flow::Task;
use orchestrator_core::{Counters, DeadReason, ErrorClass, JobState, Key, Limits, Millis, Outcome, TaskId};
use serde_json::json as value;

pub(in crate::conformance::examples) async fn each_task_starts_when_the_one_before_has_ended(world: &World) {
    let flow = flow([
        task("fetch").with(value!({"from": "{{ input.url }}"})),
        task("count").needs(["fetch"]).with(value!({"of": "{{ tasks.fetch.output.rows }}"})),
        task("store").needs(["count"]),
    ]);
    let id = world.start_with(flow, r#"{"url":"u"}"#).await;
    assert_eq!(
        (world.job_state(id).await, world.states(id).await),
        (JobState::Pending, vec![Queued, Pending, Pending])
    );

    world.advance(Millis(5));
    let first = world.take("fetch").await;
    assert_eq!((first.payload, first.task), (json(r#"{"from":"u"}"#), TaskId { job: id, index: 0 }));
    assert_eq!(world.lease(9).await, [], "the others wait for it");
    let held = crate::verbs::Held { task: first.task, attempt: 1 };
    let answer = world.settle(held, output(r#"{"rows":[1,2]}"#)).await;
    let went_on = Settled::Applied { state: Completed, due: None, dead: None, job_ended: false };
    assert_eq!(answer, went_on);
    assert_eq!(world.states(id).await, [Completed, Queued, Pending]);

    let second = world.take("count").await;
    assert_eq!(second.payload, json(r#"{"of":[1,2]}"#));
    world.complete(&second).await;
    let third = world.take("store").await;
    assert_eq!(third.payload, json(r#"{"url":"u"}"#), "without a `with` it gets the job's input");
    world.advance(Millis(7));
    let answer = world.settle(third.held(), output("42")).await;
    assert_eq!(answer, Settled::Applied { state: Completed, due: None, dead: None, job_ended: true });

    let job = world.job(id).await;
    assert_eq!((job.state, job.output), (JobState::Completed, Some(json("42"))));
    assert_eq!(
        (job.created, job.started, job.ended),
        (START, Some(START + Millis(5)), Some(START + Millis(12)))
    );
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Running, JobState::Completed]);
    assert_eq!(world.task_life(id, 2).await, [(Queued, 0), (Running, 1), (Completed, 1)]);
}

pub(in crate::conformance::examples) async fn a_job_shows_its_flow_and_tasks(world: &World) {
    let plan = plan(chain().timeout(Millis::mins(10)).max_recoveries(2));
    let new = orchestrator_core::NewJob::of_flow(plan.clone()).tenant("acme").key(Key::new("k"));
    let id = world.add(new.payload(json("[7]"))).await;
    let job = world.job(id).await;
    let flow = FlowRef { name: "flow".into(), version: 1, hash: plan.hash().clone() };
    assert_eq!((job.flow, job.deadline), (Some(flow), Some(START + Millis::mins(10))));
    assert_eq!((&*job.tenant, job.key.as_deref(), job.payload), ("acme", Some("k"), json("[7]")));
    assert_eq!((job.recoveries, job.max_recoveries, job.reason, job.output), (0, 2, None, None));
    assert_eq!((job.waits_for, job.previous, job.started, job.ended), (vec![], None, None, None));
    let names: Vec<_> = job.tasks.iter().map(|task| (task.index, &*task.name)).collect();
    assert_eq!(names, [(0, "a"), (1, "b"), (2, "c")]);
    let (first, second) = (&job.tasks[0], &job.tasks[1]);
    assert_eq!((&first.input, first.since), (&Some(json("[7]")), Some(START)));
    assert_eq!(
        (&second.input, &second.limits, second.counters),
        (&None, &Limits::none(), Counters::default())
    );
    assert_eq!(first.spec, plan.tasks()[0].spec);

    let leased = world.take("a").await;
    assert_eq!(
        (leased.flow.as_deref(), &*leased.tenant, leased.key.as_deref()),
        (Some("flow"), "acme", Some("k"))
    );
    assert_eq!(leased.spec, plan.tasks()[0].spec);
    let running = world.named(id, "a").await;
    assert_eq!((running.started, running.expires, running.since), (Some(START), Some(START + TTL), None));
}

pub(in crate::conformance::examples) async fn a_failure_ends_what_needs_it(world: &World) {
    let id = world.start(chain()).await;
    world.run_all(&["a"]).await;
    let answer = world.run("b", failed(ErrorClass::Permanent)).await;
    let dead = Some(DeadReason::Final);
    assert_eq!(answer, Settled::Applied { state: Failed, due: None, dead, job_ended: true });
    assert_eq!(world.states(id).await, [Completed, Failed, Skipped]);
    let skipped = world.named(id, "c").await;
    assert_eq!((skipped.ended, skipped.output, skipped.input), (Some(world.now()), None, None));
    assert_eq!(skipped.counters, Counters::default());
    let job = world.job(id).await;
    assert_eq!((job.state, job.output, job.ended), (JobState::Failed, None, Some(START)));
    let dead = world.dead().await;
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].task, &*dead[0].name), (TaskId { job: id, index: 1 }, "b"));
    assert_eq!((dead[0].flow.as_deref(), &*dead[0].message), (Some("flow"), "a permanent error"));
    assert_eq!(world.life(id).await, [JobState::Pending, JobState::Running, JobState::Failed]);
    let line = world.line().await;
    assert_eq!((line.completed, line.failed, line.skipped), (1, 1, 1), "what never ran counts too");
}

pub(in crate::conformance::examples) async fn tasks_retry_and_go_on_like_any(world: &World) {
    let id = world.start(chain()).await;
    world.run("a", failed(ErrorClass::Network)).await;
    assert_eq!((world.job_state(id).await, world.states(id).await[0]), (JobState::Running, Retrying));
    world.advance(Millis::secs(1));
    world.run("a", Outcome::Released).await;
    world.run("a", done()).await;
    assert_eq!(world.named(id, "a").await.counters, Counters { attempt: 3, failures: 1, crashes: 0 });
    world.take("b").await;
    world.advance(TTL);
    let swept = world.sweep(9).await;
    assert_eq!(swept.ended[0].1.state(), Some(Queued), "a vanished worker is found in flows too");
    world.run_all(&["b", "c"]).await;
    assert_eq!(world.job_state(id).await, JobState::Completed);
}

pub(in crate::conformance::examples) async fn tasks_stand_in_lines_of_their_own(world: &World) {
    let elsewhere = |name: &str| Task::new(name, "other").queue("slow");
    let id = world.start(flow([task("a"), elsewhere("b").needs(["a"]), task("c").needs(["b"])])).await;
    world.run_all(&["a"]).await;
    assert_eq!(world.lease(9).await, []);
    let leased = world.store.lease(ask_for(&["slow"], &["other"], 9)).await.unwrap().tasks;
    assert_eq!(leased.len(), 1);
    assert_eq!(&*leased[0].name, "b");
    world.complete(&leased[0]).await;
    world.run_all(&["c"]).await;
    let lines = world.store.stats().await.unwrap().lines;
    let counts: Vec<_> = lines.iter().map(|line| (&*line.queue, line.completed)).collect();
    assert_eq!(counts, [("default", 2), ("slow", 1)]);
    assert_eq!(world.states(id).await, [Completed; 3]);
}

pub(in crate::conformance::examples) async fn one_batch_ends_many_tasks_of_a_job(world: &World) {
    let id = world.start(flow([task("a"), task("b"), task("c").needs(["a", "b"])])).await;
    let leased = world.lease(9).await;
    assert_eq!(leased.len(), 2);
    let ends = leased.iter().map(|leased| crate::verbs::Settlement {
        held: leased.held(),
        outcome: done(),
        jitter: 0.0,
    });
    let answers = world.store.settle(ends.collect()).await.unwrap();
    assert!(answers.iter().all(|answer| answer.state() == Some(Completed)));
    assert_eq!(world.states(id).await, [Completed, Completed, Queued]);
    world.run_all(&["c"]).await;
}
