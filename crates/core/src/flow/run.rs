//! Where a job of many tasks stands: the one record that changes while it runs.
//!
//! It is small (a byte per task of the flow, a few numbers per `for_each`), so a store reads and writes it
//! whole, once per commit. Whoever holds it decides every move of the job without reading any other
//! task: the job's record is its lock, and no counter of it can drift from what it counts.

use super::plan::Plan;
use crate::planted::{Bug, planted};
use crate::state::{JobState, TaskState};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its state.
    pub state: JobState,
    /// Its tasks, in the order of the plan.
    pub tasks: Vec<Standing>,
    /// The tasks that a `for_each` was expanded into.
    pub groups: Vec<Group>,
    /// The index that the next such task gets.
    pub next: u32,
    /// How often it was recovered.
    pub recoveries: u32,
    /// When its first task started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// When its time is up. Its clock starts when the job may start, and stands still while it is paused.
    pub deadline: Option<Timestamp>,
    /// Since when it is pausing or paused.
    pub paused: Option<Timestamp>,
    /// How many jobs it waits for.
    pub waits: u32,
    /// The last attempts of tasks that were reset, in order of their index: numbers go on from there, so
    /// that no write of an attempt before is taken for one of an attempt after.
    pub attempts: Vec<(u32, u32)>,
    /// Why it ended as it did, where no task tells.
    pub reason: Option<String>,
}

/// Where a task of the plan stands, as far as others depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Something that it needs has not ended.
    Pending,
    /// It is in line, waits for a moment, runs, or has been expanded.
    Live,
    /// Ended well.
    Completed,
    /// Ended without a result, and that is fine.
    Skipped,
    /// Never ran, because something before it went wrong.
    Blocked,
    /// Ended badly.
    Failed,
    /// Ended by the job's deadline.
    TimedOut,
    /// Ended on request.
    Cancelled,
}

impl Standing {
    /// Whether it has ended.
    pub const fn is_over(self) -> bool {
        !matches!(self, Standing::Pending | Standing::Live)
    }

    /// Whether it went wrong, or never came to run because something before it did.
    pub const fn is_bad(self) -> bool {
        matches!(self, Standing::Failed | Standing::TimedOut | Standing::Cancelled | Standing::Blocked)
    }

    /// The state that an ended task shows.
    pub const fn state(self) -> TaskState {
        match self {
            Standing::Pending => TaskState::Pending,
            Standing::Live => TaskState::Running,
            Standing::Completed => TaskState::Completed,
            Standing::Skipped | Standing::Blocked => TaskState::Skipped,
            Standing::Failed => TaskState::Failed,
            Standing::TimedOut => TaskState::TimedOut,
            Standing::Cancelled => TaskState::Cancelled,
        }
    }

    /// The standing of a task that ended in a state.
    pub const fn of_end(state: TaskState) -> Standing {
        match state {
            TaskState::Completed => Standing::Completed,
            TaskState::Skipped => Standing::Skipped,
            TaskState::TimedOut => Standing::TimedOut,
            TaskState::Cancelled => Standing::Cancelled,
            TaskState::Failed
            | TaskState::Pending
            | TaskState::Queued
            | TaskState::Running
            | TaskState::Retrying => Standing::Failed,
        }
    }
}

/// What a `for_each` was expanded into: the tasks `first .. first + count`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The task of the plan.
    pub task: u32,
    /// The index of its first item.
    pub first: u32,
    /// How many items.
    pub count: u32,
    /// How many of them have been let into line, counted from the first.
    pub admitted: u32,
    /// How many have ended.
    pub ended: u32,
    /// How many of those failed.
    pub failed: u32,
    /// Items that run again after a recovery and have not been let into line yet.
    pub again: Vec<u32>,
}

impl Group {
    /// Whether the task at an index is one of its items.
    pub const fn has(&self, index: u32) -> bool {
        index >= self.first && index - self.first < self.count
    }
}

/// Which task of the plan stands at an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The task of the plan.
    pub task: u32,
    /// Which item of its `for_each`, from 0.
    pub item: Option<u32>,
}

impl Run {
    /// A job that was just taken in.
    pub fn new(plan: &Plan) -> Run {
        Run {
            state: JobState::Pending,
            tasks: vec![Standing::Pending; plan.tasks().len()],
            groups: vec![],
            next: plan.tasks().len() as u32,
            recoveries: 0,
            started: None,
            ended: None,
            deadline: None,
            paused: None,
            waits: 0,
            attempts: vec![],
            reason: None,
        }
    }

    /// What stands at an index, if anything does.
    pub fn place(&self, index: u32) -> Option<Place> {
        if (index as usize) < self.tasks.len() {
            return Some(Place { task: index, item: None });
        }
        let group = self.groups.iter().find(|group| group.has(index))?;
        Some(Place { task: group.task, item: Some(index - group.first) })
    }

    /// How many tasks there are, items among them.
    pub fn size(&self) -> u32 {
        self.tasks.len() as u32 + self.groups.iter().map(|group| group.count).sum::<u32>()
    }

    /// What a task of the plan was expanded into.
    pub fn group(&self, task: u32) -> Option<&Group> {
        self.groups.iter().find(|group| group.task == task)
    }

    /// Notes that an attempt has started.
    pub fn start(&mut self, now: Timestamp) {
        self.started.get_or_insert(now);
        if self.state == JobState::Pending {
            self.state = JobState::Running;
        }
    }

    /// Whether it goes on with what it has started. In line, what is started and what is new are two lines of one
    /// tenant that take turns: so jobs come to their end while others wait for their start.
    pub fn continues(&self) -> bool {
        self.started.is_some()
    }

    /// Whether nothing new may start.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The moment at which the job ends unless it has ended before; none while its clock stands still.
    pub fn times_out(&self) -> Option<Timestamp> {
        self.deadline.filter(|_| !self.is_paused() && !self.state.is_terminal())
    }

    /// Pauses it. `busy` says whether an attempt runs. False if it makes no sense now.
    pub fn pause(&mut self, busy: bool, now: Timestamp) -> bool {
        if !matches!(self.state, JobState::Pending | JobState::Running) {
            return false;
        }
        self.state = if busy { JobState::Pausing } else { JobState::Paused };
        self.paused = Some(now);
        true
    }

    /// Notes that nothing of it runs any more.
    pub fn come_to_rest(&mut self) -> bool {
        let rests = self.state == JobState::Pausing;
        if rests {
            self.state = JobState::Paused;
        }
        rests
    }

    /// Resumes it; its deadline moves by the time that it was paused.
    pub fn resume(&mut self, now: Timestamp) -> bool {
        let Some(since) = self.paused.filter(|_| !self.state.is_terminal()) else { return false };
        self.paused = None;
        if !planted(Bug::PauseRunsTheClock) {
            self.deadline = self.deadline.map(|at| at + now.since(since));
        }
        self.state = JobState::Running;
        true
    }

    /// The last attempt of a task before it was reset.
    pub fn attempts_before(&self, task: u32) -> u32 {
        if planted(Bug::ReuseAttemptAfterRecovery) {
            return 0;
        }
        let found = self.attempts.binary_search_by_key(&task, |(index, _)| *index);
        found.map_or(0, |at| self.attempts[at].1)
    }

    /// Notes the last attempts of tasks that are reset. They only rise, so of two the higher one holds.
    pub(super) fn note_attempts(&mut self, last: impl IntoIterator<Item = (u32, u32)>) {
        self.attempts.extend(last.into_iter().filter(|(_, attempt)| *attempt > 0));
        self.attempts.sort_unstable();
        self.attempts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = next.1;
            }
            same
        });
    }

    /// How many tasks of the plan have ended.
    pub fn over(&self) -> usize {
        self.tasks.iter().filter(|standing| standing.is_over()).count()
    }
}
