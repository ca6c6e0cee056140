use super::TaskState::*;
use super::*;
use proptest::prelude::*;

fn task(state: TaskState, needs: &[u32]) -> TaskLook<'_> {
    TaskLook {
        state,
        needs,
        join: JoinRule::AllCompleted,
        usual: None,
        estimate: None,
        running_for: None,
        due_in: None,
        items: None,
    }
}

/// A chain, each task with an estimate in seconds.
fn chain(states: [TaskState; 3], estimates: [Option<u64>; 3]) -> Look<'static> {
    const NEEDS: [&[u32]; 3] = [&[], &[0], &[1]];
    let tasks = (0..3)
        .map(|at| TaskLook { estimate: estimates[at].map(Millis::secs), ..task(states[at], NEEDS[at]) });
    Look { state: JobState::Running, waits: false, tasks: tasks.collect() }
}

fn items(count: u32, ended: u32, failed: u32, running: u32, at_once: Option<u32>) -> Option<ItemsLook> {
    Some(ItemsLook { count, ended, failed, running, at_once })
}

#[track_caller]
fn assert_reached(job: &Look<'_>, percent: f64, eta: Option<u64>) {
    let found = reached(job);
    assert!((found.percent - percent).abs() < 0.01, "{found:?}");
    assert_eq!(found.eta, eta.map(Millis::secs), "{found:?}");
}

#[test]
fn tasks_weigh_what_they_take() {
    let third = 100.0 / 3.0;
    for (states, estimates, percent, eta) in [
        ([Pending, Pending, Pending], [None, None, None], 0.0, None),
        ([Completed, Queued, Pending], [None, None, None], third, None),
        ([Completed, Queued, Pending], [Some(10), Some(20), Some(70)], 10.0, Some(90)),
        ([Completed, Completed, Queued], [Some(10), Some(20), Some(70)], 30.0, Some(70)),
        // The mean of 10 and 30 stands in for the one that nobody knows.
        ([Completed, Queued, Pending], [Some(10), None, Some(30)], 100.0 / 6.0, Some(50)),
        ([Completed, Skipped, Queued], [Some(10), Some(20), Some(70)], 30.0, Some(70)),
        ([Skipped, Skipped, Queued], [None, Some(0), None], 2.0 * third, Some(0)),
    ] {
        let mut job = chain(states, estimates);
        let found = reached(&job);
        assert!((found.percent - percent).abs() < 0.01, "{job:?} {found:?}");
        assert_eq!(found.eta.map(|eta| eta.0 / 1000), eta, "{job:?}");
        job.state = JobState::Completed;
        assert_reached(&job, 100.0, None);
    }
}

#[test]
fn past_runs_tell_better_than_estimates() {
    let mut job = chain([Completed, Queued, Pending], [Some(50), Some(50), Some(50)]);
    for (task, usual) in job.tasks.iter_mut().zip([60, 30, 10]) {
        task.usual = Some(Millis::secs(usual));
    }
    assert_reached(&job, 60.0, Some(40));
    job.tasks[2].usual = None;
    assert_reached(&job, 100.0 * 60.0 / 140.0, Some(80));
}

#[test]
fn a_running_task_counts_by_its_time_and_is_never_nearly_done() {
    for (elapsed, percent, eta) in
        [(0, 25.0, 75), (10, 35.0, 65), (48, 72.5, 27), (50, 72.5, 27), (5000, 72.5, 27)]
    {
        let mut job = chain([Completed, Running, Pending], [Some(25), Some(50), Some(25)]);
        job.tasks[1].running_for = Some(Millis::secs(elapsed));
        let found = reached(&job);
        assert!((found.percent - percent).abs() < 0.51, "{elapsed}: {found:?}");
        // What an estimate leaves open is at least a twentieth of it.
        assert_eq!(found.eta.map(|eta| eta.0 / 1000), Some(eta), "{elapsed}");
    }
    let mut unknown = chain([Running, Pending, Pending], [None, None, None]);
    unknown.tasks[0].running_for = Some(Millis::secs(10));
    assert_reached(&unknown, 0.0, None);
}

#[test]
fn a_job_that_does_not_go_on_has_no_eta() {
    let states = [
        JobState::Paused,
        JobState::Pausing,
        JobState::Recovering,
        JobState::Failed,
        JobState::TimedOut,
        JobState::Cancelled,
    ];
    for state in states {
        let job = Look { state, ..chain([Completed, Pending, Pending], [Some(1), Some(1), Some(2)]) };
        assert_reached(&job, 25.0, None);
    }
    let mut waiting = chain([Pending, Pending, Pending], [Some(1), Some(1), Some(1)]);
    waiting.state = JobState::Pending;
    assert_reached(&waiting, 0.0, Some(3));
    waiting.waits = true;
    assert_reached(&waiting, 0.0, None);
}

#[test]
fn what_failed_and_what_never_ran_is_not_done() {
    let one = [Some(1), Some(1), Some(2)];
    let failed = Look { state: JobState::Failed, ..chain([Completed, Failed, Skipped], one) };
    assert_reached(&failed, 25.0, None);
    let at_once = Look { state: JobState::Failed, ..chain([Failed, Skipped, Skipped], one) };
    assert_reached(&at_once, 0.0, None);
    // A branch that failed is over; the other goes on.
    let (first, branch, after): (&[u32], &[u32], &[u32]) = (&[], &[0], &[1]);
    let mut tasks =
        vec![task(Completed, first), task(Failed, branch), task(Queued, branch), task(Pending, after)];
    for task in &mut tasks {
        task.estimate = Some(Millis::secs(10));
    }
    assert_reached(&Look { state: JobState::Running, waits: false, tasks }, 25.0, Some(10));
}

#[test]
fn the_longest_way_counts() {
    // A diamond, written with its end first.
    let needs: [&[u32]; 4] = [&[1, 2], &[3], &[3], &[]];
    let tasks = [(Pending, 5), (Pending, 30), (Pending, 10), (Running, 20)]
        .into_iter()
        .zip(needs)
        .map(|((state, secs), needs)| TaskLook { estimate: Some(Millis::secs(secs)), ..task(state, needs) });
    let mut job = Look { state: JobState::Running, waits: false, tasks: tasks.collect() };
    job.tasks[3].running_for = Some(Millis::secs(15));
    assert_reached(&job, 100.0 * 15.0 / 65.0, Some(5 + 30 + 5));
    // What runs only after a failure is not waited for.
    job.tasks[0].join = JoinRule::AnyFailed;
    assert_reached(&job, 100.0 * 15.0 / 65.0, Some(5 + 30));
}

#[test]
fn a_retry_is_waited_for() {
    let mut job = chain([Retrying, Pending, Pending], [Some(10), Some(10), Some(10)]);
    job.tasks[0].due_in = Some(Millis::secs(4));
    assert_reached(&job, 0.0, Some(34));
}

#[test]
fn a_for_each_counts_by_its_items() {
    // Ten seconds each, and five for what comes after.
    for (of, percent, eta) in [
        (items(100, 0, 0, 4, None), 50.0, Some(250 + 5)),
        (items(100, 50, 0, 4, None), 66.67, Some(125 + 5)),
        (items(100, 50, 20, 5, None), 60.0, Some(100 + 5)),
        (items(100, 96, 0, 0, Some(2)), 82.0, Some(20 + 5)),
        // Nobody knows how many will run at once.
        (items(100, 0, 0, 0, None), 50.0, None),
    ] {
        let mut job = chain([Completed, Running, Pending], [Some(15), Some(10), Some(5)]);
        job.tasks[1].items = of;
        assert_reached(&job, percent, eta);
    }
}

#[test]
fn each_task_tells_how_far_it_is() {
    let mut job = chain([Completed, Running, Pending], [Some(10), Some(10), Some(10)]);
    job.tasks[1].running_for = Some(Millis::secs(4));
    assert_eq!(reached(&job).tasks, [100.0, 40.0, 0.0]);
}

proptest! {
    /// The time that passes, an end, and what is learned of it: none makes the percentage fall.
    #[test]
    fn it_never_falls_while_a_chain_goes_on(
        estimates in prop::array::uniform3(prop::option::of(1u64..500)),
        took in prop::array::uniform3(1u64..2000),
    ) {
        let mut job = chain([Pending, Pending, Pending], estimates);
        let mut before = 0.0;
        for (at, took) in took.into_iter().enumerate() {
            job.tasks[at].state = Running;
            for part in 0..=4 {
                job.tasks[at].running_for = Some(Millis(took * 250 * part));
                let now = reached(&job).percent;
                prop_assert!(now >= before - 1e-9, "{now} after {before}");
                before = now;
            }
            job.tasks[at] = TaskLook {
                state: Completed, running_for: None, usual: Some(Millis::secs(took)), ..job.tasks[at].clone()
            };
            let now = reached(&job).percent;
            prop_assert!(now >= before - 1e-9, "{now} after {before}");
            before = now;
        }
        job.state = JobState::Completed;
        prop_assert_eq!(reached(&job).percent, 100.0);
    }
}
