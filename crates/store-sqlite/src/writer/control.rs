//! What an operator asks of jobs.

use super::Writer;
use super::place::{Found, JobRow, Traveller};
use crate::error::Abort;
use crate::ids::{pack, state_code};
use orchestrator_core::{Counters, JobId, JobState, TaskState};
use orchestrator_store::{Command, Controlled};

impl Writer<'_> {
    pub(super) fn control(&mut self, commands: &[Command]) -> Result<Vec<Controlled>, Abort> {
        commands
            .iter()
            .map(|command| match command {
                Command::Retry(id) => self.with_job(*id, Self::retry),
                Command::Cancel(id) => self.with_job(*id, Self::cancel),
            })
            .collect()
    }

    fn with_job(
        &mut self,
        id: JobId,
        act: fn(&mut Self, i64, JobRow) -> Result<Controlled, Abort>,
    ) -> Result<Controlled, Abort> {
        let Some(seq) = self.ids.seq(id) else { return Ok(Controlled::NotFound) };
        match self.job_row(seq)? {
            Some(job) if job.created == id.created() => act(self, seq, job),
            _ => Ok(Controlled::NotFound),
        }
    }

    fn retry(&mut self, seq: i64, job: JobRow) -> Result<Controlled, Abort> {
        let task = pack(seq, 0);
        let found = self.find(task, &job)?;
        let Found::Ended { state: ended @ (TaskState::Failed | TaskState::TimedOut), attempt } = found else {
            return Ok(Controlled::Refused(found.job_state()));
        };
        if let Some(holder) = self.key_holder(&job)?
            && holder != seq
            && let Some(newer) = self.job_row(holder)?
        {
            return Ok(Controlled::Superseded(self.ids.job(newer.created, holder)));
        }
        self.sql.delete_ended.execute([task])?;
        self.sql.delete_dead.execute([task])?;
        let lane = self.cache.lane(job.lane);
        *self.changes.tallies.entry((lane.line, state_code(ended))).or_default() -= 1;
        let standing = self.enter(lane.line, job.tier, job.tenant)?;
        let counters = Counters { attempt, ..Counters::default() };
        self.stand(&lane, standing, Traveller { task, counters, checkpoint: None })?;
        self.note(task, TaskState::Queued, attempt);
        Ok(Controlled::Done(JobState::of_only_task(TaskState::Queued, attempt > 0)))
    }

    fn cancel(&mut self, seq: i64, job: JobRow) -> Result<Controlled, Abort> {
        let task = pack(seq, 0);
        let (counters, lane) = match self.find(task, &job)? {
            found @ Found::Ended { .. } => return Ok(Controlled::Refused(found.job_state())),
            Found::Ready { line, tier, place } => {
                self.sql.delete_ready.execute((line, tier, place.at, task))?;
                (place.counters, place.lane)
            }
            Found::Parked { tier, place } => {
                self.sql.delete_parked.execute((place.lane, tier, place.at, task))?;
                self.refresh_head(place.lane, tier)?;
                (place.counters, place.lane)
            }
            Found::Delayed(place) => {
                self.sql.delete_delayed.execute((place.at, task))?;
                (place.counters, place.lane)
            }
            Found::Leased { attempt } => {
                let Some(ended) = self.end_lease(task, attempt)? else { return Ok(Controlled::NotFound) };
                (ended.counters, ended.lane)
            }
        };
        self.changes.wake = true;
        self.finish(task, TaskState::Cancelled, counters, lane, None)?;
        self.note(task, TaskState::Cancelled, counters.attempt);
        Ok(Controlled::Done(JobState::Cancelled))
    }
}
