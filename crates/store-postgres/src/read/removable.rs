//! Jobs that are over and may go.

use super::jobs::read_run;
use super::row::Columns;
use super::{Read, Reader, sql};
use orchestrator_core::{JobState, Timestamp};
use orchestrator_store::packed::state_of;
use orchestrator_store::{Removable, RemovableAsk, RemovablePage};
use tokio_postgres::Row;

impl Reader<'_> {
    /// A page of jobs that may go, in order of their numbers.
    pub async fn removable(&self, ask: &RemovableAsk) -> Read<RemovablePage> {
        let mut page = RemovablePage::default();
        let Some(latest) = ask.bygone.latest().filter(|_| ask.limit > 0) else { return Ok(page) };
        let after = ask.after.map_or(Some(0), |id| self.ids.seq(id)).unwrap_or(i64::MAX);
        let look = i64::from(ask.look);
        let rows = self.query(sql::REMOVABLE, &[&after, &look]).await?;
        for (looked, row) in (1..).zip(&rows) {
            let created = row.moment("created")?;
            if created >= latest {
                break;
            }
            let job = self.ids.job(created, row.try_get("seq")?);
            if let Some((state, ended, tasks)) = end(row)?
                && ask.bygone.takes(state, ended, row.try_get("dead")?)
            {
                page.jobs.push(Removable { job, ended, tasks });
            }
            if page.jobs.len() == ask.limit as usize || looked == look {
                page.next = Some(job);
                break;
            }
        }
        Ok(page)
    }
}

/// How and when a job ended, and how many tasks it has.
fn end(row: &Row) -> Read<Option<(JobState, Timestamp, u32)>> {
    if row.try_get::<_, Option<&[u8]>>("body")?.is_some() {
        let run = read_run(row)?;
        return Ok(run.ended.map(|ended| (run.state, ended, run.size())));
    }
    let state = row.try_get::<_, Option<i16>>("state")?.and_then(|code| u8::try_from(code).ok());
    let state = state.and_then(state_of).map(|state| JobState::of_only_task(state, true));
    Ok(state.zip(row.maybe_moment("at")?).map(|(state, at)| (state, at, 1)))
}
