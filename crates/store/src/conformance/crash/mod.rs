//! Killed in the middle of a commit, and opened again.
//!
//! One process runs [`work_until_killed`] and tells, line by line, what the store has answered. When
//! it is dead another process opens what it left behind: [`check`] holds every told line against the
//! store, [`heal`] runs what was left lying to its end. Both need a store whose clock moves by itself.

mod check;
mod heal;
mod work;

pub use check::check;
pub use heal::heal;
pub use work::work_until_killed;

use super::world::ask_for;
use crate::verbs::{Held, LeaseAsk};
use orchestrator_core::spec::DEFAULT_QUEUE;
use orchestrator_core::{JobId, Json, TaskId, TaskState};
use std::fmt;

const HANDLER: &str = "crash";
/// A third of the jobs runs under this limit key, which allows so many.
const CAP: (&str, u32) = ("slow:a", 2);

/// One line of what a killed process has told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Submitted(u32, JobId),
    Leased(Held),
    Settled(Held, TaskState),
    Stale(Held),
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Told::Submitted(n, id) => write!(f, "submitted {n} {id}"),
            Told::Leased(held) => write!(f, "leased {} {}", held.task, held.attempt),
            Told::Settled(held, state) => write!(f, "settled {} {} {state}", held.task, held.attempt),
            Told::Stale(held) => write!(f, "stale {} {}", held.task, held.attempt),
        }
    }
}

impl Told {
    fn read(line: &str) -> Option<Told> {
        let held = |task: &str, attempt: &str| {
            let (job, index) = task.split_once('/')?;
            let task = TaskId { job: job.parse().ok()?, index: index.parse().ok()? };
            Some(Held { task, attempt: attempt.parse().ok()? })
        };
        match *line.split(' ').collect::<Vec<_>>() {
            ["submitted", n, id] => Some(Told::Submitted(n.parse().ok()?, id.parse().ok()?)),
            ["leased", task, attempt] => held(task, attempt).map(Told::Leased),
            ["settled", task, attempt, state] => {
                Some(Told::Settled(held(task, attempt)?, TaskState::from_word(state)?))
            }
            ["stale", task, attempt] => held(task, attempt).map(Told::Stale),
            _ => None,
        }
    }
}

/// The payload of the jobs with key `n`.
fn payload(n: u32) -> Json {
    super::world::json(&format!("{{\"n\":{n}}}"))
}

fn ask(slots: u32) -> LeaseAsk {
    ask_for(&[DEFAULT_QUEUE], &[HANDLER], slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::model::ModelStore;
    use orchestrator_core::Timestamp;
    use std::sync::Arc;
    use tokio::sync::Notify;

    /// Works on a fresh model until so many lines are told; an answer that is waited for when it stops is lost.
    async fn killed_after(lines: usize) -> (Arc<ModelStore>, Vec<String>) {
        let store = Arc::new(ModelStore::new(Arc::new(SystemClock)));
        let mut log = vec![];
        let enough = Notify::new();
        let mut tell = |line| {
            log.push(line);
            if log.len() >= lines {
                enough.notify_one();
            }
        };
        tokio::select! {
            biased;
            () = enough.notified() => {}
            () = work_until_killed(&*store, 7, &mut tell) => {}
        }
        (store, log)
    }

    #[tokio::test]
    async fn the_model_keeps_and_ends_everything() {
        let (store, log) = killed_after(600).await;
        for word in ["submitted", "leased", "settled"] {
            assert!(log.iter().any(|line| line.starts_with(word)), "nothing was {word}");
        }
        assert!(log.iter().any(|line| line.contains("/2 ")), "no flow got far");
        check(&*store, &log).await;
        heal(&*store).await;
        check(&*store, &log).await;
    }

    #[tokio::test]
    async fn a_false_ack_is_noticed() {
        let (store, log) = killed_after(300).await;
        let lost = JobId::from_parts(Timestamp::from_millis(1), 1);
        let leased = log.iter().find_map(|line| line.strip_prefix("leased ")).expect("some were leased");
        let (task, _) = leased.split_once(' ').expect("a task and its attempt");
        let (job, _) = task.split_once('/').expect("a job and an index");
        for claim in [
            format!("submitted 1 {lost}"),
            format!("submitted 1000000 {job}"),
            format!("leased {task} 99"),
            format!("settled {task} 1 timed_out"),
            format!("stale {task} 99"),
            format!("leased {job}/77 1"),
            "something else".to_owned(),
        ] {
            let (store, told) = (store.clone(), vec![claim.clone()]);
            let checked = tokio::spawn(async move { check(&*store, &told).await });
            assert!(checked.await.is_err_and(|error| error.is_panic()), "it was believed: {claim}");
        }
    }
}
