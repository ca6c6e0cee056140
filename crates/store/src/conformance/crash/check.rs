//! What must be true of what a killed process left behind.

use super::{CAP, Told, payload};
use crate::conformance::replay::Lives;
use crate::conformance::world::{ALL, everything, key};
use crate::contract::Store;
use crate::verbs::Held;
use crate::views::*;
use orchestrator_core::{JobId, JobState, TaskId, TaskState};
use std::collections::BTreeMap;

/// Holds a store that was opened again against all that its users told before they were killed.
/// Nobody else may use it meanwhile.
pub async fn check(store: &dyn Store, log: &[String]) {
    let jobs = store.list(JobFilter::default(), everything()).await.expect("list");
    let lives = Lives::of(store).await;
    lives.agree_with(store, &jobs).await;
    nothing_ran_again(&lives);
    keys_have_one_job(&jobs);
    let left = Left::of(store, jobs, lives).await;
    left.counts_agree(store).await;
    for line in log {
        let told = Told::read(line).unwrap_or_else(|| panic!("nobody tells such a line: {line:?}"));
        left.holds(told);
    }
}

/// What is there now, and how it came to be.
struct Left {
    jobs: BTreeMap<JobId, JobView>,
    tasks: BTreeMap<TaskId, TaskView>,
    lives: Lives,
}

impl Left {
    async fn of(store: &dyn Store, jobs: Vec<JobView>, lives: Lives) -> Left {
        let mut tasks = BTreeMap::new();
        for job in &jobs {
            let mut all = job.tasks.clone();
            for group in job.tasks.iter().filter(|task| task.items.is_some()) {
                let group = TaskId { job: job.id, index: group.index };
                all.extend(store.items(group, None, ALL).await.expect("items"));
            }
            tasks.extend(all.into_iter().map(|task| (TaskId { job: job.id, index: task.index }, task)));
        }
        Left { jobs: jobs.into_iter().map(|job| (job.id, job)).collect(), tasks, lives }
    }

    /// Whether what was told is still so, or has legally gone on from there.
    fn holds(&self, told: Told) {
        match told {
            Told::Submitted(n, id) => {
                let job =
                    self.jobs.get(&id).unwrap_or_else(|| panic!("told {told}, but there is no such job"));
                assert_eq!(job.key.as_deref(), Some(&*n.to_string()), "told {told}");
                assert!(
                    job.payload.same_value(&payload(n)),
                    "told {told}, but the payload is {}",
                    job.payload
                );
            }
            Told::Leased(held) => {
                self.after_start(told, held);
            }
            Told::Settled(held, state) => {
                let next = self.after_start(told, held);
                assert_eq!(next, Some((state, held.attempt)), "told {told}; in {:?}", self.life(held));
                if state.is_terminal() {
                    assert_eq!(self.tasks[&held.task].state, state, "told {told}, and ends are for ever");
                }
            }
            Told::Stale(held) => {
                let next = self.after_start(told, held);
                assert!(
                    next.is_some(),
                    "told {told}, but nobody had ended the attempt: {:?}",
                    self.life(held)
                );
                let task = &self.tasks[&held.task];
                let evidence = |record: &AttemptRecord| {
                    record.attempt == held.attempt && record.how == AttemptEnd::Stale
                };
                assert!(task.history.iter().any(evidence), "told {told}, but it is not on record: {task:?}");
            }
        }
    }

    fn life(&self, held: Held) -> impl std::fmt::Debug {
        self.lives.tasks.get(&held.task)
    }

    /// Finds the attempt's start in the journal, and says what came of it.
    fn after_start(&self, told: Told, held: Held) -> Option<(TaskState, u32)> {
        let task =
            self.tasks.get(&held.task).unwrap_or_else(|| panic!("told {told}, but there is no such task"));
        assert!(task.counters.attempt >= held.attempt, "told {told}, but the attempts fell behind: {task:?}");
        let life = self.lives.tasks.get(&held.task).into_iter().flatten();
        let mut life = life.skip_while(|event| event.attempt < held.attempt);
        let start = life.next().map(|event| (event.state, event.attempt));
        let expected = Some((TaskState::Running, held.attempt));
        assert_eq!(start, expected, "told {told}; its start in {:?}", self.life(held));
        life.next().map(|event| (event.state, event.attempt))
    }

    /// The counts of the lines, and the slots in use, are those of the tasks.
    async fn counts_agree(&self, store: &dyn Store) {
        let count = |wanted: &dyn Fn(&TaskView) -> bool| {
            self.tasks.values().filter(|task| wanted(task)).count() as u64
        };
        let queued = |waits: bool| {
            move |task: &TaskView| task.state == TaskState::Queued && task.due.is_some() == waits
        };
        let state = |state: TaskState| count(&|task| task.state == state);
        let expected = [
            count(&queued(false)),
            count(&queued(true)),
            state(TaskState::Retrying),
            count(&|task| task.worker.is_some()),
            state(TaskState::Completed),
            state(TaskState::Skipped),
            state(TaskState::Failed),
        ];
        let mut counted = [0; 7];
        for line in store.stats().await.expect("stats").lines {
            let ended = [line.completed, line.skipped, line.failed];
            let live = [line.ready + line.parked, line.scheduled, line.retrying, line.running];
            counted.iter_mut().zip(live.into_iter().chain(ended)).for_each(|(sum, n)| *sum += n);
        }
        assert_eq!(counted, expected, "in line, scheduled, retrying, running, completed, skipped, failed");
        let slots = count(&|task| task.worker.is_some() && task.limits.keys().contains(&key(CAP.0)));
        assert!(slots <= u64::from(CAP.1), "{slots} run under {CAP:?}");
        let limits = store.limits().await.expect("limits");
        let used = limits.iter().find(|limit| limit.key == key(CAP.0)).map_or(0, |limit| limit.running);
        assert_eq!(u64::from(used), slots, "slots of {}", CAP.0);
    }
}

/// Nobody asked for that, so what has ended stays as it is.
fn nothing_ran_again(lives: &Lives) {
    for life in lives.tasks.values() {
        let end = life.iter().position(|event| event.state.is_terminal());
        assert!(end.is_none_or(|end| end + 1 == life.len()), "something happened after the end: {life:?}");
    }
}

/// Of the jobs with one key only the last may be live or have ended well, and each names the one before.
fn keys_have_one_job(jobs: &[JobView]) {
    let mut holders: BTreeMap<&str, &JobView> = BTreeMap::new();
    for job in jobs {
        let key = job.key.as_deref().unwrap_or_else(|| panic!("it was submitted with a key: {job:?}"));
        let before = holders.insert(key, job);
        assert_eq!(job.previous, before.map(|job| job.id), "the job that had key {key} before");
        if let Some(before) = before {
            assert_eq!(before.state, JobState::Failed, "key {key} was taken from {before:?}");
        }
    }
}
