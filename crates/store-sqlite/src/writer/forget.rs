//! Removing what is over: jobs with all of their rows, and the beginning of the journal.
//!
//! Nobody waits for a job that has ended, it holds no lease and stands nowhere in line, so its rows are all that there
//! is of it. Other processes learn of it as of any commit. What they hold of its key in memory, or move into `idem`
//! later, leads to a row that is not there, and is stepped over.

use super::Writer;
use super::keys;
use super::place::JobRow;
use crate::error::Abort;
use orchestrator_core::Timestamp;
use orchestrator_store::packed::{pack, state_of};
use orchestrator_store::{Forget, Forgot};
use rusqlite::OptionalExtension;

impl Writer<'_> {
    pub(super) fn forget(&mut self, jobs: &[Forget]) -> Result<Vec<Forgot>, Abort> {
        // What ended in this transaction is read back here.
        self.write_heads()?;
        self.hot.flush()?;
        jobs.iter().map(|wish| self.forget_one(wish)).collect()
    }

    fn forget_one(&mut self, wish: &Forget) -> Result<Forgot, Abort> {
        let Some(seq) = self.ids.seq(wish.job) else { return Ok(Forgot::NotFound) };
        let Some(job) = self.job_row(seq)?.filter(|job| job.created == wish.job.created()) else {
            return Ok(Forgot::NotFound);
        };
        if self.ended_at(seq, &job)? != Some(wish.ended) {
            return Ok(Forgot::Kept);
        }
        self.count_off(seq)?;
        let (first, behind) = (pack(seq, 0), pack(seq + 1, 0));
        self.sql.delete_ends.execute((first, behind))?;
        self.sql.delete_attempts.execute((first, behind))?;
        self.sql.delete_dead_of.execute((first, behind))?;
        if job.flow.is_some() {
            self.heads.forget(seq);
            self.sql.delete_tasks.execute((first, behind))?;
            self.sql.delete_run.execute([seq])?;
            self.sql.delete_bad.execute([seq])?;
        }
        self.give_up_key(seq, &job)?;
        self.sql.delete_document.execute([seq])?;
        self.sql.delete_job.execute([seq])?;
        if seq == self.cache.last_seq {
            // Else the number would be given out again once the row is gone.
            self.sql.put_last_seq.execute([seq])?;
        }
        Ok(Forgot::Done)
    }

    fn ended_at(&mut self, seq: i64, job: &JobRow) -> Result<Option<Timestamp>, Abort> {
        if job.flow.is_some() {
            return Ok(self.head_of(seq)?.run.ended);
        }
        let at: Option<i64> = self.sql.end_moment.query_row([pack(seq, 0)], |row| row.get(0)).optional()?;
        Ok(at.map(Timestamp::from_millis))
    }

    /// Takes the ends of a job's tasks out of the counts by line.
    fn count_off(&mut self, seq: i64) -> Result<(), Abort> {
        let ends: Vec<(i64, u8)> = self
            .sql
            .ends_of_job
            .query_map((pack(seq, 0), pack(seq + 1, 0)), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        for (lane, state) in ends {
            let state = state_of(state).ok_or_else(|| Abort::Invalid("an end without a state".to_owned()))?;
            self.tally(lane, state, -1);
        }
        Ok(())
    }

    /// The key leads to the newest job that is left of those that had it, if there is one.
    fn give_up_key(&mut self, seq: i64, job: &JobRow) -> Result<(), Abort> {
        let (Some(key), Some(bucket)) = (&job.key, job.bucket) else { return Ok(()) };
        let scope = self.key_scope(job)?;
        let hash = keys::hash(&self.cache.tenants[&job.tenant], &scope, key, bucket);
        self.keys.remove(hash, seq);
        self.sql.delete_idem.execute((hash, seq))?;
        Ok(())
    }

    pub(super) fn forget_journal(&mut self, before: Timestamp, limit: u32) -> Result<u32, Abort> {
        let oldest = self.sql.old_journal.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let oldest: Vec<(i64, i64)> = oldest.collect::<Result<_, _>>()?;
        let old = oldest.iter().take_while(|(_, at)| *at < before.as_millis());
        let Some((last, _)) = old.last() else { return Ok(0) };
        let gone = self.sql.delete_journal.execute([last])?;
        u32::try_from(gone).map_err(|_| Abort::Invalid("more entries went than were asked for".to_owned()))
    }
}
