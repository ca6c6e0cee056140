//! What a generator knows of the model, so that operations meet something to do.

use crate::conformance::names::Names;
use crate::conformance::world::{ALL, everything};
use crate::contract::Catalog;
use crate::retention::Forget;
use crate::verbs::Held;
use crate::views::{JobFilter, LineFilter};
use orchestrator_core::{JobId, JobState, TaskId};

/// Jobs, tasks and attempts by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// How many jobs there are.
    pub jobs: usize,
    /// Jobs that have not ended.
    pub live: Vec<JobId>,
    /// Jobs that are pausing or paused.
    pub paused: Vec<JobId>,
    /// Jobs that failed or timed out.
    pub bad: Vec<JobId>,
    /// Jobs that have ended, and when.
    pub over: Vec<Forget>,
    /// Dead letters.
    pub dead: Vec<TaskId>,
    /// Attempts that hold their lease.
    pub held: Vec<Held>,
}

impl Known {
    pub async fn of(model: &dyn Catalog, names: &Names, granted: &[Held]) -> Known {
        let mut known = Known { jobs: names.len(), ..Known::default() };
        for job in model.list(JobFilter::default(), everything()).await.expect("list") {
            let id = names.name(job.id);
            match job.state {
                JobState::Pausing | JobState::Paused => known.paused.push(id),
                JobState::Failed | JobState::TimedOut => known.bad.push(id),
                _ => {}
            }
            match job.ended {
                Some(ended) => known.over.push(Forget { job: id, ended }),
                None => known.live.push(id),
            }
        }
        let dead = model.dead_letters(LineFilter::default(), None, ALL).await.expect("dead_letters");
        known.dead = dead.into_iter().map(|dead| names.task(dead.task)).collect();
        let own = granted.iter().map(|held| names.own(*held)).collect();
        let held = model.held(own).await.expect("held");
        known.held =
            granted.iter().zip(held).filter(|(_, held)| *held).map(|(attempt, _)| *attempt).collect();
        known
    }
}
