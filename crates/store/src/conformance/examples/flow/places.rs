//! Examples of where tasks of flows stand in line: priorities, limits, moments; and of finding them.

use crate::conformance::flows::*;
use crate::conformance::world::*;
use crate::verbs::{Command, Held};
use crate::views::{JobFilter, LineFilter, Page};
use orchestrator_core::TaskState::{Failed, Pending, Queued};
use orchestrator_core::flow::Flow;
use orchestrator_core::order::Priority;
use orchestrator_core::outcome::Leg;
use orchestrator_core::{ErrorClass, JobId, JobState, LimitRule, Millis, NewJob, Outcome, TaskId};

pub(in crate::conformance::examples) async fn a_task_may_be_more_urgent_than_its_job(world: &World) {
    let flow =
        flow([task("low").priority(Priority::Low), task("own"), task("high").priority(Priority::High)]);
    world.add(new(flow.priority(Priority::Normal))).await;
    world.add(job()).await;
    world.add(job().priority(Priority::Critical)).await;
    let names: Vec<_> = world.lease(9).await.iter().map(|leased| leased.name.to_string()).collect();
    assert_eq!(names, ["main", "high", "own", "main", "low"]);
}

pub(in crate::conformance::examples) async fn a_flow_may_be_more_urgent_than_others(world: &World) {
    world.add(job()).await;
    let id = world.start(flow([task("a")]).priority(Priority::High)).await;
    assert_eq!(world.job(id).await.priority, Priority::High);
    let first = world.lease_one().await;
    assert_eq!(first.task.job, id);
    let low = world.add(new(flow([task("b")]).priority(Priority::High)).priority(Priority::Low)).await;
    assert_eq!(world.job(low).await.priority, Priority::Low, "the submit has the last word");
    assert_eq!(world.lease_one().await.name.to_string(), "main");
}

pub(in crate::conformance::examples) async fn limits_come_from_the_input(world: &World) {
    world.limit("host:*", Some(LimitRule::at_most(1))).await;
    let fetch = task("fetch").for_each("{{ input }}").limit("host", "{{ item }}").limit("kind", "fetch");
    let id = world.start_with(flow([fetch]), r#"["a","b","a"]"#).await;
    let items = world.items_of(id, "fetch").await;
    assert_eq!(items[0].limits, limits(&["host:a", "kind:fetch"]));
    let leased = world.lease(9).await;
    let names: Vec<_> = leased.iter().map(|leased| leased.name.to_string()).collect();
    assert_eq!(names, ["fetch[0]", "fetch[1]"], "the third waits for host a");
    assert_eq!(leased[1].limits, limits(&["host:b", "kind:fetch"]));
    assert_eq!((world.running("host:a").await, world.running("kind:fetch").await), (1, 2));
    world.complete(&leased[0]).await;
    world.run_all(&["fetch[2]"]).await;
}

pub(in crate::conformance::examples) async fn a_bad_limit_is_a_failure(world: &World) {
    let id = world.start_with(flow([task("a").limit("host", "{{ input }}")]), "\"\"").await;
    assert_eq!(world.states(id).await, [Failed]);
    assert!(world.dead().await[0].message.starts_with("limits: "), "{:?}", world.dead().await);
}

pub(in crate::conformance::examples) async fn a_recovered_item_has_its_own_limits_again(world: &World) {
    let id = world
        .start_with(flow([task("each").for_each("{{ input }}").limit("host", "{{ item }}")]), "[\"a\"]")
        .await;
    let leg = Leg { checkpoint: json("1"), limits: limits(&["host:b"]), delay: Millis(0) };
    world.run("each[0]", Outcome::Continue(leg)).await;
    world.run("each[0]", failed(ErrorClass::Permanent)).await;
    assert_eq!(
        world.items_of(id, "each").await[0].limits,
        limits(&["host:b"]),
        "those under which it ran last"
    );
    world.control(recover(id, None)).await;
    let again = world.take("each[0]").await;
    assert_eq!((again.limits, again.checkpoint), (limits(&["host:a"]), None));
}

pub(in crate::conformance::examples) async fn a_job_may_wait_for_its_moment(world: &World) {
    let at = START + Millis::secs(60);
    let flow = flow([task("a"), task("each").for_each("{{ input }}").concurrency(1), task("z").needs(["a"])]);
    let id = world.add(new(flow).payload(json("[1,2]")).run_at(at)).await;
    let first = world.named(id, "a").await;
    assert_eq!((first.state, first.due, first.since), (Queued, Some(at), None));
    assert_eq!(world.job(id).await.deadline, Some(at + Millis::mins(30)), "its time runs from then on");
    let items = world.items_of(id, "each").await;
    assert_eq!((items[0].state, items[0].due), (Queued, Some(at)));
    assert_eq!((items[1].state, items[1].due), (Pending, None));
    let grant = world.grant(9).await;
    assert_eq!((grant.tasks.len(), grant.next_at, world.line().await.scheduled), (0, Some(at), 2));
    world.advance(Millis::secs(60));
    world.run_all(&["a"]).await;
    assert_eq!(world.named(id, "z").await.due, None, "only the first ones waited");
    world.run_all(&["z", "each[0]"]).await;
    assert_eq!(world.items_of(id, "each").await[1].due, None);
    assert_eq!(world.lease(9).await.len(), 1);
}

pub(in crate::conformance::examples) async fn what_is_started_and_what_is_new_take_turns(world: &World) {
    for _ in 0..4 {
        world.start(chain()).await;
    }
    let mut served = vec![];
    while let Some(leased) = world.lease(1).await.pop() {
        world.complete(&leased).await;
        served.push(leased.name.to_string());
    }
    let ended = served.iter().position(|name| name == "c").expect("every job ends");
    let started = served.iter().rposition(|name| name == "a").expect("every job starts");
    assert!(ended < started, "no job comes to its end before all have started: {served:?}");
    assert_eq!(served.len(), 12);
}

pub(in crate::conformance::examples) async fn leases_can_be_asked_after(world: &World) {
    let id = world.start(chain()).await;
    let a = world.take("a").await.held();
    let never = Held { task: TaskId { job: id, index: 1 }, attempt: 1 };
    let older = Held { attempt: 0, ..a };
    let unknown = Held { task: TaskId { job: JobId::from_parts(START, 0xbad), index: 0 }, attempt: 1 };
    let held = async || world.store.held(vec![a, never, older, unknown, a]).await.unwrap();
    assert_eq!(held().await, [true, false, false, false, true]);
    world.settle(a, Outcome::Released).await;
    assert_eq!(held().await, [false; 5]);
    assert_eq!(world.store.held(vec![]).await.unwrap(), [false; 0]);
}

pub(in crate::conformance::examples) async fn tasks_can_be_looked_at_alone(world: &World) {
    let id = world.start(chain()).await;
    world.run_all(&["a"]).await;
    for task in world.job(id).await.tasks {
        let alone = world.store.task(TaskId { job: id, index: task.index }).await.unwrap();
        assert_eq!(alone, Some(task));
    }
    let queue = world.add(job()).await;
    let alone = world.store.task(TaskId::only(queue)).await.unwrap();
    assert_eq!(alone, Some(world.task(queue).await));
    for none in [TaskId { job: id, index: 3 }, TaskId { job: JobId::from_parts(START, 0xbad), index: 0 }] {
        assert_eq!(world.store.task(none).await.unwrap(), None, "{none}");
    }
}

pub(in crate::conformance::examples) async fn ids_are_found_by_their_beginning(world: &World) {
    let mut ids = vec![];
    for _ in 0..5 {
        ids.push(world.add(job()).await);
        world.advance(Millis(1));
    }
    ids.reverse();
    let common: String = ids[0].to_string().chars().take(8).collect();
    let find = async |prefix: &str, limit| world.store.ids(prefix.to_owned(), limit).await.unwrap();
    assert_eq!(find(&common, 9).await, ids, "the newest first");
    assert_eq!(find(&common, 2).await, ids[..2]);
    assert_eq!(find(&ids[3].to_string(), 9).await, [ids[3]]);
    assert_eq!(find("", 9).await, ids);
    assert_eq!(find("ffffffff", 9).await, []);
    assert_eq!(find("not an id%", 9).await, []);
}

pub(in crate::conformance::examples) async fn jobs_are_listed_by_what_they_are(world: &World) {
    let named = |name: &str| NewJob::of_flow(plan(Flow::new(name).task(task("a")).task(on("b", "other"))));
    let done = world.add(job()).await;
    world.work_off(1).await;
    let bad = world.add(named("f").priority(Priority::Critical)).await;
    world.fail(&world.lease_one().await).await;
    let b = world.store.lease(ask_for(&["default"], &["other"], 1)).await.unwrap().tasks;
    world.complete(&b[0]).await;
    let live = world.add(named("f")).await;
    let other = world.add(named("g")).await;
    let spent = world.add(NewJob::of_flow(plan(flow([task("x").when("input.n")]).max_recoveries(0)))).await;
    world.control(Command::Pause(other)).await;
    let list = async |filter: JobFilter, page: Page| {
        let jobs = world.store.list(filter, page).await.unwrap();
        jobs.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let by = async |filter: JobFilter| list(filter, everything()).await;
    let states = |states: &[JobState]| JobFilter { states: states.to_vec(), ..JobFilter::default() };
    assert_eq!(by(states(&[JobState::Failed])).await, [bad, spent]);
    assert_eq!(by(states(&[JobState::Completed, JobState::Paused])).await, [done, other]);
    assert_eq!(by(JobFilter { flow: Some("f".into()), ..JobFilter::default() }).await, [bad, live]);
    assert_eq!(by(JobFilter { recoverable: true, ..JobFilter::default() }).await, [bad]);
    let line = LineFilter { queue: None, handler: Some("other".into()) };
    assert_eq!(by(JobFilter { line, ..JobFilter::default() }).await, [bad, live, other], "any of its tasks");
    assert_eq!(by(JobFilter { task: Some(Failed), ..JobFilter::default() }).await, [bad, spent]);
    let newest = || JobFilter { newest_first: true, ..JobFilter::default() };
    assert_eq!(by(newest()).await, [spent, other, live, bad, done]);
    assert_eq!(list(newest(), Page { after: Some(other), limit: 2 }).await, [live, bad]);
    assert_eq!(list(newest(), Page { after: Some(done), limit: 2 }).await, []);
}
