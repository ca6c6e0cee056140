//! The states of jobs and tasks, and the one table of legal moves.
//!
//! Whoever changes a state does it through a move that stands here; the diagram in
//! `docs/states.md` is made from these tables and a test fails when it is stale.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A word that names no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is no state; there are {known}")]
pub struct BadState {
    word: String,
    known: String,
}

macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every state, in the order of a usual life.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The word for the state in every interface.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// The state that a word names.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some($name::$variant),)* _ => None }
            }
        }

        impl FromStr for $name {
            type Err = BadState;
            fn from_str(word: &str) -> Result<Self, BadState> {
                $name::from_word(word).ok_or_else(|| BadState {
                    word: word.chars().take(40).collect(),
                    known: $name::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

states! {
    /// Where a job stands.
    JobState {
        /// Accepted; nothing of it has started.
        Pending = "pending",
        /// Some task has started.
        Running = "running",
        /// Asked to pause; running attempts may finish, nothing new starts.
        Pausing = "pausing",
        /// Paused: nothing runs and nothing starts.
        Paused = "paused",
        /// Being taken up again after it had ended badly.
        Recovering = "recovering",
        /// Ended well.
        Completed = "completed",
        /// Ended by a failed task.
        Failed = "failed",
        /// Ended by its deadline.
        TimedOut = "timed_out",
        /// Ended on request.
        Cancelled = "cancelled",
    }
}

states! {
    /// Where a task stands.
    TaskState {
        /// Waits for the tasks that it needs.
        Pending = "pending",
        /// May run as soon as a worker and its limits allow.
        Queued = "queued",
        /// Held by a worker under a lease.
        Running = "running",
        /// Failed; waits for its next attempt to fall due.
        Retrying = "retrying",
        /// Ended well.
        Completed = "completed",
        /// Ended without a result, and that is fine.
        Skipped = "skipped",
        /// Ended badly: a final error, retries used up, or a poison.
        Failed = "failed",
        /// Ended by its job's deadline.
        TimedOut = "timed_out",
        /// Ended on request.
        Cancelled = "cancelled",
    }
}

/// One legal move: from, why, to.
pub type Move<S> = (S, &'static str, S);

/// Every legal move of a job.
pub const JOB_MOVES: &[Move<JobState>] = {
    use JobState::*;
    &[
        (Pending, "first task starts", Running),
        (Pending, "cancel", Cancelled),
        (Pending, "deadline", TimedOut),
        (Pending, "pause", Paused),
        (Running, "all tasks ended well", Completed),
        (Running, "a task failed", Failed),
        (Running, "deadline", TimedOut),
        (Running, "cancel", Cancelled),
        (Running, "pause", Pausing),
        (Running, "pause, nothing runs", Paused),
        (Pausing, "last attempt ended", Paused),
        (Pausing, "resume", Running),
        (Pausing, "cancel", Cancelled),
        (Pausing, "all tasks ended well", Completed),
        (Pausing, "a task failed", Failed),
        (Paused, "resume", Running),
        (Paused, "cancel", Cancelled),
        (Paused, "begins, and all tasks are skipped or empty", Completed),
        (Paused, "begins, and a task cannot start", Failed),
        (Pending, "all tasks skipped or empty", Completed),
        (Pending, "a task cannot start", Failed),
        (Failed, "recover", Recovering),
        (TimedOut, "recover", Recovering),
        (Recovering, "tasks reset", Running),
        (Recovering, "cancel", Cancelled),
    ]
};

/// Every legal move of a task.
pub const TASK_MOVES: &[Move<TaskState>] = {
    use TaskState::*;
    &[
        (Pending, "needs met", Queued),
        (Pending, "condition or join rule not met", Skipped),
        (Pending, "for_each expands", Running),
        (Pending, "for_each of nothing", Completed),
        (Pending, "template cannot resolve", Failed),
        (Pending, "cancel", Cancelled),
        (Pending, "deadline", TimedOut),
        (Queued, "lease", Running),
        (Queued, "cancel", Cancelled),
        (Queued, "deadline", TimedOut),
        (Running, "completed", Completed),
        (Running, "skipped", Skipped),
        (Running, "released, continued or crashed", Queued),
        (Running, "failed, retries left", Retrying),
        (Running, "failed, final", Failed),
        (Running, "cancel", Cancelled),
        (Running, "deadline", TimedOut),
        (Retrying, "due", Queued),
        (Retrying, "cancel", Cancelled),
        (Retrying, "deadline", TimedOut),
        (Failed, "retry", Queued),
        (TimedOut, "retry", Queued),
        (Failed, "recover", Pending),
        (TimedOut, "recover", Pending),
        (Completed, "recover", Pending),
        (Skipped, "recover", Pending),
    ]
};

impl JobState {
    /// Whether the job has ended. Only an operator's recovery leads out of an end.
    pub const fn is_terminal(self) -> bool {
        matches!(self, JobState::Completed | JobState::Failed | JobState::TimedOut | JobState::Cancelled)
    }

    /// Whether the table allows this move.
    pub fn can_become(self, to: JobState) -> bool {
        JOB_MOVES.iter().any(|(from, _, into)| *from == self && *into == to)
    }

    /// The state of a job that has a single task, which says it all.
    pub const fn of_only_task(task: TaskState, started: bool) -> JobState {
        match task {
            TaskState::Pending | TaskState::Queued if !started => JobState::Pending,
            TaskState::Pending | TaskState::Queued | TaskState::Running | TaskState::Retrying => {
                JobState::Running
            }
            TaskState::Completed | TaskState::Skipped => JobState::Completed,
            TaskState::Failed => JobState::Failed,
            TaskState::TimedOut => JobState::TimedOut,
            TaskState::Cancelled => JobState::Cancelled,
        }
    }
}

impl TaskState {
    /// Whether the task has ended. Only an operator's recovery leads out of an end.
    pub const fn is_terminal(self) -> bool {
        use TaskState::*;
        matches!(self, Completed | Skipped | Failed | TimedOut | Cancelled)
    }

    /// Whether the table allows this move.
    pub fn can_become(self, to: TaskState) -> bool {
        TASK_MOVES.iter().any(|(from, _, into)| *from == self && *into == to)
    }
}

/// Both tables as one Markdown page with Mermaid diagrams: the text of `docs/states.md`.
pub fn diagram() -> String {
    fn chart<S: Copy + PartialEq + fmt::Display>(
        title: &str,
        first: S,
        ends: &[S],
        moves: &[Move<S>],
    ) -> String {
        let mut text = format!("## {title}\n\n```mermaid\nstateDiagram-v2\n    [*] --> {first}\n");
        for (from, why, to) in moves {
            text.push_str(&format!("    {from} --> {to}: {why}\n"));
        }
        for end in ends {
            text.push_str(&format!("    {end} --> [*]\n"));
        }
        text.push_str("```\n");
        text
    }
    let jobs: Vec<_> = JobState::ALL.iter().copied().filter(|s| s.is_terminal()).collect();
    let tasks: Vec<_> = TaskState::ALL.iter().copied().filter(|s| s.is_terminal()).collect();
    format!(
        "# States\n\nGenerated from the tables in `crates/core/src/state.rs`; \
         `UPDATE_DOCS=1 cargo test -p orchestrator-core` writes it anew.\n\n{}\n{}",
        chart("Jobs", JobState::Pending, &jobs, JOB_MOVES),
        chart("Tasks", TaskState::Pending, &tasks, TASK_MOVES)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_move_stands_twice() {
        let jobs: BTreeSet<_> = JOB_MOVES.iter().map(|(a, _, b)| (a, b)).collect();
        let tasks: BTreeSet<_> = TASK_MOVES.iter().map(|(a, _, b)| (a, b)).collect();
        assert_eq!(jobs.len(), JOB_MOVES.len());
        assert_eq!(tasks.len(), TASK_MOVES.len());
    }

    #[test]
    fn only_recovery_leads_out_of_an_end() {
        for (from, why, _) in JOB_MOVES.iter().filter(|(from, _, _)| from.is_terminal()) {
            assert_eq!(*why, "recover", "{from}");
        }
        for (from, why, _) in TASK_MOVES.iter().filter(|(from, _, _)| from.is_terminal()) {
            assert!(["retry", "recover"].contains(why), "{from}");
        }
        assert!(!TaskState::Cancelled.can_become(TaskState::Queued));
    }

    #[test]
    fn every_state_but_the_first_can_be_reached_and_every_live_one_left() {
        for state in TaskState::ALL {
            assert!(
                *state == TaskState::Pending || TASK_MOVES.iter().any(|(_, _, to)| to == state),
                "{state}"
            );
            assert!(state.is_terminal() || TASK_MOVES.iter().any(|(from, _, _)| from == state), "{state}");
        }
        for state in JobState::ALL {
            assert!(*state == JobState::Pending || JOB_MOVES.iter().any(|(_, _, to)| to == state), "{state}");
            assert!(state.is_terminal() || JOB_MOVES.iter().any(|(from, _, _)| from == state), "{state}");
        }
    }

    #[test]
    fn words_and_states_name_each_other() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_word(state.as_str()), Some(*state));
        }
        assert_eq!(JobState::from_word("timed_out"), Some(JobState::TimedOut));
        assert_eq!(JobState::from_word("no such state"), None);
    }
}
