//! The journal. An entry gets its number after its commit, from the leader's next sweep or from one who reads before that:
//! so numbers follow each other without gaps in the order in which readers can see the entries, and none appears behind
//! one that was read.

use super::jobs::read_run;
use super::row::Columns;
use super::tasks::place_name;
use super::{Read, Reader, sql, unreadable};
use deadpool_postgres::{Client, Transaction};
use orchestrator_core::flow::{Plan, Run};
use orchestrator_core::{Event, JobEvent, JobId, TaskEvent, TaskId, Timestamp};
use orchestrator_store::packed::{JOB_EVENT, job_state_of, state_of};
use orchestrator_store::{EventId, JournalEvent, JournalPage, JournalRange, Pager};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tokio_postgres::Row;

/// The key of the lock under which numbers are given out.
pub const NUMBERING: i64 = 0x6A6F_7572_6E61_6C00;
/// So many entries get their numbers by one transaction.
const NUMBERED: i64 = 10_000;
/// So many entries are read at once, for one may hold very many events.
const ROWS: i64 = 64;

/// An event as it is written: the number of the job, the index of the task, the state, the attempt.
type Written = (i64, u32, u8, u32);

/// The job of an event.
struct About {
    id: JobId,
    tenant: Arc<str>,
    /// Where it stands, if it has a head.
    head: Option<(Arc<Plan>, Run)>,
}

/// Gives numbers to entries that are committed and have none, and tells whether that may not have been all of them. The
/// connection must be one that can write.
pub async fn number(client: &mut Client) -> Read<bool> {
    // Each statement sees what is committed when it begins: the one that gives numbers, what those before it gave.
    let tx: Transaction<'_> = client.transaction().await?;
    let lock = tx.prepare_cached(sql::JOURNAL_LOCK).await?;
    tx.execute(&lock, &[&NUMBERING]).await?;
    let give = tx.prepare_cached(sql::JOURNAL_NUMBER).await?;
    let given = tx.execute(&give, &[&NUMBERED]).await?;
    tx.commit().await?;
    Ok(given as i64 >= NUMBERED)
}

impl Reader<'_> {
    /// A page of the journal, and whether entries that have no number yet come after it, for which it has room.
    pub async fn journal(&self, after: EventId, limit: u32) -> Read<(JournalPage, bool)> {
        let mut pager = Pager::new(after, limit);
        let mut from = after.entry;
        let mut chosen: Vec<(EventId, i64, Written)> = vec![];
        let mut unnumbered = false;
        while !pager.is_full() {
            let [rows, new] =
                self.query_all([(sql::JOURNAL, &[&from, &ROWS]), (sql::JOURNAL_NEW, &[])]).await?;
            for row in &rows {
                let (entry, written) = (row.try_get("n")?, unpack(row)?);
                let moment: i64 = row.try_get("at")?;
                let taken = pager.take(entry, written.len());
                chosen.extend(
                    taken.map(|index| (EventId { entry, index: index as u32 }, moment, written[index])),
                );
                from = entry + 1;
            }
            if (rows.len() as i64) < ROWS {
                unnumbered = !pager.is_full() && new[0].try_get("any")?;
                break;
            }
        }
        let jobs = self.about(chosen.iter().map(|(_, _, written)| written.0).collect()).await?;
        for (id, moment, written) in chosen {
            // Nothing is told of a job that was removed.
            if let Some(job) = jobs.get(&written.0) {
                pager.push(told(id, Timestamp::from_millis(moment), written, job)?);
            }
        }
        Ok((pager.done(), unnumbered))
    }

    /// Both ends of the journal, and whether entries have no number yet.
    pub async fn journal_range(&self) -> Read<(JournalRange, bool)> {
        let [ends, new] = self.query_all([(sql::JOURNAL_ENDS, &[]), (sql::JOURNAL_NEW, &[])]).await?;
        let unnumbered = new[0].try_get("any")?;
        let Some(row) = ends.first() else { return Ok((JournalRange::default(), unnumbered)) };
        let newest = EventId { entry: row.try_get("n")?, index: unpack(row)?.len().saturating_sub(1) as u32 };
        Ok((JournalRange { oldest: row.try_get("oldest")?, newest }, unnumbered))
    }

    /// Looks jobs up. Those that were removed are not among them.
    async fn about(&self, mut seqs: Vec<i64>) -> Read<FxHashMap<i64, About>> {
        if seqs.is_empty() {
            return Ok(FxHashMap::default());
        }
        seqs.sort_unstable();
        seqs.dedup();
        let rows = self.query(sql::JOURNAL_JOBS, &[&seqs]).await?;
        let mut flows = vec![];
        for row in &rows {
            flows.extend(row.try_get::<_, Option<i32>>("flow")?);
        }
        let known = self.shared(vec![], flows).await?;
        let mut jobs = FxHashMap::default();
        for row in &rows {
            let seq: i64 = row.try_get("seq")?;
            let head = match row.try_get::<_, Option<i32>>("flow")? {
                None => None,
                Some(flow) => {
                    let plan = known.flows.get(&flow).ok_or_else(|| unreadable("the flow of a job"))?;
                    Some((plan.clone(), read_run(row)?))
                }
            };
            let id = self.ids.job(row.moment("created")?, seq);
            jobs.insert(seq, About { id, tenant: row.text("tenant")?, head });
        }
        Ok(jobs)
    }
}

fn unpack(row: &Row) -> Read<Vec<Written>> {
    postcard::from_bytes(row.try_get("events")?).map_err(|_| unreadable("an entry of the journal"))
}

fn told(id: EventId, at: Timestamp, (_, index, code, attempt): Written, about: &About) -> Read<JournalEvent> {
    let job = about.id;
    let event = if index == JOB_EVENT {
        let state = job_state_of(code).ok_or_else(|| unreadable("the state of a job"))?;
        Event::Job(JobEvent { job, state })
    } else {
        let state = state_of(code).ok_or_else(|| unreadable("the state of a task"))?;
        Event::Task(TaskEvent { task: TaskId { job, index }, state, attempt })
    };
    let name = (index != JOB_EVENT).then(|| about.name(index));
    Ok(JournalEvent { id, at, event, name, tenant: about.tenant.clone(), flow: about.flow() })
}

impl About {
    fn name(&self, index: u32) -> Arc<str> {
        let Some((plan, run)) = &self.head else { return "main".into() };
        match run.place(index) {
            Some(place) => place_name(&plan.tasks()[place.task as usize].name, place),
            // An item that a recovery has replaced.
            None => index.to_string().into(),
        }
    }

    fn flow(&self) -> Option<Arc<str>> {
        let (plan, _) = self.head.as_ref()?;
        (!plan.is_implicit()).then(|| plan.name().clone())
    }
}
