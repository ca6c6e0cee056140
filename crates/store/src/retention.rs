//! Jobs that are over and may go: how they are found, and what is asked and answered when they are removed.

use orchestrator_core::{JobId, JobState, Timestamp};

/// How long ago a job must have ended to be removable: before these moments. Without a moment, jobs of that kind stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bygone {
    /// Jobs that completed.
    pub completed: Option<Timestamp>,
    /// Jobs that failed, timed out or were cancelled.
    pub failed: Option<Timestamp>,
    /// Jobs with a dead letter that nobody has decided on, however they ended.
    pub dead: Option<Timestamp>,
}

impl Bygone {
    /// Everything that ended before a moment.
    pub fn before(moment: Timestamp) -> Bygone {
        Bygone { completed: Some(moment), failed: Some(moment), dead: Some(moment) }
    }

    /// Whether a job may go.
    pub fn takes(&self, state: JobState, ended: Timestamp, dead: bool) -> bool {
        let before = match state {
            _ if dead => self.dead,
            JobState::Completed => self.completed,
            JobState::Failed | JobState::TimedOut | JobState::Cancelled => self.failed,
            _ => None,
        };
        before.is_some_and(|before| ended < before)
    }

    /// The latest of the moments: what was created then or later cannot have ended before. None where nothing may go.
    pub fn latest(&self) -> Option<Timestamp> {
        [self.completed, self.failed, self.dead].into_iter().flatten().max()
    }
}

/// A look for jobs that may go.
#[derive(Clone, Copy, Debug)]
pub struct RemovableAsk {
    /// Which.
    pub bygone: Bygone,
    /// Only jobs behind this one, which need not exist any more.
    pub after: Option<JobId>,
    /// At most so many.
    pub limit: u32,
    /// At most so many jobs are looked at, whether they may go or not: it bounds how long a look takes.
    pub look: u32,
}

/// The answer to a [`RemovableAsk`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovablePage {
    /// The jobs, in order of submission.
    pub jobs: Vec<Removable>,
    /// The job that was looked at last, where a bound ended the look: what is behind it is still to be looked at.
    pub next: Option<JobId>,
}

/// A job that may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removable {
    /// Which.
    pub job: JobId,
    /// When it ended.
    pub ended: Timestamp,
    /// How many tasks it has, items among them: how much there is to remove.
    pub tasks: u32,
}

impl Removable {
    /// The wish to remove it as it was seen.
    pub fn forget(&self) -> Forget {
        Forget { job: self.job, ended: self.ended }
    }
}

/// A wish to remove a job with all that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forget {
    /// Which.
    pub job: JobId,
    /// The end that the wish is about. A job that was taken up again since stays, also where it has ended anew.
    pub ended: Timestamp,
}

/// What came of a wish to remove a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgot {
    /// It is gone.
    Done,
    /// It has not ended, or at another moment: it stays.
    Kept,
    /// There is no such job, or not any more.
    NotFound,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_goes_by_its_own_moment() {
        let at = Timestamp::from_millis;
        let bygone = Bygone { completed: Some(at(10)), failed: Some(at(5)), dead: None };
        assert!(bygone.takes(JobState::Completed, at(9), false));
        assert!(!bygone.takes(JobState::Completed, at(10), false), "before, not at");
        assert!(bygone.takes(JobState::Cancelled, at(4), false));
        assert!(!bygone.takes(JobState::TimedOut, at(5), false));
        assert!(!bygone.takes(JobState::Failed, at(1), true), "somebody has to decide on its dead letter");
        assert!(Bygone::before(at(10)).takes(JobState::Failed, at(9), true));
        assert!(!Bygone::before(at(10)).takes(JobState::Running, at(9), false), "it lives");
        assert_eq!(bygone.latest(), Some(at(10)));
        assert_eq!(Bygone::default().latest(), None);
    }
}
