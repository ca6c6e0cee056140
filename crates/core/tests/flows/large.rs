//! Flows as large as they may be: deep, wide and dense ones end, and none takes for ever.

use crate::harness::{Job, flow, task};
use orchestrator_core::flow::advance::From;
use orchestrator_core::flow::plan::MAX_TASKS;
use orchestrator_core::flow::{Flow, Plan};
use orchestrator_core::{JobState, Json, Outcome};
use serde_json::json;

/// So many tasks, each of which needs those that are `back` places before it.
fn back(count: usize, back: impl Fn(usize) -> Vec<usize>) -> Flow {
    flow((0..count).map(|n| task(&format!("t{n}")).needs(back(n).into_iter().map(|need| format!("t{need}")))))
}

#[test]
fn a_deep_chain_is_followed_to_its_end() {
    let chain = || back(MAX_TASKS, |n| (n > 0).then(|| n - 1).into_iter().collect());
    let mut job = Job::new(chain(), json!({}));
    job.fail("t0");
    assert_eq!((job.run.state, job.run.over()), (JobState::Failed, MAX_TASKS));
    job.recover(From::Failures, true).unwrap();
    assert_eq!(job.run.over(), 0);
    let plan = chain().plan().unwrap();
    assert_eq!(plan.with_descendants(&[1]).len(), MAX_TASKS - 1);
    assert_eq!(plan.with_descendants(&[0, 7, 1]), (0..MAX_TASKS as u32).collect::<Vec<_>>());
}

#[test]
fn a_wide_diamond_joins_once() {
    let last = MAX_TASKS - 1;
    let wide = back(MAX_TASKS, |n| match n {
        0 => vec![],
        n if n == last => (1..last).collect(),
        _ => vec![0],
    });
    let mut job = Job::new(wide, json!({}));
    job.complete("t0", json!(null));
    for index in job.ready().into_iter().rev() {
        job.attempt(index, Outcome::Completed(Json::null()));
    }
    job.complete(&format!("t{last}"), json!(null));
    assert_eq!((job.run.state, job.entered.len()), (JobState::Completed, MAX_TASKS));
    assert_eq!(job.plan.with_descendants(&[0]).len(), MAX_TASKS);
}

#[test]
fn a_dense_graph_is_checked() {
    // As many needs as fit into a definition, and a template over the farthest of them.
    let dense = back(MAX_TASKS, |n| (n.saturating_sub(60)..n).collect());
    let plan = dense.output("{{ tasks.t0.output }}").plan().unwrap();
    assert_eq!(plan.tasks()[100].needs.len(), 60);
    assert_eq!(Plan::from_text(plan.text()).unwrap().hash(), plan.hash());
}

#[test]
fn many_mistakes_are_all_told() {
    let needs = |n: usize| (0..40).map(move |k| format!("no-such-{n}-{k}"));
    let wrong = flow((0..1_000).map(|n| task(&format!("some-task-{n}")).needs(needs(n))));
    let problems = wrong.plan().unwrap_err();
    assert_eq!(problems.len(), 40_000);
    let ring = back(MAX_TASKS, |n| vec![(n + 1) % MAX_TASKS]).plan().unwrap_err();
    assert_eq!(ring.len(), 1);
    assert!(ring[0].message.contains("t1998 needs t1999 needs t0"), "{}", ring[0]);
}

#[test]
fn a_large_list_fails_and_runs_again() {
    let each = task("each").for_each("{{ range(20000) }}").concurrency(3);
    let mut job = Job::new(flow([each, task("z").needs(["each"])]), json!({}));
    job.stop(JobState::TimedOut);
    job.recover(From::Failures, true).unwrap();
    assert_eq!(job.ready().len(), 3);
}
