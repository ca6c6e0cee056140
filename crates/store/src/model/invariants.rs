//! What must be true of a model at any moment.

use super::{Job, Location, Model};
use orchestrator_core::{TaskId, TaskState};
use std::collections::BTreeMap;

impl Model {
    /// Says what is broken, if anything.
    pub fn invariants(&self) -> Result<(), String> {
        self.jobs.values().try_for_each(|job| self.job_is_sane(job))?;
        self.keys_name_their_jobs()?;
        self.journal_tells_the_truth()
    }

    fn job_is_sane(&self, job: &Job) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("job {}: {what}: {job:?}", job.id));
        let counters = job.counters;
        if counters.failures + counters.crashes > counters.attempt {
            return wrong("more failures and crashes than attempts");
        }
        match &job.location {
            Location::InLine(spot) => {
                let next = self.tenant_next.get(&(job.tier(), job.tenant.clone()));
                if next.is_none_or(|next| spot.stamp >= *next) {
                    return wrong("its stamp was never handed out");
                }
            }
            Location::Leased(_) if counters.attempt == 0 => return wrong("runs without an attempt"),
            Location::Ended(end) => {
                if (end.state == TaskState::Failed) != end.dead.is_some() {
                    return wrong("failed and dead letter disagree");
                }
                if matches!(end.state, TaskState::Completed | TaskState::Skipped) != end.output.is_some() {
                    return wrong("end and output disagree");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// At most one live job per key, and it is the one that the key names.
    fn keys_name_their_jobs(&self) -> Result<(), String> {
        for (seq, job) in &self.jobs {
            let Some(key) = &job.key else { continue };
            let named = self.keys.get(key).copied();
            if !job.job_state().is_terminal() && named != Some(*seq) {
                return Err(format!("key {key:?} names job number {named:?}, but job {} is live", job.id));
            }
        }
        for (key, seq) in &self.keys {
            if self.jobs.get(seq).is_none_or(|job| job.key.as_ref() != Some(key)) {
                return Err(format!("key {key:?} names job number {seq}, which does not have it"));
            }
        }
        Ok(())
    }

    /// Every event is a legal move, and the last one of each task is its state.
    fn journal_tells_the_truth(&self) -> Result<(), String> {
        let mut states: BTreeMap<TaskId, TaskState> = BTreeMap::new();
        for event in self.journal.iter().flat_map(|entry| &entry.events) {
            let from = states.insert(event.task, event.state).unwrap_or(TaskState::Pending);
            if !from.can_become(event.state) {
                return Err(format!("the journal moves task {} from {from} to {}", event.task, event.state));
            }
        }
        for job in self.jobs.values() {
            let told = states.get(&job.task());
            if told != Some(&job.state()) {
                return Err(format!(
                    "the journal leaves task {} in {told:?}, it is {}",
                    job.task(),
                    job.state()
                ));
            }
        }
        Ok(())
    }
}
